"""What the frozen program begins with: the environment given back, and then the launcher."""

import os
import sys
from collections.abc import MutableMapping

from app.launcher import main

LIBRARY_PATH = "LD_LIBRARY_PATH"


def give_back(environment: MutableMapping[str, str]) -> None:
    """Undo what PyInstaller's first lines have set for this process alone.

    A browser that we start must not find our copies of the system's libraries before its own; and
    another process of this program is to begin from the beginning.
    """
    before = environment.pop(f"{LIBRARY_PATH}_ORIG", None)
    environment.pop(LIBRARY_PATH, None)
    if before is not None:
        environment[LIBRARY_PATH] = before
    for name in [name for name in environment if name.startswith("_PYI_")]:
        del environment[name]


if __name__ == "__main__":
    if sys.platform == "linux":
        give_back(os.environ)
    sys.exit(main())
