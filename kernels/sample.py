"""The draw: exact top-k, top-p and min-p, and one token per row of logits.

Exact means: what sorting the whole row would give, equals included, of which lower ids come first.
The same seed and position give the same token in every batch.
"""

from typing import Any

import torch
from torch import Tensor

from kernels.choice import takes_kernel
from kernels.language import constexpr, jit, power_of_two, tensor, tl
from kernels.launch import launch
from kernels.logits import check_logits
from kernels.philox import NUM_ROUNDS, uniform, uniform_reference

# Of a row at once; a row is walked over once for every bit of a threshold.
COLUMNS = 8192

# Keys are whole numbers in the order of float32; this one is the least finite number's.
LEAST_KEY = -2139095040


def sample(
    logits: Tensor,
    *,
    temperatures: Tensor,
    top_k: Tensor,
    top_p: Tensor,
    min_p: Tensor,
    seeds: Tensor,
    positions: Tensor,
    filter_temperatures: Tensor | None = None,
) -> Tensor:
    """logits [n, vocab] float32, none +inf; the others [n] -> token ids [n] int32.

    temperatures float32: 0 takes the largest logit. top_k int32: 0 keeps all. top_p float32: 1
    keeps all, 0 keeps one token. min_p float32: 0 keeps all. seeds, positions int64.
    filter_temperatures float32, above 0: what logits are divided by for the filters; None: they see
    the logits as they are, as in llama.cpp's order, where the temperature comes last.
    A row of nothing but -inf and NaN leaves nothing to draw: it gives -1.
    """
    if filter_temperatures is None:
        filter_temperatures = torch.ones_like(temperatures)
    check_sample(logits, temperatures, top_k, top_p, min_p, seeds, positions, filter_temperatures)
    run = _sample if takes_kernel("sample", logits) else sample_reference
    return run(
        logits,
        temperatures=temperatures,
        top_k=top_k,
        top_p=top_p,
        min_p=min_p,
        seeds=seeds,
        positions=positions,
        filter_temperatures=filter_temperatures,
    )


def check_sample(
    logits: Tensor,
    temperatures: Tensor,
    top_k: Tensor,
    top_p: Tensor,
    min_p: Tensor,
    seeds: Tensor,
    positions: Tensor,
    filter_temperatures: Tensor,
) -> None:
    """Raises ValueError: the arguments do not go together."""
    check_logits(logits)
    for name, x, dtype in (
        ("temperatures", temperatures, torch.float32),
        ("top_k", top_k, torch.int32),
        ("top_p", top_p, torch.float32),
        ("min_p", min_p, torch.float32),
        ("seeds", seeds, torch.int64),
        ("positions", positions, torch.int64),
        ("filter_temperatures", filter_temperatures, torch.float32),
    ):
        if x.shape != logits.shape[:1] or x.dtype != dtype or not x.is_contiguous():
            raise ValueError(
                f"{name} must be [{logits.shape[0]}] {dtype}, but is {list(x.shape)} {x.dtype}."
            )


def sample_reference(
    logits: Tensor,
    *,
    temperatures: Tensor,
    top_k: Tensor,
    top_p: Tensor,
    min_p: Tensor,
    seeds: Tensor,
    positions: Tensor,
    filter_temperatures: Tensor,
) -> Tensor:
    rows = torch.where(logits.isnan(), -torch.inf, logits).double()
    highest = rows.amax(dim=1, keepdim=True)
    # Of equals the stable order keeps lower ids in front.
    values, order = rows.sort(dim=1, descending=True, stable=True)
    places = torch.arange(rows.shape[1], device=rows.device)
    kept = (values > -torch.inf) & ((top_k[:, None] == 0) | (places < top_k[:, None]))
    weights = torch.exp((values - highest) / filter_temperatures.double()[:, None])
    weights = torch.where(kept, weights, 0.0)
    before = weights.cumsum(dim=1) - weights
    shares = top_p.double()[:, None]
    is_needed = (before < shares * weights.sum(dim=1, keepdim=True)) | (places == 0)
    kept &= is_needed | (shares >= 1)
    kept &= weights >= min_p.double()[:, None]
    # Back in the order of ids, in which the draw goes along.
    in_draw = torch.zeros_like(kept).scatter(1, order, kept)
    bound = temperatures.double()[:, None].clamp(min=torch.finfo(torch.float32).tiny)
    chances = torch.where(in_draw, torch.exp((rows - highest) / bound), 0.0)
    sums = chances.cumsum(dim=1)
    targets = uniform_reference(seeds, positions).double()[:, None] * sums[:, -1:]
    drawn = (sums > targets).int().argmax(dim=1)
    chosen = torch.where(temperatures > 0, drawn, rows.argmax(dim=1))
    return torch.where(highest[:, 0] > -torch.inf, chosen, -1).int()


def _sample(
    logits: Tensor,
    *,
    temperatures: Tensor,
    top_k: Tensor,
    top_p: Tensor,
    min_p: Tensor,
    seeds: Tensor,
    positions: Tensor,
    filter_temperatures: Tensor,
) -> Tensor:
    num_rows, vocab = logits.shape
    chosen = torch.empty(num_rows, dtype=torch.int32, device=logits.device)
    columns = min(COLUMNS, power_of_two(vocab))
    launch(
        sample_kernel,
        (num_rows,),
        {
            "logits": logits,
            "temperatures": temperatures,
            "top_k": top_k,
            "top_p": top_p,
            "min_p": min_p,
            "seeds": seeds,
            "positions": positions,
            "filter_temperatures": filter_temperatures,
            "chosen": chosen,
            "row_stride": logits.stride(0),
            "vocab": vocab,
        },
        {"LEAST": LEAST_KEY, "COLUMNS": columns, "ROUNDS": NUM_ROUNDS},
        num_warps=16 if columns >= 4096 else 4,
    )
    return chosen


@jit
def _numbers(row: tensor, column: tensor, vocab: tensor) -> Any:
    """A stretch of logits: what is none is -inf, and there is one zero."""
    x = tl.load(row + column, mask=column < vocab, other=-float("inf"))
    x = tl.where(x == x, x, -float("inf"))
    return tl.where(x == 0.0, 0.0, x)


@jit
def _keys(x: tensor) -> Any:
    bits = x.to(tl.int32, bitcast=True)
    return tl.where(bits < 0, bits ^ 0x7FFFFFFF, bits)


@jit
def _number_of(key: tensor) -> Any:
    bits = tl.where(key < 0, key ^ 0x7FFFFFFF, key)
    return bits.to(tl.float32, bitcast=True)


@jit
def _middle(low: tensor, high: tensor) -> Any:
    """The middle of two whole numbers, rounded up, without their sum."""
    return (low | high) - ((low ^ high) >> 1)


@jit
def _above(
    row: tensor,
    vocab: tensor,
    key: tensor,
    highest: tensor,
    cooling: tensor,
    LEAST: constexpr,
    COLUMNS: constexpr,
) -> Any:
    """Of the logits with at least this key: how many there are, and what they weigh."""
    column = tl.arange(0, COLUMNS)
    count = 0
    mass = 0.0
    for start in tl.range(0, vocab, COLUMNS):
        x = _numbers(row, start + column, vocab)
        keys = _keys(x)
        is_above = (keys >= key) & (keys >= LEAST)
        count += tl.sum(is_above.to(tl.int32), 0)
        mass += tl.sum(tl.where(is_above, tl.exp((x - highest) * cooling), 0.0), 0)
    return count, mass


@jit
def sample_kernel(
    logits: tensor,
    temperatures: tensor,
    top_k: tensor,
    top_p: tensor,
    min_p: tensor,
    seeds: tensor,
    positions: tensor,
    filter_temperatures: tensor,
    chosen: tensor,
    row_stride: tensor,
    vocab: tensor,
    LEAST: constexpr,
    COLUMNS: constexpr,
    ROUNDS: constexpr,
) -> None:
    index = tl.program_id(0).to(tl.int64)
    row = logits + index * row_stride
    column = tl.arange(0, COLUMNS)
    highest = -float("inf")
    likeliest = 0
    num_finite = 0
    for start in tl.range(0, vocab, COLUMNS):
        x = _numbers(row, start + column, vocab)
        top = tl.max(x, 0)
        first = tl.min(tl.where(x == top, start + column, vocab), 0)
        likeliest = tl.where(top > highest, first, likeliest)
        highest = tl.maximum(highest, top)
        num_finite += tl.sum((x > -float("inf")).to(tl.int32), 0)
    temperature = tl.load(temperatures + index)
    if num_finite == 0:
        tl.store(chosen + index, -1)
        return
    if temperature <= 0.0:
        tl.store(chosen + index, likeliest)
        return

    cooling = 1.0 / tl.load(filter_temperatures + index)
    highest_key = _keys(highest)
    # In the draw: every key above `bound`, and of those that equal it the first `num_equal`.
    bound = LEAST
    num_equal = vocab
    k = tl.load(top_k + index)
    if (k > 0) & (k < num_finite):
        low = bound
        high = highest_key
        while low < high:
            middle = _middle(low, high)
            count, _ = _above(row, vocab, middle, highest, cooling, LEAST, COLUMNS)
            is_enough = count >= k
            low = tl.where(is_enough, middle, low)
            # As many as wanted: it does not matter where between two logits the bound lies.
            high = tl.where(count == k, middle, tl.where(is_enough, high, middle - 1))
        bound = low
        num_above, _ = _above(row, vocab, bound + 1, highest, cooling, LEAST, COLUMNS)
        num_equal = k - num_above
    p = tl.load(top_p + index)
    if p < 1.0:
        num_all, _ = _above(row, vocab, bound, highest, cooling, LEAST, COLUMNS)
        num_above, mass_above = _above(row, vocab, bound + 1, highest, cooling, LEAST, COLUMNS)
        num_tied = tl.minimum(num_all - num_above, num_equal)
        tied = tl.exp((_number_of(bound) - highest) * cooling)
        wanted = p * (mass_above + tied * num_tied.to(tl.float32))
        low = bound
        high = highest_key
        # With one logit left between them the bound need not be its very key.
        num_from_low = num_all
        num_beyond = 0
        while (low < high) & (num_from_low - num_beyond > 1):
            middle = _middle(low, high)
            count, mass = _above(row, vocab, middle, highest, cooling, LEAST, COLUMNS)
            is_enough = mass >= wanted
            num_from_low = tl.where(is_enough, count, num_from_low)
            num_beyond = tl.where(is_enough, num_beyond, count)
            low = tl.where(is_enough, middle, low)
            high = tl.where(is_enough, high, middle - 1)
        num_tied = tl.where(low == bound, num_tied, vocab)
        bound = low
        _, mass_above = _above(row, vocab, bound + 1, highest, cooling, LEAST, COLUMNS)
        tied = tl.exp((_number_of(bound) - highest) * cooling)
        # What weighs nothing cannot fill up anything.
        missing = tl.ceil((wanted - mass_above) / tl.where(tied > 0, tied, 1.0))
        fewest = tl.minimum(tl.maximum(missing, 1.0), vocab.to(tl.float32)).to(tl.int32)
        num_equal = tl.minimum(fewest, num_tied)

    share = tl.load(min_p + index)
    heating = 1.0 / temperature
    total = 0.0
    num_seen = 0
    for start in tl.range(0, vocab, COLUMNS):
        x = _numbers(row, start + column, vocab)
        keys = _keys(x)
        is_equal = (keys == bound).to(tl.int32)
        is_early = (is_equal > 0) & (num_seen + tl.cumsum(is_equal, 0) <= num_equal)
        in_draw = (keys > bound) | is_early
        in_draw = in_draw & (tl.exp((x - highest) * cooling) >= share)
        total += tl.sum(tl.where(in_draw, tl.exp((x - highest) * heating), 0.0), 0)
        num_seen += tl.sum(is_equal, 0)

    goal = uniform(tl.load(seeds + index), tl.load(positions + index), ROUNDS) * total
    passed = 0.0
    num_seen = 0
    found = vocab
    last = likeliest
    for start in tl.range(0, vocab, COLUMNS):
        x = _numbers(row, start + column, vocab)
        keys = _keys(x)
        is_equal = (keys == bound).to(tl.int32)
        is_early = (is_equal > 0) & (num_seen + tl.cumsum(is_equal, 0) <= num_equal)
        in_draw = (keys > bound) | is_early
        in_draw = in_draw & (tl.exp((x - highest) * cooling) >= share)
        chance = tl.where(in_draw, tl.exp((x - highest) * heating), 0.0)
        is_past = (passed + tl.cumsum(chance, 0) > goal) & (chance > 0)
        found = tl.minimum(found, tl.min(tl.where(is_past, start + column, vocab), 0))
        last = tl.maximum(last, tl.max(tl.where(chance > 0, start + column, 0), 0))
        passed += tl.sum(chance, 0)
        num_seen += tl.sum(is_equal, 0)
    # Sums in two orders may differ in the last bit, and leave the goal behind the last token.
    tl.store(chosen + index, tl.where(found < vocab, found, last))
