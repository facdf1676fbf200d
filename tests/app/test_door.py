"""What shuts a process in before it looks at a stranger's file."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from app.door import refuse


def test_behind_it_neither_a_file_nor_a_connection_can_be_opened(tmp_path: Path) -> None:
    program = (
        "import socket, sys; from app.door import shut; shut(1_500_000_000)\n"
        "def tried(do):\n"
        "    try: do()\n"
        "    except OSError: return\n"
        "    sys.exit(1)\n"
        f"tried(lambda: open({str(tmp_path / 'new')!r}, 'w'))\n"
        "tried(lambda: open('/etc/hosts'))\n"
        "tried(lambda: socket.socket())\n"
        "try: bytearray(4_000_000_000)\n"
        "except MemoryError: sys.exit(0)\n"
        "sys.exit(2)\n"
    )
    if sys.platform != "linux":
        pytest.skip("Only Linux has all of these limits.")
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0


def test_whoever_is_left_alone_with_a_file_ends_by_itself() -> None:
    program = "from app.door import allow_seconds; allow_seconds(0.1)\nwhile True: pass"
    if sys.platform == "win32":
        pytest.skip("Windows has no such limit.")
    began = time.monotonic()
    assert subprocess.run([sys.executable, "-c", program], timeout=60).returncode < 0
    assert time.monotonic() - began < 50


@pytest.mark.parametrize("event", ["open", "os.remove", "socket.connect", "import", "mmap.__new__"])
def test_what_python_announces_is_refused(event: str) -> None:
    with pytest.raises(PermissionError, match=event):
        refuse(event, ())
    refuse("builtins.id", ())
