"""The key that other programs need for /v1."""

import hmac
import os
import secrets
from collections.abc import Mapping
from pathlib import Path

from app.paths import Paths
from app.private_file import write_private
from engine.errors import HomeError

VARIABLE = "INGLENOOK_API_KEY"


def api_key(paths: Paths, environment: Mapping[str, str] = os.environ) -> str:
    """The key from the environment, else the kept one, else a new one that is kept."""
    given = environment.get(VARIABLE, "").strip()
    if given:
        return given
    try:
        return _kept(paths.api_key) or _keep(paths.api_key, f"ink-{secrets.token_urlsafe(24)}")
    except (OSError, UnicodeDecodeError) as error:
        raise HomeError(
            f"The key in {paths.api_key} cannot be used ({error}): correct or delete the file, or"
            f" set {VARIABLE}."
        ) from error


def _kept(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        return ""


def _keep(path: Path, key: str) -> str:
    write_private(path, f"{key}\n")
    return key


def is_key(key: str, authorization: str | None) -> bool:
    """Whether the Authorization header carries the key; takes the same time for every guess."""
    scheme, _, given = (authorization or "").partition(" ")
    # Headers arrive as Latin-1, whatever was meant by their bytes.
    sent = given.strip().encode("latin-1", "replace")
    return scheme.lower() == "bearer" and hmac.compare_digest(sent, key.encode())
