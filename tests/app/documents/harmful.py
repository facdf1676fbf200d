"""A reading process whose parser does what the file says, once a file named to it is there."""

import ctypes
import os
import pathlib
import socket
import subprocess
import sys
import time
from collections.abc import Iterator

from app.documents.child import load_encodings, serve
from app.documents.document import Facts, Page
from app.documents.page_picture import PagePicture, PictureWish
from app.documents.parsers.parsing import parse
from app.documents.parsers.pdf_picture import draw

PAGE = Page(number=1, label="1", text="a page")


def obey(data: bytes, name: str, password: str) -> Iterator[Page | Facts]:
    order, _, rest = data.decode("utf-8", "replace").partition(" ")
    if order not in ORDERS:
        yield from parse(data, name, password)
        return
    yield Facts(kind="txt", num_pages=2)
    yield PAGE
    said = ORDERS[order](rest)
    yield Page(number=2, label="2", text=str(said))
    yield Facts(kind="txt", num_pages=2)


def obey_drawing(data: bytes, name: str, password: str, wish: PictureWish) -> PagePicture:
    order, _, rest = data.decode("latin-1").partition(" ")
    if order == "false":
        return PagePicture(png=b"<svg onload=x>", width=9, height=9, boxes=())
    if order in ORDERS:
        ORDERS[order](rest)
    return draw(data, name, password, wish)


def crash(_: str) -> None:
    ctypes.string_at(0)


def leave(_: str) -> None:
    os._exit(3)


def fail(_: str) -> None:
    raise KeyboardInterrupt


def hang(_: str) -> None:
    while True:
        pass


def sleep(_: str) -> None:
    time.sleep(600)


def hoard(_: str) -> None:
    held = []
    while True:
        held.append(bytearray(50_000_000))


def grow(megabytes: str) -> int:
    HELD.append(bytearray(b"x") * (int(megabytes) * 1_000_000))
    return os.getpid()


def babble(line: str) -> None:
    # As one would who has taken the process over.
    for number in range(3, 20):
        try:
            os.write(number, line.encode() + b"\n")
        except OSError:
            continue
    time.sleep(600)


def attempt(what: str) -> str:
    """What becomes of an attempt at something that no reader needs."""
    tries = {
        "file": lambda: os.open("/etc/passwd", os.O_RDONLY),
        "write": lambda: pathlib.Path("/tmp/x").write_text("x"),
        "list": lambda: os.listdir("/"),
        "socket": lambda: socket.create_connection(("127.0.0.1", 9)),
        "name": lambda: socket.getaddrinfo("localhost", 80),
        "program": lambda: subprocess.run(["true"]),
        "descriptor": lambda: os.dup(0),
        "module": lambda: __import__("this"),
    }
    try:
        tries[what]()
    except OSError as error:
        return f"refused: {type(error).__name__}"
    return "done"


def key(_: str) -> str:
    return str(sorted(name for name in os.environ if name.startswith("INGLENOOK")))


def who(_: str) -> int:
    return os.getpid()


ORDERS = {
    each.__name__: each
    for each in (crash, leave, fail, hang, sleep, hoard, grow, babble, attempt, key, who)
}
HELD: list[bytearray] = []


class Waiting:
    """Standard input that nobody reads from before there is the file that was named."""

    def __init__(self) -> None:
        self._stream = sys.stdin.buffer
        self.buffer = self
        self.read = self._stream.read

    def readline(self) -> bytes:
        while not os.path.exists(sys.argv[1]):
            time.sleep(0.01)
        return self._stream.readline()


if __name__ == "__main__":
    load_encodings()
    if sys.argv[1:]:
        sys.stdin = Waiting()  # type: ignore[assignment]
    sys.exit(serve(obey, obey_drawing))
