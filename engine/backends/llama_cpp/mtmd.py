"""llama.cpp's multimodal part (mtmd): from a picture or a sound to marks and embeddings."""

import ctypes
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar
from weakref import finalize

import numpy as np
from numpy.typing import NDArray

from engine.backends.llama_cpp.library import bindings, collected_log, log_callback
from engine.backends.llama_cpp.model import LlamaModel
from engine.errors import EngineError, ModelDamaged, ModelUnsupported
from engine.media import Media, MediaKind, num_resampled, resampled

NOT_BUILT = (
    "The engine was built without its part for pictures and sounds: install again with `make"
    " install`, or take a package that has it."
)
T = TypeVar("T")

_TEXT = 0
_KINDS = {1: MediaKind.IMAGE, 2: MediaKind.AUDIO}


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of what a medium becomes: text, as ids, or `num_tokens` positions without ids.

    `is_whole`: all positions look at one another.
    """

    token_ids: tuple[int, ...] = ()
    num_tokens: int = 0
    is_whole: bool = False

    @property
    def is_text(self) -> bool:
        return self.num_tokens == 0


class Mtmd:
    """One mmproj file beside the model that it was made for.

    `divide` may be called from any thread, `encode` by one at a time. It is freed when nobody
    holds it any more: a picture may still be looked at when the engine is closed.
    """

    def __init__(
        self, path: Path, model: LlamaModel, *, threads: int, most_tokens: int | None = None
    ) -> None:
        """`most_tokens` of a picture, where the model can take it with more or fewer. Raises a
        ModelError."""
        self._library = library = _load()
        # Its vocabulary is asked in every `divide`.
        self._model = model.handle
        self._width = int(bindings.llama_model_n_embd_inp(model.pointer))
        params = library.mtmd_context_params_default()
        params.use_gpu = params.print_timings = params.warmup = False
        params.n_threads = threads
        if most_tokens is not None:
            params.image_max_tokens = most_tokens
        with collected_log() as log:
            pointer = library.mtmd_init_from_file(os.fsencode(path), model.pointer, params)
            if not pointer:
                raise ModelDamaged(
                    f"{path.name} cannot be used with {model.path.name} ({_reason(log)}): name the"
                    " mmproj file that was made with this model."
                )
        self._pointer = pointer
        finalize(self, library.mtmd_free, pointer).atexit = False
        self._marker: bytes = library.mtmd_get_marker(pointer)
        self.has_vision = bool(library.mtmd_support_vision(pointer))
        self.has_audio = bool(library.mtmd_support_audio(pointer))
        self.has_grid_positions = bool(library.mtmd_decode_use_mrope(pointer))
        """The model counts positions in rows and columns (M-RoPE)."""
        rate = library.mtmd_get_audio_sample_rate(pointer)
        self._sample_rate = rate if rate > 0 else 1

    def divide(self, media: Media) -> list[Chunk]:
        """What a medium becomes, told from its size alone. Raises EngineError."""
        return self._divided(media, None, lambda number, chunk, pointer: chunk)

    def encode(self, media: Media) -> list[NDArray[np.float32]]:
        """The embeddings `[num_tokens, width]` of each chunk that is no text. Takes seconds, and
        raises EngineError or what `media.load` raises."""
        content = media.load()
        if len(content) != media.num_bytes:
            raise EngineError(
                f"The {_NAMES[media.kind]} has {len(content):,} bytes and should have"
                f" {media.num_bytes:,}: add it to a new message again."
            )
        encoded = self._divided(media, content, self._encode)
        return [each for each in encoded if each is not None]

    def _encode(self, number: int, chunk: Chunk, pointer: Any) -> NDArray[np.float32] | None:
        if chunk.is_text:
            return None
        with collected_log() as log:
            if self._library.mtmd_encode_chunk(self._pointer, pointer) != 0:
                raise EngineError(
                    f"The model could not look at this ({_reason(log)}): try another one."
                )
            values = self._library.mtmd_get_output_embd(self._pointer)
        copy = np.ctypeslib.as_array(values, (chunk.num_tokens, self._width)).copy()
        if not np.isfinite(copy).all():
            raise EngineError(
                "What the model saw holds numbers that are none: its mmproj file may be damaged,"
                " bring it again."
            )
        return copy

    def _divided(
        self, media: Media, content: bytes | None, take: Callable[[int, Chunk, Any], T]
    ) -> list[T]:
        library = self._library
        text = library.mtmd_input_text(self._marker, len(self._marker), False, True)
        chunks = library.mtmd_input_chunks_init()
        bitmap, kept = self._bitmap(media, content)
        try:
            bitmaps = (ctypes.c_void_p * 1)(bitmap)
            with collected_log() as log:
                code = library.mtmd_tokenize(self._pointer, chunks, ctypes.byref(text), bitmaps, 1)
            if code != 0:
                raise EngineError(
                    f"The model cannot take this {_NAMES[media.kind]} ({_reason(log)}): try another"
                    " one."
                )
            pointers = [
                library.mtmd_input_chunks_get(chunks, number)
                for number in range(library.mtmd_input_chunks_size(chunks))
            ]
            return [
                take(number, self._chunk(pointer), pointer)
                for number, pointer in enumerate(pointers)
            ]
        finally:
            library.mtmd_bitmap_free(bitmap)
            library.mtmd_input_chunks_free(chunks)
            del kept

    def _bitmap(self, media: Media, content: bytes | None) -> tuple[Any, Any]:
        """mtmd's own copy of it, and what it was copied from; without content a placeholder of its
        size."""
        library = self._library
        if media.kind is MediaKind.IMAGE:
            pixels = None if content is None else np.frombuffer(content, np.uint8)
            place = None if pixels is None else pixels.ctypes.data_as(_BYTES)
            return library.mtmd_bitmap_init(media.width, media.height, place), pixels
        if content is None:
            count = num_resampled(media.width, self._sample_rate)
            return library.mtmd_bitmap_init_from_audio(count, None), None
        samples = resampled(np.frombuffer(content, np.float32), self._sample_rate)
        values = samples.ctypes.data_as(_FLOATS)
        return library.mtmd_bitmap_init_from_audio(len(samples), values), samples

    def _chunk(self, pointer: Any) -> Chunk:
        library = self._library
        count = int(library.mtmd_input_chunk_get_n_tokens(pointer))
        if library.mtmd_input_chunk_get_type(pointer) == _TEXT:
            length = ctypes.c_size_t()
            ids = library.mtmd_input_chunk_get_tokens_text(pointer, ctypes.byref(length))
            return Chunk(tuple(ids[: length.value]))
        is_whole = bool(library.mtmd_decode_use_non_causal(self._pointer, pointer))
        return Chunk(num_tokens=count, is_whole=is_whole)


_BYTES = ctypes.POINTER(ctypes.c_uint8)
_FLOATS = ctypes.POINTER(ctypes.c_float)
_NAMES = {MediaKind.IMAGE: "picture", MediaKind.AUDIO: "sound"}


def is_built() -> bool:
    """Whether the engine has its part for pictures and sounds."""
    try:
        _load()
    except ModelUnsupported:
        return False
    return True


def _load() -> Any:
    """The bindings, with their log in ours. Raises ModelUnsupported where it was not built."""
    try:
        import llama_cpp.mtmd_cpp as library
    except (RuntimeError, OSError) as error:
        raise ModelUnsupported(NOT_BUILT) from error
    library.mtmd_helper_log_set(log_callback, ctypes.c_void_p(0))
    return library


def _reason(log: Sequence[str]) -> str:
    lines = [line.strip().rstrip(".") for line in log if line.strip()]
    reason = lines[-1].partition("error: ")[2] or lines[-1] if lines else "no reason was given"
    return " ".join(reason.split())[:200]
