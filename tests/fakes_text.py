"""For tests of text: a small tokenizer, and twelve families of chat templates."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from app.chat.template import ChatTemplate
from engine.tokenizer import ControlToken

TEMPLATES = Path(__file__).parent / "app" / "chat" / "templates"

PIECES = (
    "\n\n",
    " the",
    " answer",
    "answer",
    "ans",
    "wer",
    "hel",
    "hello",
    "lo",
    " you",
    "user",
    "assistant",
    "system",
    "<|",
    "|>",
    "im_end",
    "think>",
)


class FakeTokenizer:
    """Ids 0 to 255 are bytes; `PIECES` follow, then the control tokens.

    `encode` takes the longest piece, so a text has one canonical spelling and many others.
    With `puts_space_first` every text gets a leading space, as some vocabularies do.
    """

    def __init__(
        self,
        controls: Iterable[str] = ("<|im_start|>", "<|im_end|>"),
        bos: str = "",
        end: str = "<|im_end|>",
        strips: Iterable[str] = (),
        puts_space_first: bool = False,
    ) -> None:
        self._pieces = [bytes([value]) for value in range(256)]
        self._pieces += [piece.encode() for piece in PIECES]
        self._ids = {piece: token_id for token_id, piece in enumerate(self._pieces)}
        first = len(self._pieces)
        self._controls = {
            text: ControlToken(first + index, text, strips_right=text in set(strips))
            for index, text in enumerate(dict.fromkeys((*controls, *([bos] if bos else []))))
        }
        self._bos = bos
        self._end = end
        self._puts_space_first = puts_space_first
        self.encoded: list[str] = []

    @property
    def num_tokens(self) -> int:
        return len(self._pieces) + len(self._controls)

    @property
    def bos_id(self) -> int | None:
        return self._controls[self._bos].token_id if self._bos else None

    @property
    def control_tokens(self) -> Mapping[str, ControlToken]:
        return self._controls

    @cached_property
    def _longest(self) -> int:
        return max(map(len, self._pieces))

    def encode(self, text: str) -> list[int]:
        self.encoded.append(text)
        data = (" " + text if self._puts_space_first else text).encode()
        token_ids, place = [], 0
        while place < len(data):
            for length in range(self._longest, 0, -1):
                token_id = self._ids.get(data[place : place + length])
                if token_id is not None and len(data) - place >= length:
                    token_ids.append(token_id)
                    place += length
                    break
        return token_ids

    def spell_out(self, text: str) -> tuple[int, ...]:
        """Another spelling of the same text: byte by byte."""
        return tuple(text.encode())

    def token_bytes(self, token_id: int) -> bytes:
        if any(token.token_id == token_id for token in self._controls.values()):
            return b""
        if not 0 <= token_id < len(self._pieces):
            raise IndexError(f"token {token_id}")
        return self._pieces[token_id]

    num_end_tokens = 1

    def is_end(self, token_id: int) -> bool:
        return token_id == self._controls[self._end].token_id


@dataclass(frozen=True)
class Family:
    """A chat template with the control tokens of the models that carry it.

    `rewrites_history`: what the model wrote is shown to it in another form later on.
    """

    name: str
    controls: tuple[str, ...]
    bos: str = ""
    eos: str = "</s>"
    strips: tuple[str, ...] = ()
    rewrites_history: bool = False

    @property
    def source(self) -> str:
        return (TEMPLATES / f"{self.name}.jinja").read_text(encoding="utf-8")

    def tokenizer(self) -> FakeTokenizer:
        return FakeTokenizer((*self.controls, self.eos), self.bos, self.eos, self.strips)

    def template(self, tokenizer: FakeTokenizer) -> ChatTemplate:
        return ChatTemplate(self.source, tokenizer, self.bos, self.eos)


_IM = ("<|im_start|>", "<|im_end|>", "<|endoftext|>")
_ROLES = ("<|system|>", "<|user|>", "<|assistant|>", "<|end|>")

FAMILIES = (
    Family("chatml", _IM, eos="<|im_end|>"),
    Family("qwen3", (*_IM, "<think>", "</think>"), eos="<|im_end|>"),
    Family("llama2", (), "<s>"),
    Family(
        "llama3",
        ("<|start_header_id|>", "<|end_header_id|>"),
        "<|begin_of_text|>",
        "<|eot_id|>",
    ),
    Family("mistral", ("[INST]", "[/INST]"), "<s>"),
    Family("gemma", ("<start_of_turn>",), "<bos>", "<end_of_turn>"),
    # The vocabulary takes white space after these tokens for a part of them.
    Family("phi3", _ROLES, eos="<|endoftext|>", strips=_ROLES),
    Family("phi4_mini", _ROLES, eos="<|endoftext|>"),
    Family(
        "deepseek_r1",
        ("<｜User｜>", "<｜Assistant｜>"),
        "<｜begin▁of▁sentence｜>",
        "<｜end▁of▁sentence｜>",
        rewrites_history=True,
    ),
    # The prompt for an answer ends without the line break that its history shows.
    Family("zephyr", (), "", "</s>", rewrites_history=True),
    Family("granite3", ("<|start_of_role|>", "<|end_of_role|>"), eos="<|end_of_text|>"),
    Family("vicuna", (), "<s>"),
)
