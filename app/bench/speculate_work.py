"""What is asked in `bench speculate`: work that says again what was said, and free writing."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

from app.bench.chat_texts import sentences

STORY = (
    "The lighthouse stood on the northern cliff, where the wind never rested. Its keeper, a quiet"
    " man named Tomas Berg, climbed the two hundred and eleven steps every evening to light the"
    " lamp. In winter the sea threw stones against the windows, and he wrote the hour of every"
    " storm into a green book. Nobody had asked him to. When the ships stopped coming he went on"
    " writing, and the book grew as thick as a loaf of bread."
)
CODE = """def area(width, height):
    if width < 0 or height < 0:
        raise ValueError("a side cannot be negative")
    return width * height


def volume(width, height, depth):
    if depth < 0:
        raise ValueError("a side cannot be negative")
    return area(width, height) * depth
"""
LEDGER = " ".join(islice(sentences(1), 18))


@dataclass(frozen=True, slots=True)
class Work:
    """A question; `is_copying` says that its answer repeats much of it."""

    name: str
    question: str
    is_copying: bool


WORKS: Sequence[Work] = (
    Work("repeat a text", f"Repeat this text word for word:\n\n{STORY}", True),
    Work(
        "edit code",
        f"```python\n{CODE}```\nWrite this code again with a short docstring in each function.",
        True,
    ),
    Work(
        "answer with quotations",
        f"{LEDGER}\n\nQuote every sentence of this text in which something was sold, word for word,"
        " one on each line.",
        True,
    ),
    Work("tell a story", "Tell me a story about a bear who learns to swim.", False),
    Work("explain", "Explain in plain words how a bicycle stays upright.", False),
    Work(
        "write beside a text",
        f"{LEDGER}\n\nWrite a poem about the sea that has nothing to do with this text.",
        False,
    ),
)
