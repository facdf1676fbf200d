"""Turns to token ids: a text becomes tokens once, and generated tokens stay what they were.

Tokenizing an answer's text again gives other ids than the model chose, and every token after the
first difference would be computed again. So where the rendered text shows what a model generated,
its own ids are put there:

    ids of the answer      " Hel" "lo" "," " you" "\\n"
    rendered            ...:|     Hello, you|<end>           the template trimmed
    used                ...:| " Hel" "lo" "," " you"|<end>

The run of ids must spell the rendered text exactly and reach as far around the content as both
sides agree; what lies outside is tokenized as text.
"""

from codecs import getincrementaldecoder
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import accumulate, takewhile
from typing import NamedTuple

from app.chat.division import NUM_REMEMBERED
from app.chat.markup import MediaPart, Part, TextPart
from app.chat.senses import TEXT_ALONE, UNREAD, Senses
from app.chat.template import ChatTemplate
from app.chat.turns import Turn
from engine.media import Media
from engine.tokenizer import ControlToken, Tokenizer, encode_continuation

MOST_REPLACED = 12
"""Parts at its end that the next prompt of the same branch may have otherwise."""
MEMORY_LIMIT = 8_000_000
"""Characters and ids that are remembered, over all conversations."""


class _Run(NamedTuple):
    """`token_ids` spell the bytes [begin, end) of a part."""

    token_ids: tuple[int, ...]
    begin: int
    end: int


@dataclass(frozen=True, slots=True, eq=False)
class _Encoding:
    """Parts, their ids one after the other, and where each part's end: `ends[0]` is 0."""

    parts: Sequence[Part] = ()
    token_ids: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=lambda: [0])


class TokenLedger:
    """Prompt ids of conversations with one model. Used by one thread at a time."""

    def __init__(
        self,
        tokenizer: Tokenizer,
        template: ChatTemplate,
        memory_limit: int = MEMORY_LIMIT,
        senses: Senses = TEXT_ALONE,
    ) -> None:
        self._tokenizer = tokenizer
        self._template = template
        self._senses = senses
        if senses.ids_of is not None:
            template.show_media(senses.ids_of)
        self._control_ids = frozenset(token.token_id for token in tokenizer.control_tokens.values())
        self._memory = _Memory(memory_limit)
        self._encodings: deque[_Encoding] = deque(maxlen=NUM_REMEMBERED)

    def encode(self, turns: Sequence[Turn], now: datetime) -> list[int]:
        """The prompt for the next answer. It begins with the model's first token, once. Raises
        UsageError for a picture that the model cannot take."""
        read = [self._readable(turn) if turn.media else turn for turn in turns]
        token_ids = self._encode_parts(self._template.render(read, now).parts)
        bos_id = self._tokenizer.bos_id
        if bos_id is not None and token_ids[:1] != [bos_id]:
            token_ids.insert(0, bos_id)
        return token_ids

    def _readable(self, turn: Turn) -> Turn:
        """The turn with what this model can read of its pictures and sounds, and a word about the
        rest, so that it does not answer as if it had seen them."""
        media: list[Media] = []
        unread: list[Media] = []
        for each in turn.media:
            (media if self._senses.can_read(each.kind) else unread).append(each)
        words = "\n".join(UNREAD[each.kind] for each in unread)
        content = "\n\n".join(text for text in (words, turn.content) if text)
        return replace(turn, media=tuple(media), content=content)

    def num_media_tokens(self, media: Iterable[Media]) -> int:
        """Of those that this model can read. Any thread may ask."""
        ids_of = self._senses.ids_of
        readable = [each for each in media if self._senses.can_read(each.kind)]
        return sum(len(ids_of(each)) for each in readable) if ids_of is not None else 0

    def encode_marks(self, texts: Iterable[str]) -> list[int]:
        """Ids of texts as a template would write them: what is a control token becomes one."""
        controls = self._tokenizer.control_tokens
        token_ids: list[int] = []
        for text in texts:
            control = controls.get(text)
            token_ids += [control.token_id] if control else self._tokenizer.encode(text)
        return token_ids

    def _encode_parts(self, parts: Sequence[Part]) -> list[int]:
        """Ids of all parts; those of a known beginning are not looked up one by one."""
        shared = [(_num_identical(each.parts, parts), each) for each in self._encodings]
        num_known, known = max(shared, key=lambda pair: pair[0], default=(0, _Encoding()))
        if num_known and len(known.parts) - num_known <= MOST_REPLACED:
            self._encodings.remove(known)
        ends = known.ends[: num_known + 1]
        token_ids = known.token_ids[: ends[-1]]
        for part in parts[num_known:]:
            if isinstance(part, ControlToken):
                token_ids.append(part.token_id)
            elif isinstance(part, MediaPart):
                token_ids += part.token_ids
            else:
                token_ids += self._encode_part(part)
            ends.append(len(token_ids))
        self._encodings.append(_Encoding(parts, token_ids, ends))
        return list(token_ids)

    def _encode_part(self, part: TextPart) -> Sequence[int]:
        if not any(span.token_ids for span in part.spans):
            return self._encode_text(part.text)
        return self._memory.get(part, _size(part), lambda: self._splice(part))

    def _splice(self, part: TextPart) -> tuple[int, ...]:
        """Generated ids where they spell the text, ids of text between them."""
        text = part.text.encode()
        token_ids: list[int] = []
        done = end = last = 0
        for span in part.spans:
            # From the last span on: from the beginning on, a long text would be read once a span.
            begin = end + len(part.text[last : span.start].encode())
            end = begin + len(part.text[span.start : span.end].encode())
            last = span.end
            if not span.token_ids or begin < done or begin == end:
                continue
            run = self._find_run(span.token_ids, text, done, begin, end)
            if run is not None:
                token_ids += self._encode_text(text[done : run.begin].decode(), done > 0)
                token_ids += run.token_ids
                done = run.end
        token_ids += self._encode_text(text[done:].decode(), done > 0)
        return tuple(token_ids)

    def _find_run(
        self, generated: Sequence[int], text: bytes, done: int, begin: int, end: int
    ) -> _Run | None:
        """The generated ids that spell the bytes around [begin, end), not before `done`."""
        try:
            pieces = [self._tokenizer.token_bytes(token_id) for token_id in generated]
        except IndexError:
            # Another model wrote this, and its vocabulary is larger.
            return None
        # As the answer was shown: what is no character in it has a sign in its place.
        decoder = getincrementaldecoder("utf-8")("replace")
        shown: list[bytes] = []
        # Between the tokens of one character nothing may be put.
        is_border = [True]
        for piece in pieces:
            shown.append(decoder.decode(piece).encode())
            is_border.append(not decoder.getstate()[0])
        spelled = b"".join(shown)
        # The answer stands last; thinking came before it and may quote it.
        place = spelled.rfind(text[begin:end])
        if place < 0:
            return None
        shift = begin - place
        before, after = memoryview(spelled)[:place], memoryview(spelled)[end - shift :]
        left = place - _num_equal(reversed(before), reversed(memoryview(text)[done:begin]))
        right = end - shift + _num_equal(after, memoryview(text)[end:])
        borders = list(accumulate(map(len, shown), initial=0))
        usable = [
            index
            for index, border in enumerate(borders)
            if left <= border <= right and is_border[index]
        ]
        if not usable:
            return None
        first, last = usable[0], usable[-1]
        # A control token that the model wrote is not sent back to it: the run goes around it.
        controls = [i for i in range(first, last) if generated[i] in self._control_ids]
        last = next((i for i in controls if borders[i + 1] > place), last)
        first = max((i + 1 for i in controls if i < last), default=first)
        # Tokens without text at either end belong to what stands outside.
        while first < last and not pieces[first]:
            first += 1
        while first < last and not pieces[last - 1]:
            last -= 1
        run = tuple(generated[first:last])
        if not run:
            return None
        return _Run(run, borders[first] + shift, borders[last] + shift)

    def _encode_text(self, text: str, continues: bool = False) -> Sequence[int]:
        """Ids of plain text; `continues` when the text before it ended in generated ids."""
        if not text:
            return ()

        def encode() -> tuple[int, ...]:
            if continues:
                return tuple(encode_continuation(self._tokenizer, text))
            return tuple(self._tokenizer.encode(text))

        return self._memory.get((text, continues), len(text), encode)


class _Memory:
    """The results used last, up to a total size."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._size = 0
        self._results: OrderedDict[Hashable, tuple[tuple[int, ...], int]] = OrderedDict()

    def get(
        self, key: Hashable, key_size: int, compute: Callable[[], tuple[int, ...]]
    ) -> tuple[int, ...]:
        if (known := self._results.get(key)) is not None:
            self._results.move_to_end(key)
            return known[0]
        result = compute()
        size = key_size + len(result)
        self._results[key] = result, size
        self._size += size
        while self._size > self._limit:
            _, (_, dropped) = self._results.popitem(last=False)
            self._size -= dropped
        return result


def _num_identical(one: Sequence[object], other: Sequence[object]) -> int:
    """How many objects both begin with."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] is pair[1], zip(one, other, strict=False)))


def _num_equal(one: Iterable[int], other: Iterable[int]) -> int:
    """How many bytes both begin with."""
    pairs = takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False))
    return sum(1 for _ in pairs)


def _size(part: TextPart) -> int:
    return len(part.text) + sum(len(span.token_ids) for span in part.spans)
