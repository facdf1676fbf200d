"""One random number per seed and position."""

import torch

from kernels.choice import interpreted
from kernels.language import constexpr, jit, tensor, tl
from kernels.launch import launch
from kernels.philox import NUM_ROUNDS, philox_reference, uniform, uniform_reference

SEEDS = torch.tensor([0, 1, -1, 2**62 + 12345, -(2**63)])
POSITIONS = torch.tensor([0, 2**33 + 5, 2**31, 77, 2**63 - 1])


@jit
def uniform_kernel(seeds: tensor, positions: tensor, result: tensor, ROUNDS: constexpr) -> None:
    index = tl.program_id(0)
    number = uniform(tl.load(seeds + index), tl.load(positions + index), ROUNDS)
    tl.store(result + index, number)


def test_the_words_are_those_of_the_published_generator() -> None:
    """The known answer of Random123 for a counter and a key of zeros."""
    zero = torch.zeros(1, dtype=torch.int64)
    assert philox_reference(zero, zero).tolist() == [0x6627E8D5]


def test_the_kernel_has_the_same_numbers() -> None:
    result = torch.full((5,), torch.nan)
    arguments = {"seeds": SEEDS, "positions": POSITIONS, "result": result}
    with interpreted():
        launch(uniform_kernel, (5,), arguments, {"ROUNDS": NUM_ROUNDS})
    assert torch.equal(result, uniform_reference(SEEDS, POSITIONS))


def test_numbers_fill_the_range_evenly_and_differ_with_seed_and_position() -> None:
    positions = torch.arange(20_000)
    numbers = uniform_reference(torch.full_like(positions, 7), positions)
    assert numbers.min() >= 0 and numbers.max() < 1
    counts = torch.histc(numbers, bins=20, min=0, max=1)
    # 1,000 are expected in each; five deviations are 154.
    assert ((counts - 1000).abs() < 160).all()
    others = uniform_reference(torch.full_like(positions, 8), positions)
    assert abs(torch.corrcoef(torch.stack((numbers, others)))[0, 1].item()) < 0.04
