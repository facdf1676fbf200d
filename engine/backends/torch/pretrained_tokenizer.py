"""A tokenizer of transformers as the house's."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from engine.errors import ModelUnsupported
from engine.tokenizer import ControlToken, is_shown

_SPACE = "\N{LOWER ONE EIGHTH BLOCK}"
# Ends of turns that files sometimes forget to name; llama.cpp takes them for ends, too.
_ENDS = (
    *("<|im_end|>", "<|eot_id|>", "<|end|>", "<end_of_turn>", "<|endoftext|>", "<|end_of_text|>"),
    *("<|eom_id|>", "<EOT>", "</s>", "<eos>"),
)


class PretrainedTokenizer:
    """Safe to call from any thread: nothing changes after construction."""

    def __init__(self, library: Any, ends: frozenset[int], *, max_tokens: int) -> None:
        """`library` is a fast tokenizer of transformers; `max_tokens`: the model's rows."""
        self._backend = library.backend_tokenizer
        self._num_tokens = min(len(library), max_tokens)
        added = library.added_tokens_decoder
        self._control_tokens = {
            each.content: ControlToken(number, each.content, each.lstrip, each.rstrip)
            for number, each in sorted(added.items())
            if each.special and number < self._num_tokens
        }
        spell = _speller(self._backend)
        names = library.convert_ids_to_tokens(list(range(self._num_tokens)))
        self._bytes = [
            b"" if name is None else name.encode() if number in added else spell(name)
            for number, name in enumerate(names)
        ]
        for text, token in self._control_tokens.items():
            self._bytes[token.token_id] = text.encode() if is_shown(text) else b""
        self._ends = frozenset(each for each in ends if 0 <= each < self._num_tokens)
        bos = library.bos_token_id
        begun = library.encode("a")
        self._bos_id = bos if bos is not None and begun[:1] == [bos] else None
        # What looks special in a text is text. After `encode`, which sets it anew.
        self._backend.encode_special_tokens = True

    @property
    def num_tokens(self) -> int:
        return self._num_tokens

    @property
    def num_end_tokens(self) -> int:
        return len(self._ends)

    @property
    def bos_id(self) -> int | None:
        return self._bos_id

    @property
    def control_tokens(self) -> Mapping[str, ControlToken]:
        return self._control_tokens

    def encode(self, text: str) -> list[int]:
        # A lone surrogate can reach us from a broken paste; it has no UTF-8.
        sound = text.encode("utf-8", "replace").decode("utf-8")
        found: list[int] = self._backend.encode(sound, add_special_tokens=False).ids
        return found

    def token_bytes(self, token_id: int) -> bytes:
        if not 0 <= token_id < self._num_tokens:
            raise IndexError(f"token {token_id} of {self._num_tokens}")
        return self._bytes[token_id]

    def is_end(self, token_id: int) -> bool:
        return token_id in self._ends


def end_ids(folder: Path, config: Any, library: Any) -> frozenset[int]:
    """All that ends an answer: by the folder's files, and by the names that everybody uses."""
    named = [getattr(config, "eos_token_id", None), library.eos_token_id]
    try:
        text = (folder / "generation_config.json").read_text(encoding="utf-8")
        named.append(json.loads(text).get("eos_token_id"))
    except (OSError, ValueError, AttributeError, RecursionError):
        # There need not be one.
        pass
    found: set[int] = set()
    for each in named:
        found |= set(each) if isinstance(each, list) else {each}
    control = {
        token.content: number
        for number, token in library.added_tokens_decoder.items()
        if token.special
    }
    found |= {control[text] for text in _ENDS if text in control}
    return frozenset(each for each in found if isinstance(each, int))


def _speller(backend: Any) -> "_Speller":
    decoder = json.loads(backend.to_str()).get("decoder") or {}
    parts = [decoder, *decoder.get("decoders", ())]
    kinds = {each.get("type") for each in parts}
    if "ByteLevel" in kinds:
        return _Speller(_byte_letters())
    if kinds & {"ByteFallback", "Metaspace", "Replace"}:
        return _Speller({})
    raise ModelUnsupported(
        f"The tokenizer of this model puts its words together in a way that is not known here"
        f" ({', '.join(sorted(map(str, kinds)))}): bring a GGUF file of it."
    )


class _Speller:
    """The bytes of a token's name: of letters that stand for bytes, or of text with bytes as
    `<0x0A>` and a sign for the space."""

    def __init__(self, letters: Mapping[str, int]) -> None:
        self._letters = letters

    def __call__(self, name: str) -> bytes:
        if self._letters:
            return b"".join(
                bytes([self._letters[each]]) if each in self._letters else each.encode()
                for each in name
            )
        if len(name) == 6 and name.startswith("<0x") and name.endswith(">"):
            return bytes([int(name[3:5], 16)])
        return name.replace(_SPACE, " ").encode()


def _byte_letters() -> dict[str, int]:
    """Of GPT-2 (openai/gpt-2, encoder.py): bytes that can be shown stand for themselves, and the
    others for the letters from 256 on, in their order."""
    shown = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    letters = {chr(byte): byte for byte in shown}
    others = (byte for byte in range(256) if byte not in shown)
    return letters | {chr(256 + number): byte for number, byte in enumerate(others)}
