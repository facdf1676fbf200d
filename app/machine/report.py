"""A text about this machine that can be sent to others: no names, no keys, no words of chats."""

import getpass
import os
import platform
import re
import socket
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from app.api.keys import VARIABLE
from app.machine.check import Check
from app.machine.findings import Findings
from app.machine.wording import check_lines, lines_of
from app.paths import Paths
from app.versions import version_of

HEAD = (
    "Inglenook, report on a machine. Names of the user and the computer, folders and the key are"
    " left out; nothing of a conversation is in it."
)


def report_text(
    findings: Findings, secrets: Mapping[str, str], self_test: list[Check] | None = None
) -> str:
    """`secrets`: what must not be in it, and what stands there instead."""
    lines = [
        HEAD,
        "",
        f"Inglenook {version_of('inglenook')}, llama-cpp-python {version_of('llama-cpp-python')}",
        f"{platform.platform()}, Python {platform.python_version()}",
        "",
        *lines_of(findings),
    ]
    if self_test is not None:
        lines += ["", "Self-test", *check_lines(self_test)]
    return without(secrets, "\n".join(lines)) + "\n"


def secrets_of(paths: Paths, model: Path | None = None) -> dict[str, str]:
    """Everything of this home, and of where its model lies, that says who its user is; each with
    its stand-in."""
    found = {os.environ.get(VARIABLE, "").strip(): "[key]"}
    with suppress(OSError, UnicodeDecodeError):
        found[paths.api_key.read_text(encoding="utf-8").strip()] = "[key]"
    for folder, name in (
        (paths.data, "data"),
        (paths.cache, "cache"),
        (paths.models, "models"),
        (paths.logs, "logs"),
    ):
        found[str(folder)] = f"[{name}]"
    if model is not None:
        found.setdefault(str(model.parent), "[folder of the model]")
    found[str(Path.home())] = "~"
    # There are users without a name, as in some containers.
    with suppress(OSError, KeyError, ImportError):
        found[getpass.getuser()] = "[user]"
    found[socket.gethostname()] = "[computer]"
    return found


def without(secrets: Mapping[str, str], text: str) -> str:
    """Longer ones first: a folder may lie in another, and have the user's name in it. Of a text
    that is a word, only the whole word is a secret."""
    for secret in sorted(filter(None, secrets), key=len, reverse=True):
        whole = re.escape(secret)
        if re.fullmatch(r"\w+", secret):
            whole = rf"(?<!\w){whole}(?!\w)"
        text = re.sub(whole, secrets[secret].replace("\\", r"\\"), text)
    return text
