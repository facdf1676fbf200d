"""A rendered conversation, divided at the template's control tokens; going on from the last time.

    last time   <|im_start|> user .. <|im_end|> <|im_start|> assistant ..
    now         <|im_start|> user .. <|im_end|> <|im_start|> assistant .. <|im_end|> ...
                |<------- the same marks, so the same parts ------->|

A turn adds to the end, so that only the end has to be divided again. The parts before it are the
very objects of the last time, which is how the ledger knows them.
"""

from bisect import bisect_right
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from app.chat.markup import Marker, MediaPart, Part, Rendered, Span, TextPart
from engine.tokenizer import ControlToken

# What llama.cpp and transformers take for white space beside a token that strips it.
STRIPPED = " \t\n\v\f\r"
NUM_REMEMBERED = 16
MOST_REPLACED = 3
"""Contents that a rendering may lose to the next one of the same branch."""
STRIDE = 4096


class _Border(NamedTuple):
    """Behind a control token: so much is marked text, so many parts, so many contents."""

    place: int
    num_parts: int
    num_contents: int


@dataclass(frozen=True, slots=True, eq=False)
class _Division:
    """`contents` are the opening marks and the ids, in the order in which they stand."""

    marked: str
    parts: tuple[Part, ...]
    borders: tuple[_Border, ...]
    contents: tuple[tuple[str, tuple[int, ...]], ...]


class Divider:
    """Divides the renderings of one template. Remembers the last few. One at a time."""

    def __init__(self) -> None:
        self._last: deque[_Division] = deque(maxlen=NUM_REMEMBERED)

    def divide(self, marked: str, marker: Marker) -> Rendered:
        """The rendered text without marks, divided at the template's control tokens."""
        longest = max(map(len, marker.controls.tokens), default=0)
        old, border = self._find(marked, marker, longest)
        builder = _Builder(list(old.parts[: border.num_parts]) if old else [])
        contents = list(old.contents[: border.num_contents]) if old else []
        borders = [each for each in old.borders if each <= border] if old else []
        any_mark, any_bracket = marker.any_mark(), marker.any_bracket()

        def add_scaffold(begin: int, end: int) -> None:
            place = begin
            is_clean = True
            for before, found in marker.controls.written.parts(marked[begin:end]):
                builder.add_text(any_mark.sub("", before))
                # Beside a stray mark, what comes later may change what this is a part of.
                is_clean = is_clean and not any_bracket.search(before)
                place += len(before) + len(found)
                if found:
                    builder.add_control(marker.controls.tokens[found])
                    if is_clean:
                        borders.append(_Border(place, builder.num_parts, len(contents)))

        begin = border.place
        for opening, start, end in _contents(marked, marker, begin):
            add_scaffold(begin, start)
            token_ids = marker.token_ids_of(opening)
            if marker.is_media(opening):
                builder.add_media(token_ids)
            else:
                builder.add_content(any_mark.sub("", marked[start + 1 : end]), token_ids)
            contents.append((opening, token_ids))
            begin = end + 1
        add_scaffold(begin, len(marked))
        parts = builder.finish()
        if old is not None and len(old.contents) - border.num_contents <= MOST_REPLACED:
            # It was gone on with. Otherwise this is another branch, and both are remembered.
            self._last.remove(old)
        self._last.append(_Division(marked, parts, tuple(borders), tuple(contents)))
        return Rendered(parts)

    def _find(
        self, marked: str, marker: Marker, longest: int
    ) -> "tuple[_Division | None, _Border]":
        """The last division that shares most, and the border up to which it does."""
        best, best_border = None, _Border(0, 0, 0)
        for old in self._last:
            # A control text at the very end of what is shared may go on in another way.
            num_shared = _num_shared(old.marked, marked) - longest
            index = bisect_right(old.borders, num_shared, key=lambda border: border.place)
            if index == 0:
                continue
            border = old.borders[index - 1]
            contents = old.contents[: border.num_contents]
            if border > best_border and all(
                opening in marker.brackets and marker.token_ids_of(opening) == token_ids
                for opening, token_ids in contents
            ):
                best, best_border = old, border
        return best, best_border


class _Builder:
    """Collects parts from left to right."""

    def __init__(self, parts: list[Part]) -> None:
        self._parts = parts
        self._text = ""
        self._spans: list[Span] = []

    @property
    def num_parts(self) -> int:
        return len(self._parts)

    def add_text(self, text: str) -> None:
        self._text += text

    def add_content(self, text: str, token_ids: tuple[int, ...]) -> None:
        start = len(self._text)
        self._text += text
        self._spans.append(Span(start, len(self._text), token_ids))

    def add_control(self, token: ControlToken) -> None:
        self._close(before=token)
        self._parts.append(token)

    def add_media(self, token_ids: tuple[int, ...]) -> None:
        self._close(before=None)
        self._parts.append(MediaPart(token_ids))

    def finish(self) -> tuple[Part, ...]:
        self._close(before=None)
        return tuple(self._parts)

    def _close(self, before: ControlToken | None) -> None:
        text, cut = self._text, 0
        if self._parts and isinstance(last := self._parts[-1], ControlToken) and last.strips_right:
            cut = len(text) - len(text.lstrip(STRIPPED))
        if before is not None and before.strips_left:
            text = text.rstrip(STRIPPED)
        text = text[cut:]
        if text:
            spans = tuple(
                Span(max(span.start - cut, 0), min(span.end - cut, len(text)), span.token_ids)
                for span in self._spans
            )
            self._parts.append(TextPart(text, spans))
        self._text, self._spans = "", []


def _contents(marked: str, marker: Marker, begin: int) -> Iterator[tuple[str, int, int]]:
    """(opening mark, its place, place of its closing mark) of every complete content."""
    places = [match.start() for match in marker.any_bracket().finditer(marked, begin)]
    for start, end in zip(places, places[1:], strict=False):
        if marker.brackets.get(marked[start]) == marked[end]:
            yield marked[start], start, end


def _num_shared(one: str, other: str) -> int:
    """How many characters both begin with."""
    length = min(len(one), len(other))
    place = 0
    while place < length and one[place : place + STRIDE] == other[place : place + STRIDE]:
        place += STRIDE
    place = min(place, length)
    end = min(place + STRIDE, length)
    while place < end and one[place] == other[place]:
        place += 1
    return place
