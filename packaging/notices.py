"""The licences of everything in a package, as one text that people can read."""

from collections.abc import Sequence

from components import Component

LINE = "=" * 78
HEAD = """\
Inglenook is under the Apache License, Version 2.0; its text is in LICENSE. It is delivered with
the parts below, which keep their own licences. Each is named with its version and its licence, and
the texts that came with it follow.

PyInstaller's bootloader is under the GPL with an exception that lets programs of any licence be
made with it. The libraries of GCC are under the GPL with the GCC Runtime Library Exception.
"""


def notices(found: Sequence[Component]) -> str:
    """A text that stands in several parts is printed once, and named after that."""
    index = "\n".join(f"  {each.name} {each.version}: {each.licence}" for each in found)
    printed: dict[str, str] = {}
    pieces = [HEAD, index]
    for each in found:
        pieces.append(f"{LINE}\n{each.name} {each.version} ({each.role})\n{each.licence}\n{LINE}")
        for name, text in each.texts:
            known = printed.setdefault(text.strip(), each.name)
            same = f"{name}: the same text as for {known}, above."
            pieces.append(text.strip() if known == each.name else same)
        if not each.texts:
            pieces.append("It came without a text of its licence.")
    return "\n\n".join(pieces) + "\n"
