"""Telling what a template wrote from what people, files and models wrote.

    content     "Hi <|im_end|>"
    protected   OPEN "Hi <" BREAK "|im_end|>" CLOSE          goes into the template
    rendered    "<|im_start|>user\\n" OPEN ... CLOSE "<|im_end|>\\n"
    divided     control, text "user\\nHi <|im_end|>" with a span over the content, control, text

Between OPEN and CLOSE nothing is a control token. Should a template cut a content to pieces, so
that a bracket is lost, the breaks still keep every control text in it apart. The marks are
characters that no text of this rendering contains.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

from engine.tokenizer import THINKING_TAGS, ControlToken

_THINKING_TAGS = frozenset(THINKING_TAGS) | frozenset(THINKING_TAGS.values())


@dataclass(frozen=True, slots=True)
class Span:
    """Where in a text a content stands, without white space at its edges.

    `token_ids` are the ids of the generation it comes from, or empty.
    """

    start: int
    end: int
    token_ids: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class TextPart:
    """Text that becomes plain tokens, whatever it spells. Spans are in order, never nested."""

    text: str
    spans: tuple[Span, ...] = ()


@dataclass(frozen=True, slots=True)
class MediaPart:
    """A picture or a sound: the ids that stand for it. It spells nothing."""

    token_ids: tuple[int, ...]
    text: str = ""


Part = TextPart | ControlToken | MediaPart


@dataclass(frozen=True, slots=True)
class Rendered:
    """A rendered conversation: text, the control tokens that the template put between, and what was
    shown with the text."""

    parts: tuple[Part, ...]

    @property
    def text(self) -> str:
        return "".join(part.text for part in self.parts)


class TextFinder:
    """Finds any of many short texts, each of two characters or more; built once."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = frozenset(texts)
        self._lengths = sorted({len(text) for text in texts}, reverse=True)
        seconds: dict[str, set[str]] = {}
        for text in self._texts:
            seconds.setdefault(text[0], set()).add(text[1])
        heads = [f"{re.escape(head)}(?={_any_of(seconds[head])})" for head in sorted(seconds)]
        self._head = re.compile("|".join(heads) or r"(?!)")

    def at(self, text: str, place: int) -> str:
        """The longest of the texts that stands at `place`, or an empty one."""
        for length in self._lengths:
            if (found := text[place : place + length]) in self._texts:
                return found
        return ""

    def places(self, text: str) -> Iterator[int]:
        """Every place where one of the texts begins, overlapping ones as well."""
        for match in self._head.finditer(text):
            if self.at(text, match.start()):
                yield match.start()

    def parts(self, text: str) -> Iterator[tuple[str, str]]:
        """(text before, found text) from left to right; the last one found is empty."""
        begin = 0
        for match in self._head.finditer(text):
            if match.start() >= begin and (found := self.at(text, match.start())):
                yield text[begin : match.start()], found
                begin = match.start() + len(found)
        yield text[begin:], ""


class ControlTexts:
    """The control tokens of one vocabulary, as far as a template can write them.

    Left out: texts of one character, and texts with white space at an edge. They could not be
    told from content that was cut or trimmed; no model's template writes one.
    """

    def __init__(self, control_tokens: Mapping[str, ControlToken]) -> None:
        self.tokens = {
            text: token
            for text, token in control_tokens.items()
            if len(text) > 1 and text == text.strip()
        }
        self.written = TextFinder(list(self.tokens))
        # A template that looks for thinking tags must not find those that are only talked about.
        self.kept_apart = TextFinder([*self.tokens, *_THINKING_TAGS])


@dataclass(slots=True)
class Marker:
    """The marks of one rendering. Made for it, and gone after it."""

    controls: ControlTexts
    used: frozenset[str]
    """Every character beyond ASCII that may occur in the rendering."""
    _free: Iterator[str] = field(init=False)
    _break: str = field(init=False)
    _closing: dict[str, str] = field(init=False, default_factory=dict)
    _token_ids: dict[str, tuple[int, ...]] = field(init=False, default_factory=dict)
    _media: set[str] = field(init=False, default_factory=set)

    def __post_init__(self) -> None:
        # Noncharacters first, then characters for private use.
        planes = chain(range(0xFDD0, 0xFDF0), range(0xF0000, 0xFFFFE), range(0x100000, 0x10FFFE))
        self._free = (mark for code in planes if (mark := chr(code)) not in self.used)
        self._break = next(self._free)

    def protect(self, content: str, token_ids: tuple[int, ...] = ()) -> str:
        """The content with marks, white space at its edges outside, where it can be trimmed."""
        core = content.strip()
        if not core:
            return content
        begin = content.index(core)
        opening, closing = next(self._free), next(self._free)
        self._closing[opening] = closing
        self._token_ids[opening] = token_ids
        pieces, last = [content[:begin], opening], 0
        for place in self.controls.kept_apart.places(core):
            pieces += [core[last : place + 1], self._break]
            last = place + 1
        pieces += [core[last:], closing, content[begin + len(core) :]]
        return "".join(pieces)

    def place(self, media_ids: tuple[int, ...]) -> str:
        """Marks that stand for a picture or a sound with these ids."""
        opening, closing = next(self._free), next(self._free)
        self._closing[opening] = closing
        self._token_ids[opening] = media_ids
        self._media.add(opening)
        return opening + closing

    def is_media(self, opening: str) -> bool:
        return opening in self._media

    @property
    def brackets(self) -> Mapping[str, str]:
        """The mark that opens each content, and the one that closes it."""
        return self._closing

    def token_ids_of(self, opening: str) -> tuple[int, ...]:
        return self._token_ids[opening]

    def any_mark(self) -> re.Pattern[str]:
        return re.compile(_any_of([self._break, *self._closing, *self._closing.values()]))

    def any_bracket(self) -> re.Pattern[str]:
        brackets = [*self._closing, *self._closing.values()]
        return re.compile(_any_of(brackets)) if brackets else re.compile(r"(?!)")


def _any_of(characters: Iterable[str]) -> str:
    """A pattern for one of the characters; thousands of neighbours are searched as one range."""
    ranges: list[list[int]] = []
    for code in sorted(map(ord, characters)):
        if ranges and code == ranges[-1][1] + 1:
            ranges[-1][1] = code
        else:
            ranges.append([code, code])
    return "[" + "".join(f"{_escaped(low)}-{_escaped(high)}" for low, high in ranges) + "]"


def _escaped(code: int) -> str:
    return f"\\U{code:08x}"
