"""A file on its way that is this process's alone: two that write the same file do not meet.

NAME.123.part   what process 123 has written so far
NAME            there only when it is whole, and never instead of a file that was there
"""

import os
import re
from contextlib import suppress
from pathlib import Path

import psutil

from engine.errors import UsageError


def own_part(target: Path) -> Path:
    """Where this process writes what will be `target`."""
    return target.with_name(f"{target.name}.{os.getpid()}.part")


def sweep_parts(target: Path) -> None:
    """Remove what processes that were killed have left of this file."""
    form = re.compile(rf"{re.escape(target.name)}\.(\d{{1,10}})\.part")
    with suppress(OSError):
        for file in target.parent.iterdir():
            found = form.fullmatch(file.name)
            if found and not psutil.pid_exists(int(found[1])):
                with suppress(OSError):
                    file.unlink()


def give_name(part: Path, target: Path) -> None:
    """Raises UsageError where a file has the name by now; both stay as they are."""
    try:
        # In one step: a look before a renaming would leave a moment between.
        os.link(part, target)
    except FileExistsError as error:
        raise name_taken(target) from error
    except OSError:
        # There are file systems without a second name for a file, such as that of most sticks.
        if target.exists():
            raise name_taken(target) from None
        part.rename(target)
    else:
        part.unlink()


def name_taken(target: Path) -> UsageError:
    return UsageError(f"There is a file {target} already: choose another name, or delete it.")
