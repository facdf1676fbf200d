"""The context: what would make llama.cpp abort the process is refused before."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from engine.backends.base import StepFailure
from engine.backends.llama_cpp.context import BrokenCall, LlamaContext
from engine.backends.llama_cpp.library import bindings
from engine.backends.llama_cpp.model import LlamaModel
from engine.backends.llama_cpp.step_batch import Part
from engine.errors import OutOfMemory
from tests.engine.backends.llama_cpp.model_run import logits_after, small_context

pytestmark = pytest.mark.model
TOKENS = list(range(1000, 1060))


@pytest.fixture(scope="module")
def model(starter: Path) -> Iterator[LlamaModel]:
    loaded = LlamaModel(starter)
    yield loaded
    loaded.close()


@pytest.fixture(scope="module")
def opened(model: LlamaModel) -> Iterator[LlamaContext]:
    with small_context(model) as context:
        yield context


@pytest.fixture
def context(opened: LlamaContext) -> LlamaContext:
    opened.accept_steps()
    opened.clear()
    return opened


@pytest.mark.parametrize(
    "parts",
    [
        [],
        [Part(0, 0, [], 1)],
        [Part(0, 0, [5] * 65, 1)],
        [Part(0, 0, [5] * 33, 1), Part(1, 0, [5] * 32, 1)],
        [Part(0, 1, [5], 1)],
        [Part(0, -1, [5], 1)],
        [Part(-1, 0, [5], 1)],
        [Part(4, 0, [5], 1)],
        [Part(0, 0, [5], 1), Part(0, 0, [5], 1)],
        [Part(0, 0, [-1], 1)],
        [Part(0, 0, [10**6], 1)],
        [Part(0, 0, [2**40], 1)],
    ],
    ids=[
        "nothing",
        "an empty part",
        "a batch too large",
        "two parts too large together",
        "a position that leaves a hole",
        "a negative position",
        "a negative sequence",
        "a sequence out of range",
        "one sequence twice",
        "a negative token",
        "a token out of range",
        "a token that no integer of llama.cpp holds",
    ],
)
def test_a_batch_that_would_abort_the_process_is_refused(
    context: LlamaContext, parts: list[Part]
) -> None:
    with pytest.raises(BrokenCall):
        context.decode(parts)
    assert [context.length(i) for i in range(4)] == [0] * 4
    assert context.decode([Part(0, 0, TOKENS, 1)]) is None


@pytest.mark.parametrize(
    "call",
    [
        lambda context: context.length(4),
        lambda context: context.free(-1),
        lambda context: context.truncate(9, 0),
        lambda context: context.fork(0, 4, 1),
        lambda context: context.fork(0, 1, 61),
        lambda context: context.fork(0, 0, 5),
        lambda context: context.fork(1, 0, 0),
    ],
)
def test_a_sequence_that_is_not_there_is_refused(context: LlamaContext, call) -> None:
    assert context.decode([Part(0, 0, TOKENS, 1)]) is None
    with pytest.raises(BrokenCall):
        call(context)
    assert context.length(0) == len(TOKENS)


def test_a_closed_context_computes_no_more(model: LlamaModel) -> None:
    with small_context(model) as context:
        context.close()
        context.close()
        context.abort_step()
        context.accept_steps()
        with pytest.raises(BrokenCall):
            context.decode([Part(0, 0, [5], 1)])


def test_each_row_of_logits_is_that_of_its_part(context: LlamaContext) -> None:
    """Rows come in the order of the parts, and parts without logits have none."""
    for sequence in range(3):
        context.decode([Part(sequence, 0, TOKENS[: 10 + sequence], 0)])
    parts = [
        Part(2, 12, [7, 8, 9], 1),
        Part(0, 10, [4], 1),
        Part(3, 0, [1, 2, 3], 0),
        Part(1, 11, [6], 1),
    ]
    assert context.decode(parts) is None
    together = context.logits(3).copy()
    for row, (sequence, position, token_ids, _) in zip(
        together, [parts[0], parts[1], parts[3]], strict=True
    ):
        alone = logits_after(context, [*TOKENS[:position], *token_ids])
        assert np.abs(row - alone).max() < 1.0, sequence
        assert int(row.argmax()) == int(alone.argmax())


def test_as_many_rows_as_sequences_can_be_asked_for(model: LlamaModel) -> None:
    context = LlamaContext(model, num_cells=512, num_sequences=64, max_batch_tokens=64)
    assert context.decode([Part(i, 0, [5 + i], 1) for i in range(64)]) is None
    assert np.isfinite(context.logits(64)).all()
    context.close()


def test_the_cells_are_exactly_as_many_as_it_says(context: LlamaContext) -> None:
    for start in range(0, context.num_cells, 64):
        assert context.decode([Part(0, start, [5] * 64, 0)]) is None
    assert context.decode([Part(1, 0, [5], 1)]) is StepFailure.NO_ROOM
    assert context.length(0) == context.num_cells
    assert context.length(1) == 0
    assert context.truncate(0, context.num_cells - 1)
    assert context.decode([Part(1, 0, [5], 1)]) is None


def test_a_fork_shares_its_cells(context: LlamaContext) -> None:
    for start in range(0, 300, 60):
        context.decode([Part(0, start, TOKENS, 0)])
    context.fork(0, 1, 250)
    assert context.length(1) == 250
    # Without sharing, 300 and 250 and 64 tokens would not fit into 512 cells.
    assert context.decode([Part(1, 250, [5] * 64, 1)]) is None
    assert context.length(0) == 300


def test_a_fork_computes_what_its_source_computes(context: LlamaContext) -> None:
    context.decode([Part(0, 0, TOKENS[:30], 0)])
    context.fork(0, 1, 20)
    context.decode([Part(1, 20, TOKENS[20:30], 1)])
    forked = context.logits(1)[0].copy()
    whole = logits_after(context, TOKENS[:30])
    assert int(forked.argmax()) == int(whole.argmax())
    assert np.abs(forked - whole).max() < 1.0


def test_an_aborted_step_leaves_every_sequence_as_it_was(context: LlamaContext) -> None:
    context.decode([Part(0, 0, TOKENS, 0), Part(1, 0, [5], 0)])
    context.abort_step()
    assert context.decode([Part(0, 60, [7], 1), Part(1, 1, [5] * 40, 1)]) is StepFailure.ABORTED
    assert (context.length(0), context.length(1)) == (60, 1)
    context.accept_steps()
    assert context.decode([Part(0, 60, [7], 1), Part(1, 1, [5] * 40, 1)]) is None


def test_without_logits_there_is_nothing_to_read(model: LlamaModel) -> None:
    with small_context(model) as context:
        context.decode([Part(0, 0, TOKENS, 1)])
        for num_rows in (0, 2):
            with pytest.raises(BrokenCall):
                context.logits(num_rows)
        context.decode([Part(0, 60, [5], 0)])
        with pytest.raises(BrokenCall):
            context.logits(1)


def test_more_context_than_the_machine_has_is_one_sentence(model: LlamaModel) -> None:
    with pytest.raises(OutOfMemory, match=r"2,147,483,392 tokens needs .* GB and"):
        LlamaContext(model, num_cells=2**31 - 256, num_sequences=4, max_batch_tokens=64)


def test_the_bindings_are_those_of_the_library_they_were_made_for() -> None:
    """Structures are copied by hand in the bindings; a shifted field would change these."""
    params = bindings.llama_context_default_params()
    assert (params.n_batch, params.n_ubatch, params.n_ctx) == (2048, 512, 512)
    assert params.type_k == bindings.GGML_TYPE_F16 == 1
