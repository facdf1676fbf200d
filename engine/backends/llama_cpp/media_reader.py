"""What a model reads beside text: ids for pictures and sounds, and their embeddings in time.

    any thread      ids_of(picture)  ->  prompt with ids below 0
    any thread      spans_in(prompt) ->  what these ids stand for
    engine thread   is_ready(span)   ->  no; a thread looks at the picture meanwhile
    engine thread   embeddings(span)

Looking at a picture takes seconds, so whoever writes goes on meanwhile, and a request that is
stopped leaves at once; what was begun for it is finished and kept for a while.
"""

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from engine.backends.llama_cpp.media_worker import MediaWorker
from engine.backends.llama_cpp.mmproj_file import read_mmproj
from engine.backends.llama_cpp.model import LlamaModel
from engine.backends.llama_cpp.mtmd import Chunk, Mtmd
from engine.errors import EngineError, InglenookError, ModelUnsupported, UsageError
from engine.media import Media, MediaKind, MediaSpan, first_media_id, media_ids

MOST_KNOWN = 512
"""Pictures and sounds whose ids are remembered; each is made known again by whoever sends it."""
FEW = 4
"""Of so many the embeddings are kept beside those that running requests wait for."""
# No model that can be had looks at more pixels, and a placeholder of this size costs nothing.
LARGE_SIDE = 4096

Embeddings = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class _Known:
    """`numbers` are those of the chunks that are no text, by the first id of each."""

    media: Media
    chunks: tuple[Chunk, ...]
    token_ids: tuple[int, ...]
    numbers: Mapping[int, int]


class MediaReader:
    """`is_ready`, `error_of`, `embeddings` and `let_go` belong to the engine thread."""

    def __init__(
        self,
        path: Path,
        model: LlamaModel,
        *,
        max_batch_tokens: int,
        max_running: int,
        threads: int,
    ) -> None:
        """Raises a ModelError."""
        shape = read_mmproj(path)
        if shape.width and shape.width != model.input_width:
            raise ModelUnsupported(
                f"{path.name} was made for another model (it gives {shape.width:,} numbers for each"
                f" place, and {model.path.name} takes {model.input_width:,}): name the mmproj file"
                " of this model."
            )
        self._most_whole = max_batch_tokens
        self._most_encoded = max_running + FEW
        self._num_vocabulary = model.vocabulary.num_tokens
        self._mtmd = mtmd = Mtmd(path, model, threads=threads)
        if mtmd.has_grid_positions:
            raise ModelUnsupported(
                f"{model.path.name} counts the places of a picture in rows and columns (M-RoPE),"
                " which is not supported here: it reads text, and for pictures choose a model such"
                " as Gemma 3 or SmolVLM."
            )
        if mtmd.has_vision and not self._fit(mtmd.divide(_placeholder())):
            # It looks with more or fewer places, and all of them have to go into one step.
            self._mtmd = mtmd = Mtmd(path, model, threads=threads, most_tokens=max_batch_tokens)
        self.reads_images, self.reads_audio = mtmd.has_vision, mtmd.has_audio
        # Around the two that follow, which any thread may ask and change.
        self._known_lock = Lock()
        self._known: dict[bytes, _Known] = {}
        self._by_first_id: dict[int, tuple[bytes, int]] = {}
        self._encoded: OrderedDict[bytes, Future[list[Embeddings]]] = OrderedDict()
        self._worker = MediaWorker(mtmd.encode)

    # Any thread

    def ids_of(self, media: Media) -> tuple[int, ...]:
        """What stands in a prompt for a picture or a sound: the model's marks around it, and ids
        below 0. Raises UsageError or EngineError where the model cannot take it."""
        with self._known_lock:
            known = self._known.get(media.digest)
        # Learning takes a while, and others may ask meanwhile. The content of what is known may
        # have come from elsewhere this time.
        known = self._learned(media) if known is None else replace(known, media=media)
        with self._known_lock:
            self._remember(known)
            for digest in list(self._known)[:-MOST_KNOWN]:
                self._unlearn(digest)
        return known.token_ids

    def spans_in(self, token_ids: Sequence[int]) -> tuple[MediaSpan, ...]:
        """What the ids below 0 stand for. Raises UsageError when one of them is unknown."""
        with self._known_lock:
            return self._spans_in(token_ids)

    def _spans_in(self, token_ids: Sequence[int]) -> tuple[MediaSpan, ...]:
        spans: list[MediaSpan] = []
        place = first_media_id(token_ids)
        while place is not None:
            digest, number = self._by_first_id.get(token_ids[place], (b"", 0))
            known = self._known.get(digest)
            if known is None:
                raise UsageError("A picture of this prompt is not at hand any more: send it again.")
            chunk = known.chunks[number]
            end = place + chunk.num_tokens
            if tuple(token_ids[place:end]) != media_ids(digest, number, chunk.num_tokens):
                raise UsageError("A part of a picture is missing in this prompt: send it again.")
            spans.append(
                MediaSpan(
                    start=place,
                    num_tokens=chunk.num_tokens,
                    media=known.media,
                    chunk=number,
                    is_whole=chunk.is_whole,
                )
            )
            following = first_media_id(token_ids[end:])
            place = None if following is None else end + following
        return tuple(spans)

    # The engine thread

    def is_ready(self, span: MediaSpan) -> bool:
        """Whether its embeddings are there, or will never be; if not, they are being made."""
        digest = span.media.digest
        future = self._encoded.get(digest)
        if future is None or future.cancelled():
            future = self._worker.submit(span.media)
            self._encoded[digest] = future
            self._forget_old()
        self._encoded.move_to_end(digest)
        return future.done()

    def error_of(self, span: MediaSpan) -> EngineError | None:
        """Why it could not be looked at, once that has been tried. Asked again, it is tried
        again."""
        future = self._encoded.get(span.media.digest)
        if future is None or not future.done() or future.cancelled():
            return None
        error = future.exception()
        if error is None:
            return None
        del self._encoded[span.media.digest]
        if isinstance(error, EngineError):
            return error
        if isinstance(error, InglenookError | OSError | MemoryError):
            return EngineError(str(error) or "There is too little memory to look at this.")
        raise error

    def embeddings(self, span: MediaSpan) -> Embeddings:
        """`[num_tokens, width]` of a span that is ready."""
        before = self._known_chunks(span)[: span.chunk]
        index = sum(not chunk.is_text for chunk in before)
        return self._encoded[span.media.digest].result()[index]

    def let_go(self, spans: Iterable[MediaSpan], still_wanted: Iterable[MediaSpan]) -> None:
        """Nobody waits for these any more: what was not begun for them alone is not."""
        wanted = {span.media.digest for span in still_wanted}
        for digest in {span.media.digest for span in spans} - wanted:
            future = self._encoded.get(digest)
            if future is not None and future.cancel():
                del self._encoded[digest]

    def close(self) -> None:
        """What is being looked at is finished, and then the memory is freed."""
        self._worker.close()

    def _learned(self, media: Media) -> _Known:
        can_read = self.reads_images if media.kind is MediaKind.IMAGE else self.reads_audio
        if not can_read:
            what = "pictures" if media.kind is MediaKind.IMAGE else "sounds"
            raise UsageError(f"This model does not read {what}: choose another model for them.")
        chunks = tuple(self._mtmd.divide(media))
        if not self._fit(chunks):
            raise UsageError(
                f"The model reads all places of a picture in one step, and this one has more than"
                f" {self._most_whole:,}: send a smaller one."
            )
        token_ids: list[int] = []
        numbers: dict[int, int] = {}
        for number, chunk in enumerate(chunks):
            if chunk.is_text:
                token_ids += chunk.token_ids
            else:
                ids = media_ids(media.digest, number, chunk.num_tokens)
                numbers[ids[0]] = number
                token_ids += ids
        if not all(each < self._num_vocabulary for each in token_ids) or not all(
            each >= 0 for chunk in chunks for each in chunk.token_ids
        ):
            raise UsageError(
                "The mmproj file puts words around a picture that this model does not have: use the"
                " one that was made with the model."
            )
        return _Known(media, chunks, tuple(token_ids), numbers)

    def _remember(self, known: _Known) -> None:
        """As the newest."""
        digest = known.media.digest
        self._known.pop(digest, None)
        self._known[digest] = known
        for first, number in known.numbers.items():
            self._by_first_id[first] = digest, number

    def _unlearn(self, digest: bytes) -> None:
        for first in self._known.pop(digest).numbers:
            # Two contents may begin alike, once in two thousand million times.
            self._by_first_id.pop(first, None)

    def _fit(self, chunks: Iterable[Chunk]) -> bool:
        """Whether each of them that is computed whole fits into one step."""
        return all(chunk.num_tokens <= self._most_whole for chunk in chunks if chunk.is_whole)

    def _known_chunks(self, span: MediaSpan) -> Sequence[Chunk]:
        known = self._known.get(span.media.digest)
        return self._mtmd.divide(span.media) if known is None else known.chunks

    def _forget_old(self) -> None:
        for digest in list(self._encoded):
            if len(self._encoded) <= self._most_encoded:
                return
            if self._encoded[digest].done():
                del self._encoded[digest]


def _placeholder() -> Media:
    return Media(
        kind=MediaKind.IMAGE, digest=b"", width=LARGE_SIDE, height=LARGE_SIDE, load=lambda: b""
    )
