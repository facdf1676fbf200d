"""A step: who is read and who writes side by side, rows in their order, steps that end early."""

from collections.abc import Iterator, Sequence

import numpy as np
import pytest
import torch

from engine.backends.base import StepFailure
from engine.backends.torch.backend import TorchBackend
from engine.backends.torch.kv_memory import BrokenCall, Reach
from engine.backends.torch.step_inputs import Part, step_inputs
from engine.batch import Batch, ScheduledRequest
from engine.request import Request, RequestOptions
from engine.sampling_params import SamplingParams
from tests.engine.backends.torch.tiny_models import WORDS, save_tiny
from tests.engine.backends.torch.torch_run import logits_of, opened

# Products of other shapes sum in another order.
CLOSE = {"rtol": 1e-5, "atol": 1e-5}


@pytest.fixture(scope="module")
def backend(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TorchBackend]:
    folder = tmp_path_factory.mktemp("tiny")
    save_tiny(folder, "gemma3")
    made = opened(folder)
    yield made
    made.close()


@pytest.fixture(autouse=True)
def clean(backend: TorchBackend) -> Iterator[None]:
    yield
    backend.kv_memory.check()
    backend.model_runner.accept_steps()
    backend.kv_memory.clear()


def tokens(count: int, seed: int) -> list[int]:
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(3, WORDS - 3, (count,), generator=generator).tolist()


def scheduled(
    token_ids: Sequence[int], seat: int, start: int, count: int, draft: tuple[int, ...] = ()
) -> ScheduledRequest:
    request = Request(list(token_ids), SamplingParams(), sequence_id=seat)
    request.num_computed_tokens = start
    return ScheduledRequest.of(request, count, draft)


def test_who_reads_and_who_writes_share_a_step(backend: TorchBackend) -> None:
    long, short, drafted = tokens(50, 1), tokens(20, 2), tokens(17, 3)
    alone = [logits_of(backend, each, [], seat) for seat, each in enumerate((long, short, drafted))]
    backend.kv_memory.clear()
    logits_of(backend, long[:21], [], 0)
    logits_of(backend, short[:19], [], 1)
    logits_of(backend, drafted[:14], [], 2)
    batch = Batch(
        (
            scheduled(long, 0, 21, 16),
            scheduled(short, 1, 19, 1),
            scheduled(drafted[:15], 2, 14, 1, tuple(drafted[15:])),
        )
    )
    rows = backend.model_runner.execute(batch)
    assert isinstance(rows, np.ndarray) and rows.dtype == np.float32
    assert rows.shape == (batch.num_rows, backend.tokenizer.num_tokens) == (4, rows.shape[1])
    np.testing.assert_allclose(rows[0], alone[1][19], **CLOSE)
    np.testing.assert_allclose(rows[1:], alone[2][14:17], **CLOSE)
    assert [backend.kv_memory.length(seat) for seat in range(3)] == [37, 20, 17]
    rest = logits_of_rest(backend, long, 37)
    np.testing.assert_allclose(rest, alone[0][37:], **CLOSE)


def logits_of_rest(backend: TorchBackend, token_ids: list[int], start: int) -> np.ndarray:
    part = Part(0, start, token_ids[start:], len(token_ids) - start)
    found = backend.model_runner.compute([part])
    assert not isinstance(found, StepFailure)
    return found


def test_nobody_wants_logits_and_there_are_none(backend: TorchBackend) -> None:
    rows = backend.model_runner.execute(Batch((scheduled(tokens(30, 1), 0, 0, 10),)))
    assert not isinstance(rows, StepFailure) and len(rows) == 0
    assert backend.kv_memory.length(0) == 10


def test_a_step_that_is_not_wanted_ends_between_two_layers_and_loses_nothing(
    backend: TorchBackend,
) -> None:
    prompt = tokens(40, 4)
    expected = logits_of(backend, prompt, [20])
    backend.kv_memory.clear()
    logits_of(backend, prompt[:20], [])
    runner = backend.model_runner
    layer = runner._decoder.layers[3]
    seen = []

    class Watched:
        """The fourth layer, at which somebody changes their mind."""

        def __call__(self, *given: object) -> object:
            seen.append(len(seen))
            runner.abort_step()
            return layer(*given)  # type: ignore[arg-type]

    layers = list(runner._decoder.layers)
    object.__setattr__(runner._decoder, "layers", [*layers[:3], Watched(), *layers[4:]])
    try:
        assert runner.compute([Part(0, 20, prompt[20:], 1)]) is StepFailure.ABORTED
        assert seen == [0]
        # The next one too, before its first layer.
        assert runner.compute([Part(0, 20, prompt[20:], 1)]) is StepFailure.ABORTED
        assert seen == [0]
    finally:
        object.__setattr__(runner._decoder, "layers", layers)
    assert backend.kv_memory.length(0) == 20
    runner.accept_steps()
    np.testing.assert_array_equal(logits_of_rest(backend, prompt, 20), expected[20:])


def test_without_room_nothing_is_computed(backend: TorchBackend) -> None:
    most = backend.kv_memory.num_cells + 2 * 16 * backend.kv_memory.num_sequences
    part = Part(0, 0, [5] * (most + 1), 1)
    assert backend.model_runner.compute([part]) is StepFailure.NO_ROOM
    assert backend.kv_memory.length(0) == 0


def test_a_computation_that_fails_leaves_what_was_held(backend: TorchBackend) -> None:
    prompt = tokens(20, 5)
    logits_of(backend, prompt, [])
    decoder = backend.model_runner._decoder
    head = decoder.head
    object.__setattr__(decoder, "head", torch.zeros(4, 3))
    try:
        parts = [Part(0, 20, [5] * 20, 1)]
        assert backend.model_runner.compute(parts) is StepFailure.BROKEN
    finally:
        object.__setattr__(decoder, "head", head)
    assert backend.kv_memory.length(0) == 20


@pytest.mark.parametrize(
    "part",
    [
        Part(0, 3, [5], 1),
        Part(0, 0, [], 0),
        Part(0, 0, [-1], 1),
        Part(0, 0, [WORDS], 1),
        Part(9, 0, [5], 1),
    ],
)
def test_a_batch_that_the_books_do_not_allow_is_refused(backend: TorchBackend, part: Part) -> None:
    with pytest.raises(BrokenCall):
        backend.model_runner.compute([part])


def test_a_sequence_may_not_stand_twice_in_a_batch(backend: TorchBackend) -> None:
    with pytest.raises(BrokenCall):
        backend.model_runner.compute([Part(0, 0, [5], 1), Part(0, 0, [5], 1)])


def test_what_lies_in_blocks_of_others_changes_no_bit(backend: TorchBackend) -> None:
    prompt, others = tokens(45, 6), tokens(60, 7)
    expected = logits_of(backend, prompt, [32], 0)
    backend.kv_memory.clear()
    for layer in backend.kv_memory.layers:
        layer.keys.fill_(float("nan"))
        layer.values.fill_(float("nan"))
    logits_of(backend, others, [], 1)
    np.testing.assert_array_equal(logits_of(backend, prompt, [32], 0), expected)


@pytest.mark.parametrize("at", [16, 20, 32])
def test_after_a_fork_or_a_way_out_and_back_the_logits_have_the_same_bits(
    backend: TorchBackend, at: int
) -> None:
    prompt = tokens(45, 8)
    memory = backend.kv_memory
    expected = logits_of(backend, prompt, [at], 0)[at:]
    memory.fork(0, 1, at)
    part = Part(1, at, prompt[at:], len(prompt) - at)
    np.testing.assert_array_equal(backend.model_runner.compute([part]), expected)
    blob = memory.export(0, 0, at)
    assert blob is not None
    memory.clear()
    logits_of(backend, tokens(13, 9), [], 3)
    assert memory.restore(2, blob, 0, at, at)
    part = Part(2, at, prompt[at:], len(prompt) - at)
    np.testing.assert_array_equal(backend.model_runner.compute([part]), expected)


def test_decoding_needs_no_starts_of_queries(backend: TorchBackend) -> None:
    memory = backend.kv_memory
    logits_of(backend, tokens(4, 1), [], 0)
    logits_of(backend, tokens(20, 1), [], 1)
    parts = [Part(0, 4, [5], 1), Part(1, 20, [6], 1)]
    assert memory.reserve([Reach(part.sequence_id, part.end) for part in parts])
    inputs = step_inputs(parts, memory, torch.device("cpu"))
    assert inputs.query_starts is None
    assert inputs.lengths.tolist() == [5, 21]
    assert inputs.rows.tolist() == [0, 1]
    assert inputs.block_tables.shape == (2, 2)
    memory.give_back([Reach(part.sequence_id, part.end) for part in parts])


def test_reproducible_steps_run_on_all_threads(backend: TorchBackend) -> None:
    request = Request(
        tokens(4, 1),
        SamplingParams(),
        options=RequestOptions(is_reproducible=True),
        sequence_id=0,
    )
    torch.set_num_threads(1)
    backend.model_runner.execute(Batch((ScheduledRequest.of(request, 4),)))
    assert torch.get_num_threads() == 1
    assert backend.model_runner.step_cost > 0
