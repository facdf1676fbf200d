"""What says who somebody is: names, places and keys, taken out of a text that goes to others."""

import getpass
import os
import re
import socket
from collections.abc import Mapping
from pathlib import Path

from app.owner import launcher_address, owner_address
from app.paths import Paths

KEYS = re.compile(r"\bBearer \S+|\bsk-[\w-]{8,}|\b[0-9a-fA-F]{32,}\b")
MAIL = re.compile(r"[\w.+-]+@[\w-]+\.[\w.]+")
SHORTEST_NAME = 3
"""A user called `a` would blacken every word."""


def secrets_of(paths: Paths, model: Path | None = None) -> dict[str, str]:
    """What of this home, and of where its model lies, may not be told, and what stands there
    instead; the longest first, since a folder may lie in another one and have the user's name in
    it."""
    known = {
        str(paths.data): "DATA",
        str(paths.cache): "CACHE",
        str(paths.models): "MODELS",
        str(paths.logs): "LOGS",
        _home(): "HOME",
        _user(): "USER",
        socket.gethostname(): "COMPUTER",
        os.environ.get("INGLENOOK_API_KEY", "").strip(): "KEY",
        _text(paths.api_key).strip(): "KEY",
    }
    if model is not None:
        known.setdefault(str(model.parent), "FOLDER OF THE MODEL")
    for note in (owner_address(paths), launcher_address(paths)):
        known[note.token if note else ""] = "KEY"
    long_enough = {text: name for text, name in known.items() if len(text) >= SHORTEST_NAME}
    return dict(sorted(long_enough.items(), key=lambda pair: -len(pair[0])))


def redact(text: str, secrets: Mapping[str, str]) -> str:
    """Of a secret that is a word, only the whole word is one. Keys of any program and addresses of
    mail go as well."""
    for secret, name in secrets.items():
        whole = re.escape(secret)
        if re.fullmatch(r"\w+", secret):
            whole = rf"(?<!\w){whole}(?!\w)"
        text = re.sub(whole, f"<{name}>", text, flags=re.IGNORECASE)
    return MAIL.sub("<MAIL>", KEYS.sub("<KEY>", text))


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _home() -> str:
    home = os.path.expanduser("~")
    return "" if home in ("~", os.sep) else home


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        # There are users without a name, as in some containers.
        return ""
