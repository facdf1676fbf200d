"""What a person can ask of the launcher, on the page or while there is none."""

from enum import StrEnum


class Wish(StrEnum):
    QUIT = "quit"
    RESTART = "restart"
    """Start the app again, as usual."""
    SAFE = "safe"
    """Start it again in safe mode."""
    SHOW = "show"
    """Bring the window to the front."""
    LOGS = "logs"
    """Open the folder of the logs."""
