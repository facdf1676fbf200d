"""One answer in a given form: first the thinking, if the model thinks, then the form to its end.

opening    the form, or else the tag with which the model begins to think
thinking   free text up to the closing tag, which is put there when the thinking takes too long
between    white space after the tag, or the form
form       what the matcher allows, closed in time before the last token that the answer may have
"""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum, auto

import numpy as np
from numpy.typing import NDArray

from engine.guided.compiler import CompiledGrammar
from engine.tokenizer import THINKING_TAGS, Tokenizer, encode_continuation

# So much of an answer may be thinking; the rest is for what was asked for.
THINKING_SHARE = 0.5
MOST_SPACES = 2
# Whether the end can still be reached is looked at with each of the last tokens. While it is far, a
# look is as dear as some tokens are: it comes after a part of what may still be wasted.
LAST_TOKENS = 64
LOOK_EVERY = 16
LOOK_SHARE = 0.5
BEAM_CLOSING_SECONDS = 0.005
"""It is looked for at every step of every beam, and others wait meanwhile."""
# Where no token is tried ahead, the way to the end is taken while it is so much shorter than what
# is left.
CLOSING_SLACK = 3
# A search that finds nothing takes long; after so many the answer is left to itself.
MOST_VAIN_LOOKS = 2

Row = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Guidance:
    """The form of an answer, and the tag with which its prompt began to think, or empty.

    `is_text`: it is text that only may not have everything in it. Then it ends as text does, by
    its stop texts as well and wherever it is cut.
    """

    grammar: CompiledGrammar
    opened_tag: str = ""
    is_text: bool = False


class _Place(Enum):
    OPENING = auto()
    THINKING = auto()
    BETWEEN = auto()
    FORM = auto()


class GuidedAnswer:
    """Owned by the engine thread, one for each request."""

    def __init__(self, guidance: Guidance, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._vocabulary = guidance.grammar.vocabulary
        self._matcher = guidance.grammar.matcher()
        self._is_text = guidance.is_text
        self._closing_tag = THINKING_TAGS.get(guidance.opened_tag, "")
        self._place = _Place.THINKING if self._closing_tag else _Place.OPENING
        self._opening_tags = {
            control.token_id: closing
            for opening, closing in THINKING_TAGS.items()
            if (control := tokenizer.control_tokens.get(opening)) is not None
        }
        self._thought = b""
        self._num_thought = 0
        self._num_spaces = 0
        self._takes_spaces = False
        # What comes next without being asked for: a closing tag, or the way to the end.
        self._coming: deque[int] = deque()
        self._num_to_end: int | None = None
        self._num_unlooked = LOOK_EVERY
        self._num_vain_looks = 0
        self._is_near = False
        self._is_closing = False
        self._is_shortened = False

    @property
    def is_forced(self) -> bool:
        """The form leaves no choice for a while, or until its end."""
        return self._place is _Place.FORM and self._matcher.is_forced

    @property
    def is_closing(self) -> bool:
        """It is on its way to the end, or there, because it was to be."""
        return self._is_closing

    @property
    def is_shortened(self) -> bool:
        """It came to its end by the way there, because it had no tokens left for another one."""
        return self._is_shortened

    def begin(self, begun: Sequence[int]) -> None:
        """Take what is written of the answer already. Raises GrammarFailed."""
        self._takes_spaces = True
        for token_id in begun:
            self.accept(token_id)

    @property
    def is_restricted(self) -> bool:
        """What comes next is held to the form; it is not while the model thinks."""
        return self._place is not _Place.THINKING

    @property
    def is_complete(self) -> bool:
        """What is written satisfies the form."""
        return self._place is _Place.FORM and self._matcher.is_accepting

    @property
    def is_terminated(self) -> bool:
        """Nothing may follow."""
        return self._place is _Place.FORM and self._matcher.is_terminated

    def pick(self, row: Row, num_left: int, sample: Callable[[Row], int]) -> int:
        """The next token, of which the answer may have `num_left`; `sample` draws from a row.

        Raises GrammarFailed.
        """
        if not self._coming and self._place is _Place.THINKING:
            if self._num_thought < THINKING_SHARE * (self._num_thought + num_left):
                # It ends with its tag, or it would be all of the answer.
                row = row.copy()
                row[self._vocabulary.end_ids] = -np.inf
                return sample(row)
            self._end_thinking()
        if self._coming:
            return self._coming.popleft()
        token_id = sample(self._restricted(row, num_left))
        return token_id if self._is_text else self._in_time(token_id, num_left)

    def allowed(self, row: Row, num_left: int) -> Row:
        """A copy of the row with what may come next, of an answer that may have `num_left` tokens
        more: near its end, only what leads there. Raises GrammarFailed."""
        if self._place is _Place.THINKING:
            row = row.copy()
            row[self._vocabulary.end_ids] = -np.inf
            return row
        restricted = self._restricted(row, num_left)
        if self._place is not _Place.FORM or num_left > LAST_TOKENS:
            return restricted
        way = self._matcher.closing(num_left, BEAM_CLOSING_SECONDS)
        if way is None or len(way) + CLOSING_SLACK < num_left:
            return restricted
        only = way[:1] or self._vocabulary.end_ids
        closing = np.full(len(restricted), -np.inf, np.float32)
        closing[only] = restricted[only]
        return closing

    def _restricted(self, row: Row, num_left: int) -> Row:
        row = row[: self._vocabulary.num_tokens]
        restricted = self._matcher.restrict(row)
        # The last tokens are the form's.
        self._takes_spaces = (
            self._place is _Place.BETWEEN
            and self._num_spaces < MOST_SPACES
            and num_left > LAST_TOKENS
        )
        if self._place is _Place.OPENING:
            for token_id in self._opening_tags:
                restricted[token_id] = row[token_id]
        elif self._takes_spaces:
            spaces = self._vocabulary.spaces
            restricted[spaces] = row[spaces]
        return restricted

    def forced(self, num_left: int) -> list[int]:
        """What comes next without a choice, of an answer that may have `num_left` tokens more;
        each is to be accepted. Empty where there is a choice. Raises GrammarFailed."""
        if self._coming:
            tokens = list(self._coming)
            self._coming.clear()
            return tokens
        is_form = self._place is _Place.FORM
        if not (is_form or self._place is _Place.OPENING and not self._opening_tags):
            return []
        if self._matcher.is_accepting:
            return []
        tokens = self._matcher.forced()
        if len(tokens) >= num_left:
            return []
        self._num_unlooked += len(tokens)
        return tokens

    def possible(self, token_ids: Sequence[int]) -> int:
        """How many of these could come next, one after the other."""
        if self._coming or self._place is not _Place.FORM:
            return 0
        return self._matcher.num_valid(token_ids)

    def accept(self, token_id: int) -> None:
        """Take the token that was picked. Raises GrammarFailed."""
        spelled = self._vocabulary.token_bytes[token_id]
        if self._place is _Place.THINKING:
            self._think(spelled)
        elif self._place is _Place.OPENING and token_id in self._opening_tags:
            self._closing_tag = self._opening_tags[token_id]
            self._place = _Place.THINKING
        elif self._place is _Place.BETWEEN and self._is_space(token_id):
            self._num_spaces += 1
        else:
            self._place = _Place.FORM
            self._matcher.accept(token_id)

    def close(self, num_left: int) -> bool:
        """Let the thinking end now, or else the answer, in at most so many tokens. False: no way
        to its end was found."""
        if self._place is _Place.THINKING:
            self._end_thinking()
            return True
        way = self._matcher.closing(num_left) if self._place is _Place.FORM else None
        if way is None:
            return False
        self._is_closing = True
        self._coming = deque(way)
        return True

    def _end_thinking(self) -> None:
        control = self._tokenizer.control_tokens.get(self._closing_tag)
        if control is not None:
            self._coming.append(control.token_id)
        else:
            self._coming.extend(encode_continuation(self._tokenizer, self._closing_tag))

    def _think(self, spelled: bytes) -> None:
        self._num_thought += 1
        tag = self._closing_tag.encode()
        self._thought = self._thought[-len(tag) :] + spelled
        before, found, after = self._thought.partition(tag)
        if not found:
            return
        self._place = _Place.BETWEEN
        self._coming.clear()
        rest = after.decode("utf-8", "replace").lstrip()
        for token_id in encode_continuation(self._tokenizer, rest):
            # The token with the end of the tag went on into the form.
            self.accept(token_id)

    def _is_space(self, token_id: int) -> bool:
        is_possible = self._takes_spaces and self._num_spaces < MOST_SPACES
        return is_possible and bool(np.any(self._vocabulary.spaces == token_id))

    def _in_time(self, token_id: int, num_left: int) -> int:
        """The token, unless the end could not be reached after it; then the way there begins."""
        if self._place is not _Place.FORM and (
            token_id in self._opening_tags or self._is_space(token_id)
        ):
            return token_id
        if token_id in self._vocabulary.end_ids:
            return token_id
        self._num_unlooked += 1
        near = max(LAST_TOKENS, 2 * (self._num_to_end or 0))
        patience = max(LOOK_EVERY, LOOK_SHARE * (num_left - near))
        if num_left > near and self._num_unlooked < patience:
            return token_id
        if not self._is_near and num_left <= near:
            # What was vain from afar may be short now.
            self._is_near = True
            self._num_vain_looks = 0
        if self._num_vain_looks >= MOST_VAIN_LOOKS:
            return token_id
        self._num_unlooked = 0
        ahead = self._matcher.copy()
        ahead.accept(token_id)
        way = ahead.closing(num_left - 1)
        if way is not None:
            self._num_to_end = len(way)
            self._num_vain_looks = 0
            return token_id
        self._num_vain_looks += 1
        if num_left > near:
            # Too far to be found, which is no reason to hurry.
            return token_id
        way = self._matcher.closing(num_left)
        if way is None:
            return token_id
        self._is_shortened = True
        if not way:
            return self._vocabulary.eos_token_id
        self._coming.extend(way[1:])
        return way[0]
