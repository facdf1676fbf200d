"""A port for an app that a test starts, perhaps twice: nobody else comes to have it meanwhile."""

import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def held_port() -> Iterator[int]:
    """Bound and not listening, so that the system gives it to nobody by chance, while who asks for
    it by its number, as the app does, may listen on it."""
    with socket.socket() as holder:
        if sys.platform != "win32":
            holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind(("127.0.0.1", 0))
        port = holder.getsockname()[1]
        if sys.platform == "win32":
            # There a port that is bound is nobody else's at all.
            holder.close()
        yield port
