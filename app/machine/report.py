"""A text about this machine that can be sent to others: no names, no keys, no words of chats."""

import platform
from collections.abc import Mapping

from app.machine.check import Check
from app.machine.findings import Findings
from app.machine.wording import check_lines, lines_of
from app.redaction import redact
from app.version import VERSION, version_of

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
        f"Inglenook {VERSION}, llama-cpp-python {version_of('llama-cpp-python')}",
        f"{platform.platform()}, Python {platform.python_version()}",
        "",
        *lines_of(findings),
    ]
    if self_test is not None:
        lines += ["", "Self-test", *check_lines(self_test)]
    return redact("\n".join(lines), secrets) + "\n"
