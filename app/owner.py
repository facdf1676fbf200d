"""One home has one owner: a lock that dies with its process, and a note how to reach it.

lock free                 -> take it, and be the owner
lock held, note answers   -> the app runs: hand the command over
lock held, no answer yet  -> a command works for a moment, or the app is starting: wait
"""

import hashlib
import hmac
import http.client
import json
import os
import secrets
import time
import urllib.request
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

from filelock import FileLock, Timeout

from app.paths import Paths
from app.private_file import write_private
from engine.errors import HomeBusy, HomeError

POLL_S = 0.05
TOKEN_HEADER = "X-Inglenook-Token"


@dataclass(frozen=True, slots=True)
class OwnerAddress:
    """Where the running app listens. Who can read the token is the same user."""

    host: str
    port: int
    token: str
    pid: int

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"

    def answers(self) -> bool:
        """Whether the app that left the note is there, and no other program on its old port."""
        nonce = secrets.token_urlsafe(16)
        try:
            # A proxy from the environment has no business between us and this machine.
            opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
            with opener.open(f"{self.url}/_app/ping?nonce={nonce}", timeout=2) as response:
                answer: bytes = response.read(1000)
        except (OSError, ValueError, http.client.HTTPException):
            return False
        return hmac.compare_digest(answer, proof(self.token, nonce).encode())


def proof(token: str, nonce: str) -> str:
    """What only who knows the token can answer, without saying the token."""
    return hmac.new(token.encode(), nonce.encode(), hashlib.sha256).hexdigest()


class HomeLock:
    """Held by the owner of a home; the system releases it when the process ends, however.

    The launcher, which outlives the app's crashes, has a lock and a note of its own.
    """

    def __init__(self, paths: Paths) -> None:
        self._use(paths.lock, paths.owner)

    @classmethod
    def of_launcher(cls, paths: Paths) -> Self:
        lock = cls(paths)
        lock._use(paths.launcher_lock, paths.launcher)
        return lock

    def _use(self, lock: Path, note: Path) -> None:
        self._file, self._note = lock, note
        self._lock = FileLock(lock, mode=0o600)
        self._held: tuple[int, int] | None = None

    def try_acquire(self) -> bool:
        try:
            self._lock.acquire(timeout=0)
        except Timeout:
            return False
        except (OSError, NotImplementedError) as error:
            raise self._unusable(error) from error
        try:
            # A note that an earlier owner left behind when it was killed.
            self._note.unlink(missing_ok=True)
        except OSError as error:
            self._lock.release()
            raise self._unusable(error) from error
        self._held = _identity(self._file)
        return True

    @property
    def is_lost(self) -> bool:
        """Whether it is held for nothing: its file was deleted, and another one may be locked."""
        return self._lock.is_locked and _identity(self._file) != self._held

    @staticmethod
    def address(host: str, port: int) -> OwnerAddress:
        """Where this process will listen, with a fresh token."""
        return OwnerAddress(host, port, secrets.token_urlsafe(24), os.getpid())

    def announce(self, address: OwnerAddress) -> None:
        """Leave the note: from now on commands and second apps find this process."""
        try:
            write_private(self._note, json.dumps(asdict(address)))
        except OSError as error:
            raise HomeError(
                f"The file {self._note} cannot be written ({error.strerror}): make room on"
                " the disk and start again."
            ) from error

    def release(self) -> None:
        if self._lock.is_locked:
            # Where the lock is lost the note may be that of another owner.
            if not self.is_lost:
                with suppress(OSError):
                    self._note.unlink(missing_ok=True)
            self._lock.release()

    def _unusable(self, error: Exception) -> HomeError:
        reason = getattr(error, "strerror", None) or error
        return HomeError(
            f"The files {self._file.name} and {self._note.name} in {self._file.parent} cannot be"
            f" used ({reason}): delete what is there under these names and make the folder"
            " writable, or choose another place with INGLENOOK_HOME."
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


def _identity(file: Path) -> tuple[int, int] | None:
    """Which file it is, by whatever name; None where there is none."""
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def owner_address(paths: Paths) -> OwnerAddress | None:
    """The note of the running app. None: there is none, or it cannot be read yet."""
    return _read(paths.owner)


def launcher_address(paths: Paths) -> OwnerAddress | None:
    """The same of the launcher, which answers while the app does not."""
    return _read(paths.launcher)


def _read(note: Path) -> OwnerAddress | None:
    try:
        address = OwnerAddress(**json.loads(note.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError, RecursionError):
        return None
    is_whole = isinstance(address.host, str) and isinstance(address.token, str)
    return address if is_whole and type(address.port) is int and 0 < address.port < 65536 else None


def own_or_find(paths: Paths, patience_s: float) -> HomeLock | OwnerAddress:
    """Own the home, or find who does. Raises HomeBusy when neither comes true in time."""
    lock = HomeLock(paths)
    deadline = time.monotonic() + patience_s
    while True:
        if lock.try_acquire():
            return lock
        address = owner_address(paths)
        if address is not None and address.answers():
            return address
        if time.monotonic() >= deadline:
            raise HomeBusy(
                f"Another Inglenook works in {paths.data} and does not answer after"
                f" {patience_s:.0f} s: wait until it has ended, or end it."
            )
        time.sleep(POLL_S)
