"""The key that other programs need for /v1."""

import hmac
import os
import secrets
from collections.abc import Mapping

from app.paths import Paths
from engine.errors import HomeError

VARIABLE = "INGLENOOK_API_KEY"


def api_key(paths: Paths, environment: Mapping[str, str] = os.environ) -> str:
    """The key from the environment, else the kept one, else a new one that is kept."""
    given = environment.get(VARIABLE, "").strip()
    if given:
        return given
    try:
        kept = paths.api_key.read_text(encoding="utf-8").strip()
        if kept:
            return kept
        key = f"ink-{secrets.token_urlsafe(24)}"
        file = os.open(paths.api_key, os.O_WRONLY | os.O_TRUNC)
    except FileNotFoundError:
        key = f"ink-{secrets.token_urlsafe(24)}"
        file = os.open(paths.api_key, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        raise HomeError(
            f"The key in {paths.api_key} cannot be read ({error.strerror}): make it readable, or"
            f" set {VARIABLE}."
        ) from error
    with open(file, "w", encoding="utf-8") as stream:
        stream.write(key + "\n")
    return key


def is_key(key: str, authorization: str | None) -> bool:
    """Whether the Authorization header carries the key; takes the same time for every guess."""
    scheme, _, given = (authorization or "").partition(" ")
    return scheme.lower() == "bearer" and hmac.compare_digest(given.strip().encode(), key.encode())
