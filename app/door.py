"""What shuts a process in before it looks at a stranger's file."""

import sys

if sys.platform != "win32":
    import resource

FORBIDDEN = (
    *("open", "os.", "shutil.", "socket.", "subprocess.", "pty.", "fcntl.", "mmap.", "winreg."),
    *("ctypes.dlopen", "urllib.", "http.", "ftplib.", "smtplib.", "sqlite3.", "webbrowser."),
    *("tempfile.", "glob.", "import"),
)
"""Beginnings of the names under which Python announces what it is about to do."""


def shut(most_bytes: int) -> None:
    """Limits that hold from now on: no file, no connection and no program can be opened, whatever
    is asked for, and no more than so much memory is had, where the system keeps such a limit."""
    sys.addaudithook(refuse)
    if sys.platform == "win32":
        return
    for which, most in (
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
        # No number above those of the three streams: neither a file nor a socket gets one.
        (resource.RLIMIT_NOFILE, 3),
    ):
        resource.setrlimit(which, (most, most))
    if sys.platform != "darwin":
        # macOS refuses this limit.
        resource.setrlimit(resource.RLIMIT_AS, (most_bytes, most_bytes))


def allow_seconds(seconds: float) -> None:
    """Processor time from now on, after which the system ends this process. The parent counts too,
    and more strictly: this is for when there is no parent any more."""
    if sys.platform == "win32":
        return
    used = resource.getrusage(resource.RUSAGE_SELF)
    _, most = resource.getrlimit(resource.RLIMIT_CPU)
    until = int(used.ru_utime + used.ru_stime + seconds) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (until, most))


def refuse(event: str, _: object) -> None:
    """Raises PermissionError for what a reader of files has no need of."""
    if event.startswith(FORBIDDEN):
        raise PermissionError(f"{event} is not open to this process")
