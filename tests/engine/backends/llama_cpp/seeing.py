"""Tiny models that see and hear, and what they are shown."""

import ctypes
import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.backends.llama_cpp.backend import LlamaBackend
from engine.config import EngineConfig
from engine.media import SAMPLE_RATE, Media, MediaKind
from tests.engine.backends.llama_cpp.tiny_mmproj import write_tiny_mmproj
from tests.engine.backends.llama_cpp.tiny_model import write_tiny_model

PAIRS = {"mlp": "llama", "gemma3": "gemma3", "idefics3": "llama", "ultravox": "llama"}
"""The text model beside each projector."""
MARKS = ("\n\n", "<fake_token_around_image>", "<global-img>")
"""What stands around the tiles of `idefics3`."""


def seeing_config(folder: Path, projector: str, **changes: Any) -> EngineConfig:
    marks = MARKS if projector == "idefics3" else ()
    model = folder / f"{PAIRS[projector]}-{len(marks)}.gguf"
    mmproj = folder / f"mmproj-{projector}.gguf"
    if not model.exists():
        write_tiny_model(model, PAIRS[projector], marks=marks)
    if not mmproj.exists():
        write_tiny_mmproj(mmproj, projector)
    settings: dict[str, Any] = {
        "context_tokens": 1024,
        "max_sequences": 8,
        "max_running": 4,
        "threads": 1,
        "kv_ram_bytes": 2**28,
    }
    return EngineConfig(model_path=model, mmproj_path=mmproj, **settings | changes)


def picture(seed: int = 1, width: int = 90, height: int = 70) -> Media:
    pixels = np.random.default_rng(seed).integers(0, 256, (height, width, 3), np.uint8).tobytes()
    return Media(
        kind=MediaKind.IMAGE,
        digest=hashlib.sha256(pixels).digest(),
        width=width,
        height=height,
        load=lambda: pixels,
    )


def sound(seed: int = 1, seconds: float = 2.0) -> Media:
    count = int(seconds * SAMPLE_RATE)
    samples = np.sin(np.arange(count) / (20 + seed)).astype(np.float32).tobytes()
    return Media(
        kind=MediaKind.AUDIO,
        digest=hashlib.sha256(samples).digest(),
        width=count,
        height=1,
        load=lambda: samples,
    )


class Watched:
    """Counts how often a backend really looks at something."""

    def __init__(self, backend: LlamaBackend) -> None:
        assert backend.media is not None
        self.num_looks = 0
        worker = backend.media._worker
        self._encode = worker._look
        worker._look = self._look

    def _look(self, media: Media) -> list[NDArray[np.float32]]:
        self.num_looks += 1
        return self._encode(media)


def prompt_about(
    backend: LlamaBackend, media: Sequence[Media], question: str = "What is this?"
) -> list[int]:
    assert backend.media is not None
    encode = backend.tokenizer.encode
    ids = [1, *encode("user: ")]
    for each in media:
        ids += backend.media.ids_of(each)
    return [*ids, *encode(question)]


def logits_by_mtmd(
    config: EngineConfig, media: Media, before: str, question: str
) -> NDArray[np.float32]:
    """What llama.cpp's own helper computes of text, a picture, and text."""
    import llama_cpp.mtmd_cpp as mtmd

    from engine.backends.llama_cpp.context_params import make_params
    from engine.backends.llama_cpp.library import bindings
    from engine.backends.llama_cpp.model import LlamaModel

    model = LlamaModel(config.model_path)
    params = make_params(num_cells=1024, num_sequences=4, max_batch_tokens=512, kv_type="f16")
    context = bindings.llama_init_from_model(model.pointer, params)
    settings = mtmd.mtmd_context_params_default()
    settings.use_gpu = settings.print_timings = settings.warmup = False
    settings.n_threads = 1
    eye = mtmd.mtmd_init_from_file(str(config.mmproj_path).encode(), model.pointer, settings)
    content = np.frombuffer(media.load(), np.uint8)
    if media.kind is MediaKind.IMAGE:
        bitmap = mtmd.mtmd_bitmap_init(
            media.width, media.height, content.ctypes.data_as(ctypes.POINTER(ctypes.c_uint8))
        )
    else:
        bitmap = mtmd.mtmd_bitmap_init_from_audio(
            media.width, content.ctypes.data_as(ctypes.POINTER(ctypes.c_float))
        )
    encode = model.vocabulary.encode
    place = 0
    try:
        for ids in ([1, *encode(before)], None, encode(question)):
            if ids is not None:
                tokens = (bindings.llama_token * len(ids))(*ids)
                batch = bindings.llama_batch_get_one(tokens, len(ids))
                assert bindings.llama_decode(context, batch) == 0
                place += len(ids)
                continue
            marker = mtmd.mtmd_get_marker(eye)
            text = mtmd.mtmd_input_text(marker, len(marker), False, True)
            chunks = mtmd.mtmd_input_chunks_init()
            bitmaps = (ctypes.c_void_p * 1)(bitmap)
            assert mtmd.mtmd_tokenize(eye, chunks, ctypes.byref(text), bitmaps, 1) == 0
            end = ctypes.c_int32()
            assert (
                mtmd.mtmd_helper_eval_chunks(
                    eye, context, chunks, place, 0, 512, False, ctypes.byref(end)
                )
                == 0
            )
            place = end.value
            mtmd.mtmd_input_chunks_free(chunks)
        logits = np.ctypeslib.as_array(
            bindings.llama_get_logits_ith(context, -1), (model.vocabulary.num_tokens,)
        ).copy()
    finally:
        mtmd.mtmd_bitmap_free(bitmap)
        mtmd.mtmd_free(eye)
        bindings.llama_free(context)
        model.close()
    return logits
