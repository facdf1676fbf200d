"""KV in blocks: forks, cuts, copies, and the way out and back."""

import random

import numpy as np
import pytest
import torch

from engine.backends.torch.kv_blob import read_blob
from engine.backends.torch.kv_memory import (
    BrokenCall,
    Reach,
    TorchKVMemory,
    num_blocks_for,
)

CELLS, SEQUENCES = 128, 4
KINDS = [torch.float32, torch.float16, torch.bfloat16, torch.int8]


def memory_of(dtype: torch.dtype = torch.float32, num_cells: int = CELLS) -> TorchKVMemory:
    return TorchKVMemory(
        num_layers=2,
        num_kv_heads=2,
        head_dim=4,
        num_cells=num_cells,
        num_sequences=SEQUENCES,
        dtype=dtype,
        device=torch.device("cpu"),
        namespace=b"n",
    )


def write(memory: TorchKVMemory, sequence_id: int, values: list[int]) -> bool:
    """As a step does: the number of each token stands wherever its K, V and scales do."""
    start = memory.length(sequence_id)
    reach = [Reach(sequence_id, start + len(values))]
    if not memory.reserve(reach):
        return False
    slots = memory.slots(sequence_id, start, start + len(values))
    for layer in memory.layers:
        for tensor in (layer.keys, layer.values, layer.key_scales, layer.value_scales):
            if tensor is not None:
                rows = tensor.view(-1, *tensor.shape[2:])
                for slot, value in zip(slots, values, strict=True):
                    rows[slot] = value
    memory.commit(reach)
    return True


def held(memory: TorchKVMemory, sequence_id: int) -> list[int]:
    """What its tokens are, if all layers agree."""
    slots = memory.slots(sequence_id, 0, memory.length(sequence_id))
    found = {
        tuple(tensor.view(-1, *tensor.shape[2:])[slots].flatten(1)[:, 0].tolist())
        for layer in memory.layers
        for tensor in (layer.keys, layer.values)
    }
    (values,) = found
    return [int(value) for value in values]


def values(count: int, seed: int = 0) -> list[int]:
    return [random.Random(seed + place).randrange(1, 100) for place in range(count)]


@pytest.mark.parametrize("at", [1, 15, 16, 17, 32, 40])
def test_a_fork_shares_what_is_before_it_and_neither_sees_what_the_other_writes(at: int) -> None:
    memory = memory_of()
    old, new, more = values(40), values(20, 500), values(9, 900)
    assert write(memory, 0, old)
    memory.fork(0, 1, at)
    assert memory.table(1) == memory.table(0)[: -(-at // 16)]
    assert write(memory, 1, new) and write(memory, 0, more)
    assert held(memory, 0) == old + more
    assert held(memory, 1) == old[:at] + new
    memory.check()


def test_a_fork_of_whole_blocks_copies_nothing() -> None:
    memory = memory_of()
    write(memory, 0, values(32))
    memory.fork(0, 1, 32)
    write(memory, 1, values(16, 7))
    assert memory.table(1)[:2] == memory.table(0)


def test_who_was_cut_back_into_a_shared_block_does_not_write_into_it() -> None:
    memory = memory_of()
    old = values(32)
    write(memory, 0, old)
    memory.fork(0, 1, 32)
    memory.truncate(0, 20)
    write(memory, 0, [99] * 10)
    assert held(memory, 1) == old
    assert held(memory, 0) == old[:20] + [99] * 10
    memory.check()


@pytest.mark.parametrize("dtype", KINDS, ids=str)
def test_a_random_history_agrees_with_lists(dtype: torch.dtype) -> None:
    memory = memory_of(dtype, num_cells=64)
    chance = random.Random(3)
    lists: list[list[int]] = [[] for _ in range(SEQUENCES)]
    blobs: list[tuple[np.ndarray, list[int], int]] = []
    for _ in range(700):
        one, other = chance.sample(range(SEQUENCES), 2)
        match chance.randrange(7):
            case 0 | 1:
                more = values(chance.randrange(1, 20), chance.randrange(1000))
                if write(memory, one, more):
                    lists[one] = lists[one] + more
            case 2 if lists[one] and not lists[other]:
                at = chance.randrange(1, len(lists[one]) + 1)
                memory.fork(one, other, at)
                lists[other] = lists[one][:at]
            case 3:
                at = chance.randrange(len(lists[one]) + 1)
                assert memory.truncate(one, at)
                lists[one] = lists[one][:at]
            case 4:
                memory.free(one)
                lists[one] = []
            case 5 if len(lists[one]) > 2:
                start = chance.randrange(len(lists[one]) - 1)
                end = chance.randrange(start + 1, len(lists[one]) + 1)
                blob = memory.export(one, start, end)
                assert blob is not None
                blobs.append((blob, lists[one][:end], start))
            case 6 if blobs:
                blob, tokens, start = chance.choice(blobs)
                length = len(lists[one])
                if start <= length < len(tokens) and lists[one] == tokens[:length]:
                    upto = chance.randrange(length + 1, len(tokens) + 1)
                    if memory.restore(one, blob, start, len(tokens), upto):
                        lists[one] = tokens[:upto]
        memory.check()
        assert [held(memory, each) for each in range(SEQUENCES)] == lists


def test_as_many_tokens_fit_as_were_promised_however_they_are_shared() -> None:
    """The engine's books count tokens, and blocks may not run out before."""
    chance = random.Random(5)
    for _ in range(60):
        memory = memory_of(num_cells=64)
        cells: list[list[int]] = [[] for _ in range(SEQUENCES)]
        fresh = iter(range(10_000))
        for _ in range(60):
            one, other = chance.sample(range(SEQUENCES), 2)
            used = len({cell for each in cells for cell in each})
            match chance.randrange(4):
                case 0 | 1:
                    count = chance.randrange(1, 24)
                    if used + count <= 64:
                        assert write(memory, one, [1] * count)
                        cells[one] += [next(fresh) for _ in range(count)]
                case 2 if cells[one] and not cells[other]:
                    at = chance.randrange(1, len(cells[one]) + 1)
                    memory.fork(one, other, at)
                    cells[other] = cells[one][:at]
                case 3:
                    at = chance.randrange(len(cells[one]) + 1)
                    memory.truncate(one, at)
                    cells[one] = cells[one][:at]


@pytest.mark.parametrize("dtype", KINDS, ids=str)
def test_what_comes_back_has_the_same_bits(dtype: torch.dtype) -> None:
    memory = memory_of(dtype)
    torch.manual_seed(0)
    for layer in memory.layers:
        for tensor in (layer.keys, layer.values):
            noise = torch.randn(tensor.shape) * 50
            tensor.copy_(
                noise.to(dtype) if dtype != torch.int8 else noise.clamp(-127, 127).to(dtype)
            )
    reach = [Reach(0, 50)]
    assert memory.reserve(reach)
    memory.commit(reach)
    first, second = memory.export(0, 0, 21), memory.export(0, 21, 50)
    assert first is not None and second is not None
    assert memory.restore(2, first, 0, 21, 21)
    assert memory.restore(2, second, 21, 50, 50)
    assert memory.table(2) != memory.table(0)
    one, other = memory.export(0, 0, 50), memory.export(2, 0, 50)
    assert one is not None and other is not None
    np.testing.assert_array_equal(one, other)


def test_the_beginning_of_a_blob_is_the_blob_of_the_beginning() -> None:
    memory = memory_of()
    write(memory, 0, values(40))
    whole, part = memory.export(0, 3, 40), memory.export(0, 3, 20)
    assert whole is not None and part is not None
    cut = memory.cut(whole, 3, 40, 17)
    assert cut is not None
    np.testing.assert_array_equal(cut, part)
    assert memory.cut(whole, 3, 40, 38) is None
    assert memory.cut(whole, 2, 40, 5) is None


def test_a_blob_of_other_tokens_or_another_layout_is_refused_and_changes_nothing() -> None:
    memory, other = memory_of(), memory_of(torch.float16)
    write(memory, 0, values(20))
    blob = memory.export(0, 0, 20)
    assert blob is not None
    assert not memory.restore(1, blob, 0, 19, 19)
    assert not memory.restore(1, blob[:-1], 0, 20, 20)
    assert not memory.restore(1, blob[:10], 0, 20, 20)
    assert not other.restore(1, blob, 0, 20, 20)
    damaged = blob.copy()
    damaged[0] ^= 1
    assert not memory.restore(1, damaged, 0, 20, 20)
    assert memory.length(1) == 0 and other.length(1) == 0
    memory.check()


def test_a_blob_that_nobody_may_write_to_is_read() -> None:
    memory = memory_of()
    tokens = values(20)
    write(memory, 0, tokens)
    blob = memory.export(0, 0, 20)
    assert blob is not None
    blob.setflags(write=False)
    assert memory.restore(1, blob, 0, 20, 20)
    assert held(memory, 1) == tokens


def test_states_of_llama_cpp_are_no_blobs_of_ours() -> None:
    state = np.zeros(4096, np.uint8)
    state[:4] = np.frombuffer(np.uint32(0xAF143CD8).tobytes(), np.uint8)
    assert read_blob(state, 0, 8, 16) is None


def test_clear_overwrites_everything() -> None:
    memory = memory_of()
    write(memory, 0, values(40))
    memory.layers[0].keys.fill_(float("nan"))
    memory.clear()
    assert memory.length(0) == 0
    assert all(bool((layer.keys == 0).all()) for layer in memory.layers)
    memory.check()


def test_without_room_nothing_changes() -> None:
    memory = memory_of(num_cells=16)
    write(memory, 0, values(16))
    most = num_blocks_for(16, SEQUENCES) * 16
    assert not memory.reserve([Reach(0, 20), Reach(1, most)])
    assert memory.length(0) == 16 and memory.length(1) == 0
    memory.check()


def test_room_that_was_not_needed_is_given_back() -> None:
    memory = memory_of()
    write(memory, 0, values(20))
    reach = [Reach(0, 70), Reach(1, 5)]
    assert memory.reserve(reach)
    memory.give_back(reach)
    memory.check()
    assert memory.length(0) == 20


def test_calls_that_the_books_do_not_allow_are_refused() -> None:
    memory = memory_of()
    write(memory, 0, values(4))
    for source, target, count in ((0, 1, 5), (1, 0, 0), (0, 9, 1)):
        with pytest.raises(BrokenCall):
            memory.fork(source, target, count)
    with pytest.raises(BrokenCall):
        memory.length(-1)
