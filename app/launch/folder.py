"""Show a folder to the user, in the program that the system has for it."""

import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path


def show_folder(folder: Path) -> None:
    """Harmless where nothing can show it."""
    with suppress(OSError):
        if sys.platform == "win32":
            os.startfile(folder)
            return
        program = "open" if sys.platform == "darwin" else "xdg-open"
        subprocess.Popen(
            [program, str(folder)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
