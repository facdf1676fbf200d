"""The name of a file that a browser hands over, as it may stand in a folder of ours."""

import re

LONGEST_NAME = 200
"""Bytes of it without its ending, as most disks count them: a number may come behind it."""
# In no system's way, text, and nothing that points to another folder.
_UNSAFE = re.compile(r'[\x00-\x1f\x7f<>:"/\\|?*\ud800-\udfff]+')


def safe_name(name: str) -> tuple[str, str]:
    """Without its ending, which may leave nothing, and its ending, without the dot."""
    stem, _, ending = _UNSAFE.sub("_", name).rpartition(".")
    # A letter that is cut in the middle goes as a whole.
    short = stem.strip(" .").encode()[:LONGEST_NAME]
    return short.decode(errors="ignore").rstrip(" ."), ending
