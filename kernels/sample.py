"""The draw: exact top-k, top-p and min-p, and one token per row of logits.

Exact means: what sorting the whole row would give, equals included, of which lower ids come first.
The same seed and position give the same token in every batch.
"""

import torch
from torch import Tensor

from kernels.logits import check_logits
from kernels.philox import uniform_reference


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
    return sample_reference(
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
