"""Pictures and sounds through the whole engine, with tiny random models."""

import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from engine.backends.llama_cpp.backend import LlamaBackend
from engine.config import EngineConfig
from engine.engine import RequestFailure
from engine.errors import EngineError, UsageError
from engine.kv.disk_folder import DiskFolder
from engine.kv.segment import Belonging
from engine.media import Media, first_media_id
from engine.request import IN_FRONT, FinishReason, Request, RequestOptions, RequestOutput
from engine.sampling_params import SamplingParams
from tests.engine.backends.llama_cpp.model_run import GREEDY, ModelRun
from tests.engine.backends.llama_cpp.seeing import (
    Watched,
    logits_by_mtmd,
    picture,
    prompt_about,
    seeing_config,
    sound,
)
from tests.engine.backends.llama_cpp.tiny_mmproj import write_tiny_mmproj
from tests.engine.backends.llama_cpp.tiny_model import write_tiny_model

LOGITS = RequestOptions(shows_logits=True)
REPRODUCIBLE = RequestOptions(
    belonging=Belonging(owner="chat", is_durable=True), is_reproducible=True
)
DURABLE = RequestOptions(belonging=Belonging(owner="chat", is_durable=True))
EYES = ("mlp", "gemma3", "idefics3")


class Seeing(ModelRun):
    """An engine that looks at what it is asked about."""

    def __init__(self, config: EngineConfig) -> None:
        self.config = config
        super().__init__(LlamaBackend(config), config)
        self.watched = Watched(self.backend)

    def ask(
        self,
        media: tuple[Media, ...],
        question: str = "What is this?",
        options: RequestOptions = IN_FRONT,
        params: SamplingParams = GREEDY,
    ) -> int:
        prompt = prompt_about(self.backend, media, question)
        spans = self.engine.spans_in(prompt)
        request = Request(prompt, params, options, spans=spans)
        self.engine.add_request(request)
        self.tokens[request.request_id] = []
        return request.request_id

    def finish(self, limit: int = 4000) -> None:
        for _ in range(limit):
            if not self.engine.has_work:
                return
            if self.engine.is_waiting_for_media:
                time.sleep(0.002)
            self.step()
        raise AssertionError(f"still at work after {limit} steps")

    def logits(self, *media: Media, question: str = "What is this?", **options: bool) -> np.ndarray:
        number = self.ask(media, question, replace(LOGITS, **options))
        self.finish()
        last = self.last[number]
        assert isinstance(last, RequestOutput) and last.logits is not None
        return last.logits


@pytest.fixture(params=EYES)
def seeing(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Seeing]:
    run = Seeing(seeing_config(tmp_path, request.param))
    yield run
    run.engine.close()


@pytest.mark.parametrize("projector", [*EYES, "ultravox"])
def test_a_model_reads_what_it_is_shown_as_llama_cpp_itself_would(
    projector: str, tmp_path: Path
) -> None:
    run = Seeing(seeing_config(tmp_path, projector))
    shown = sound() if projector == "ultravox" else picture()
    ours = run.logits(shown)
    theirs = logits_by_mtmd(run.config, shown, "user: ", "What is this?")
    # Computed in the same steps; a picture read word by word differs by 0.007 with Gemma 3.
    np.testing.assert_allclose(ours, theirs, atol=1e-3)
    assert run.watched.num_looks == 1
    run.engine.close()


def test_two_pictures_are_told_apart_and_the_same_one_is_the_same(seeing: Seeing) -> None:
    one, again, other = (seeing.logits(picture(seed)) for seed in (1, 1, 2))
    np.testing.assert_allclose(one, again, atol=0.02)
    assert np.abs(one - other).max() > 0.1


def test_a_picture_is_looked_at_once_for_all_questions_about_it(seeing: Seeing) -> None:
    first = seeing.ask((picture(),), "What is this?")
    seeing.finish()
    second = seeing.ask((picture(),), "Who is that?")
    seeing.finish()
    assert seeing.watched.num_looks == 1
    picture_end = len(prompt_about(seeing.backend, (picture(),), ""))
    assert seeing.cached_tokens(second) >= picture_end
    assert seeing.timings(first).prefilled_tokens > seeing.timings(second).prefilled_tokens


def test_what_was_seen_comes_back_from_memory_when_the_cells_were_needed(seeing: Seeing) -> None:
    before = seeing.logits(picture())
    seeing.ask((picture(),))
    seeing.finish()
    seeing.engine.set_aside()
    number = seeing.ask((picture(),), "Who is that?")
    seeing.finish()
    assert seeing.timings(number).restored_tokens >= 16
    np.testing.assert_allclose(seeing.logits(picture()), before, atol=0.02)
    assert seeing.watched.num_looks == 1


@pytest.mark.parametrize("projector", EYES)
def test_after_a_restart_the_disk_remembers_what_was_seen(projector: str, tmp_path: Path) -> None:
    config = seeing_config(tmp_path, projector)
    for is_first in (True, False):
        run = Seeing(config)
        disk = DiskFolder(tmp_path / "kv", b"n" * 32)
        run.engine.attach_disk(disk, disk.open())
        number = run.ask((picture(),), "What is this?" if is_first else "Who is that?", DURABLE)
        run.finish()
        assert run.watched.num_looks == (1 if is_first else 0)
        assert (run.timings(number).restored_from == "disk") is not is_first
        run.engine.close()


def test_the_same_question_has_the_same_bits_whatever_was_held(seeing: Seeing) -> None:
    fresh = seeing.logits(picture(), is_reproducible=True)
    held = seeing.logits(picture(), is_reproducible=True)
    seeing.ask((picture(2), picture()), "Something else entirely.")
    seeing.finish()
    later = seeing.logits(picture(), is_reproducible=True)
    assert np.array_equal(fresh, held) and np.array_equal(fresh, later)


def test_every_control_leaves_pictures_alone(seeing: Seeing) -> None:
    params = replace(
        GREEDY,
        max_tokens=24,
        repetition_penalty=1.3,
        frequency_penalty=0.5,
        presence_penalty=0.5,
        penalty_window=400,
        no_repeat_ngram_size=2,
        dry_multiplier=0.8,
        dry_allowed_length=1,
        banned_phrases=("ab",),
    )
    numbers = [seeing.ask((picture(), picture(2), picture()), params=params) for _ in range(2)]
    seeing.finish()
    for number in numbers:
        assert len(seeing.tokens[number]) == 24
        assert all(0 <= each < seeing.engine.num_vocabulary for each in seeing.tokens[number])


def test_several_look_at_once_in_cells_for_half_of_them(tmp_path: Path) -> None:
    run = Seeing(seeing_config(tmp_path, "mlp", context_tokens=256, max_running=3))
    alone = {seed: [] for seed in range(4)}
    for seed in alone:
        number = run.ask((picture(seed),))
        run.finish()
        alone[seed] = run.tokens[number]
    run.engine.forget_all()
    numbers = [run.ask((picture(seed),)) for seed in alone]
    run.finish()
    assert [run.tokens[number] for number in numbers] == list(alone.values())
    run.engine.close()


def test_a_request_that_is_stopped_leaves_while_its_picture_is_looked_at(seeing: Seeing) -> None:
    shown = picture()

    def load() -> bytes:
        time.sleep(0.5)
        return shown.load()

    number = seeing.ask((replace(shown, load=load),))
    other = seeing.ask((), "Hello")
    seeing.step()
    began = time.perf_counter()
    output = seeing.engine.abort_request(number)
    seeing.finish()
    assert output is not None and output.finish_reason is FinishReason.ABORT
    assert len(seeing.tokens[other]) == 16
    assert time.perf_counter() - began < 0.4


def test_a_step_that_is_broken_off_in_a_picture_is_computed_again(seeing: Seeing) -> None:
    number = seeing.ask((picture(),), "What is this?", LOGITS)
    place = first_media_id(prompt_about(seeing.backend, (picture(),)))
    (request,) = [each.request for each in seeing.engine._generations.values()]
    seeing.engine.step()
    while not seeing.backend.media.is_ready(request.spans[0]):
        time.sleep(0.002)
    assert request.num_computed_tokens == place
    seeing.backend.model_runner.abort_step()
    assert seeing.engine.step() == []
    assert request.num_computed_tokens == place
    seeing.engine.check()
    seeing.finish()
    last = seeing.last[number]
    assert isinstance(last, RequestOutput) and last.logits is not None
    np.testing.assert_allclose(last.logits, seeing.logits(picture()), atol=0.02)


def test_a_picture_that_cannot_be_had_ends_its_request_alone(seeing: Seeing) -> None:
    def load() -> bytes:
        raise EngineError("The picture is gone.")

    number = seeing.ask((replace(picture(), load=load),))
    other = seeing.ask((), "Hello")
    seeing.finish()
    last = seeing.last[number]
    assert isinstance(last, RequestFailure) and str(last.error) == "The picture is gone."
    assert len(seeing.tokens[other]) == 16
    # What was only unlucky may be tried again.
    assert len(seeing.logits(picture())) == seeing.engine.num_vocabulary


def test_a_prompt_with_an_unknown_or_a_torn_picture_is_refused(seeing: Seeing) -> None:
    prompt = prompt_about(seeing.backend, (picture(),))
    place = first_media_id(prompt)
    assert place is not None
    with pytest.raises(UsageError, match="missing"):
        seeing.engine.spans_in([*prompt[: place + 3], 5])
    with pytest.raises(UsageError, match="not at hand"):
        seeing.engine.spans_in([*prompt[:place], -12345, 5])
    last = max(index for index, each in enumerate(prompt) if each < 0)
    with pytest.raises(UsageError, match="end with text"):
        seeing.engine.spans_in(prompt[: last + 1])


def test_a_picture_in_tiles_is_several_runs_of_places(tmp_path: Path) -> None:
    run = Seeing(seeing_config(tmp_path, "idefics3"))
    prompt = prompt_about(run.backend, (picture(width=120, height=60),))
    spans = run.engine.spans_in(prompt)
    # The whole, and each of the tiles.
    assert len(spans) > 2 and {span.num_tokens for span in spans} == {16}
    assert len({prompt[span.start] for span in spans}) == len(spans)
    run.engine.close()


def test_marks_that_the_model_does_not_have_are_refused(tmp_path: Path) -> None:
    config = seeing_config(tmp_path, "mlp")
    mmproj = write_tiny_mmproj(tmp_path / "mmproj-tiles.gguf", "idefics3")
    run = Seeing(replace(config, mmproj_path=mmproj))
    with pytest.raises(UsageError, match="words around a picture that this model does not have"):
        run.ask((picture(),))
    run.engine.close()


def test_a_part_of_another_model_leaves_one_that_reads_text(tmp_path: Path) -> None:
    config = seeing_config(tmp_path, "mlp")
    other = write_tiny_mmproj(tmp_path / "mmproj-other.gguf", "mlp", width=32)
    for path in (other, config.model_path):
        backend = LlamaBackend(replace(config, mmproj_path=path))
        assert backend.media is None and not backend.info.reads_images
        assert path.name in backend.info.media_refusal
        run = ModelRun(backend, config)
        with pytest.raises(UsageError, match="reads neither pictures nor sounds"):
            run.engine.spans_in([5, -3, 5])
        assert len(run.answer(run.encode("Hello"))) == 16
        run.engine.close()


def test_a_process_ends_while_a_picture_is_looked_at(tmp_path: Path) -> None:
    seeing_config(tmp_path, "mlp")
    program = f"""
import time
from dataclasses import replace
from pathlib import Path
from engine.backends.llama_cpp.backend import LlamaBackend
from tests.engine.backends.llama_cpp.seeing import picture, prompt_about, seeing_config
backend = LlamaBackend(seeing_config(Path({str(tmp_path)!r}), "mlp"))
slow = replace(picture(), load=lambda: time.sleep(600) or b"")
(span,) = backend.media.spans_in(prompt_about(backend, [slow]))
assert not backend.media.is_ready(span)
backend.close()
print("closed")
"""
    done = subprocess.run(
        [sys.executable, "-c", program], timeout=60, capture_output=True, text=True
    )
    assert (done.stdout, done.returncode) == ("closed\n", 0), done.stderr


def test_a_model_that_counts_places_in_rows_and_columns_reads_text(tmp_path: Path) -> None:
    model = write_tiny_model(tmp_path / "qwen.gguf", "qwen2vl")
    config = replace(seeing_config(tmp_path, "mlp"), model_path=model)
    backend = LlamaBackend(config)
    assert backend.media is None
    assert backend.info.media_refusal.startswith("qwen.gguf counts the places of a picture in rows")
    run = ModelRun(backend, config)
    assert len(run.answer(run.encode("Hello"))) == 16
    run.engine.close()


def test_a_model_that_only_hears_says_so_of_a_picture(tmp_path: Path) -> None:
    run = Seeing(seeing_config(tmp_path, "ultravox"))
    assert run.backend.info.reads_audio and not run.backend.info.reads_images
    with pytest.raises(UsageError, match="does not read pictures"):
        run.ask((picture(),))
    run.engine.close()
