"""A stretch of a test in which this process and its children have loopback and nothing else."""

import ctypes
import fcntl
import os
import socket
import struct
import sys
from collections.abc import Iterator
from contextlib import contextmanager

CLONE_NEWNET = 0x40000000
SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 0x1


def can_be_cut() -> bool:
    return sys.platform == "linux" and os.geteuid() == 0


@contextmanager
def no_network() -> Iterator[None]:
    """In a network namespace of its own, for the calling thread and what it starts."""
    libc = ctypes.CDLL(None, use_errno=True)
    with open("/proc/thread-self/ns/net") as before:
        if libc.unshare(CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), "no network namespace can be made")
        try:
            raise_loopback()
            yield
        finally:
            libc.setns(before.fileno(), CLONE_NEWNET)


def raise_loopback() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        request = struct.pack("16sh14x", b"lo", 0)
        _, flags = struct.unpack("16sh14x", fcntl.ioctl(sock, SIOCGIFFLAGS, request))
        fcntl.ioctl(sock, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", flags | IFF_UP))
