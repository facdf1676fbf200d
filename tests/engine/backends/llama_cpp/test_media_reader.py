"""What a model reads beside text, asked by several threads, and gone when nobody holds it."""

import gc
import weakref
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from engine.backends.llama_cpp import media_reader
from engine.backends.llama_cpp.media_reader import MediaReader
from engine.backends.llama_cpp.model import LlamaModel
from engine.errors import UsageError
from engine.media import Media
from tests.engine.backends.llama_cpp.seeing import picture, seeing_config


@pytest.fixture
def model(tmp_path: Path) -> Iterator[LlamaModel]:
    model = LlamaModel(seeing_config(tmp_path, "mlp").model_path)
    yield model
    model.close()


@pytest.fixture
def reader(model: LlamaModel) -> Iterator[MediaReader]:
    reader = opened(model)
    yield reader
    reader.close()


def opened(model: LlamaModel) -> MediaReader:
    path = model.path.parent / "mmproj-mlp.gguf"
    return MediaReader(path, model, max_batch_tokens=512, max_running=4, threads=1)


def test_nothing_keeps_a_reader_that_nobody_holds(model: LlamaModel) -> None:
    gc.disable()
    try:
        reader = opened(model)
        gone = weakref.ref(reader)
        reader.close()
        del reader
        assert gone() is None
    finally:
        gc.enable()


def test_a_picture_is_divided_once(reader: MediaReader, monkeypatch: pytest.MonkeyPatch) -> None:
    divided: list[Media] = []
    divide = reader._mtmd.divide

    def counted(media: Media) -> Any:
        divided.append(media)
        return divide(media)

    monkeypatch.setattr(reader._mtmd, "divide", counted)
    assert reader.ids_of(picture()) == reader.ids_of(picture())
    assert len(divided) == 1


def test_a_picture_is_at_hand_while_another_thread_asks_for_its_ids(reader: MediaReader) -> None:
    asked: list[object] = []
    prompt = reader.ids_of(picture())

    def ask() -> None:
        try:
            asked.append(len(reader.spans_in(prompt)))
        except UsageError as error:
            asked.append(error)

    class Interrupted(dict[Any, Any]):
        """Another thread has its turn in the middle of a change."""

        def pop(self, *key: Any) -> Any:
            found = super().pop(*key)
            other.start()
            other.join(0.2)
            return found

    other = Thread(target=ask)
    reader._known = Interrupted(reader._known)
    reader.ids_of(picture())
    other.join()
    assert asked == [1]


def test_only_the_last_pictures_are_remembered(
    reader: MediaReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(media_reader, "MOST_KNOWN", 2)
    prompts = [reader.ids_of(picture(seed)) for seed in (1, 2, 1, 3)]
    assert [len(reader.spans_in(prompts[index])) for index in (2, 3)] == [1, 1]
    with pytest.raises(UsageError, match="not at hand"):
        reader.spans_in(prompts[1])
    assert len(reader._by_first_id) == 2
