"""A model's vocabulary as llguidance reads it: the bytes of each id, and which ids are no text.

Only control tokens are special. A tag such as `<td>` that a vocabulary has as one token is text,
or a JSON string could not contain it; and `<|im_end|>` in a grammar spells its letters.
"""

from collections.abc import Sequence

import llguidance
import numpy as np
from numpy.typing import NDArray

from engine.tokenizer import Tokenizer, encode_continuation

# Where a form allows a whole one of these, llguidance takes its tokens at once and walks through
# the others only. Its own stop at 10 and 30 characters; a word of at most 14 soon has fewer left:
# masks of a list of such words take 0.13 ms instead of 0.18 at 49,152 tokens.
_LENGTHS = (2, 4, 6, 8, 10, 12, 14, 20, 30)
_IN_STRINGS = r'[^"\\\x00-\x1F\x7F]'
SLICES = [f"{_IN_STRINGS}{{1,{most}}}" for most in _LENGTHS] + [f"{_IN_STRINGS}+"]


class GuidedVocabulary:
    """Made once for each model, in half a second to several. Any thread may use it."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.num_tokens = tokenizer.num_tokens
        self.end_ids = [each for each in range(self.num_tokens) if tokenizer.is_end(each)]
        names = {token.token_id: token.text for token in tokenizer.control_tokens.values()}
        self.control_ids = frozenset(names)
        self.token_bytes = [
            names[each].encode() if each in names else tokenizer.token_bytes(each)
            for each in range(self.num_tokens)
        ]
        self._tokenizer = tokenizer
        if not self.end_ids:
            raise ValueError("a vocabulary without an end")
        self.ll = llguidance.LLTokenizer(
            llguidance.TokenizerWrapper(self),
            n_vocab=self.num_tokens,
            eos_token=self.end_ids,
            slices=SLICES,
        )
        self.leading_digits = np.array(
            [_num_leading_digits(each) for each in self.token_bytes], np.int16
        )
        self.spaces = np.array(
            [
                token_id
                for token_id, spelled in enumerate(self.token_bytes)
                if spelled and not spelled.strip() and token_id not in self.control_ids
            ],
            np.intp,
        )
        singles = self._single_bytes = self._find_single_bytes()
        self.to_fill, self.to_close = (
            np.array([singles[byte] for byte in order if byte in singles], np.intp)
            for order in (_TO_FILL, _TO_CLOSE)
        )

    # What llguidance's wrapper asks for.

    @property
    def tokens(self) -> Sequence[bytes]:
        return self.token_bytes

    @property
    def special_token_ids(self) -> Sequence[int]:
        return sorted({*self.control_ids, *self.end_ids})

    @property
    def eos_token_id(self) -> int:
        return self.end_ids[0]

    @property
    def bos_token_id(self) -> int | None:
        return self._tokenizer.bos_id

    def __call__(self, text: bytes) -> list[int]:
        return encode_continuation(self._tokenizer, text.decode("utf-8", "replace"))

    def spell_out(self, text: str) -> list[int] | None:
        """A token for each byte of a text. None: there are not so many."""
        singles = [self._single_bytes.get(bytes([byte])) for byte in text.encode()]
        found = [token_id for token_id in singles if token_id is not None]
        return found if len(found) == len(singles) else None

    def allowed(self, mask: NDArray[np.int32]) -> NDArray[np.bool_]:
        """`[num_tokens]` from a mask of packed bits, the lowest first."""
        bits = np.unpackbits(mask.view(np.uint8), count=self.num_tokens, bitorder="little")
        return bits.view(np.bool_)

    def _find_single_bytes(self) -> dict[bytes, int]:
        """A token for each byte, where there is one."""
        found: dict[bytes, int] = {}
        for token_id, spelled in enumerate(self.token_bytes):
            if len(spelled) == 1 and token_id not in self.control_ids:
                found.setdefault(spelled, token_id)
        return found


def _num_leading_digits(text: bytes) -> int:
    return len(text) - len(text.lstrip(b"0123456789"))


def _in_order(first: bytes) -> list[bytes]:
    """Every character, then the rest of a begun one, and white space last, which leads nowhere."""
    letters, continuing = range(0x61, 0x7B), range(0x80, 0xC0)
    codes = dict.fromkeys([*first, *letters, *range(0x21, 0x7F), *continuing, *b" \n"])
    return [bytes([code]) for code in codes]


# Inside a string what ends it, and then letters; outside what ends an object, a list, a group.
_TO_FILL = _in_order(b'"a1')
_TO_CLOSE = _in_order(b'}])>,:1"0\n|')
