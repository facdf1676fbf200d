"""The listening socket of the app, made before anything heavy is imported."""

import socket
import sys
from collections.abc import Callable

from engine.errors import PortTaken

PREFERRED_PORT = 7341


def bind(
    host: str = "127.0.0.1",
    port: int | None = None,
    say: Callable[[str], None] = lambda sentence: None,
) -> socket.socket:
    """A listening socket: the port that was asked for, or the next free one from ours on.

    `say` hears the sentence that tells why it is not ours. Raises PortTaken.
    """
    if port is not None:
        try:
            return _bound(host, port)
        except OSError as error:
            raise PortTaken(
                f"Port {port} cannot be used ({error.strerror}): close the program that has it, or"
                " choose another one with --port."
            ) from error
    reason = ""
    for candidate in (*range(PREFERRED_PORT, PREFERRED_PORT + 20), 0):
        try:
            sock = _bound(host, candidate)
        except OSError as error:
            reason = reason or str(error.strerror)
            continue
        if reason:
            say(
                f"Port {PREFERRED_PORT} cannot be used ({reason}), so this time it is port"
                f" {sock.getsockname()[1]}: --port N chooses one."
            )
        return sock
    raise PortTaken(f"No port is free on {host}: close some programs and try again.")


def _bound(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sock = socket.socket(family)
    try:
        if sys.platform == "win32":
            # There SO_REUSEADDR would let two programs have the same port.
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_EXCLUSIVEADDRUSE, 1)
        else:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((host, port))
        # Listening already: until then a second program could bind it too.
        sock.listen(128)
    except OSError:
        sock.close()
        raise
    return sock
