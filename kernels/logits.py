"""What is done to rows of logits before the draw: biases, masks, penalties, temperature. In place.

The order is that of the engine: biases, then the mask of a grammar, then penalties, and the
temperature where the filters want it. Rows are [n, vocab] float32; lists of tokens are [n, width]
int32, distinct within a row, and below 0 where a row has fewer.
"""

import torch
from torch import Tensor

from kernels.choice import takes_kernel
from kernels.language import constexpr, jit, jit_for_counts, soft_capped, tensor, tl
from kernels.launch import launch

COLUMNS = 1024

LARGEST = torch.finfo(torch.float32).max
"""Above it there is only infinity, which would leave no doubt."""


def check_logits(logits: Tensor) -> None:
    """Raises ValueError: these are no rows of logits."""
    if logits.dim() != 2 or logits.dtype != torch.float32 or logits.stride(1) != 1:
        raise ValueError(
            f"Logits must be [n, vocab] float32 with adjacent numbers, but they are"
            f" {list(logits.shape)} {logits.dtype}."
        )


def _check_beside(logits: Tensor, token_ids: Tensor, *others: tuple[Tensor, torch.dtype]) -> None:
    check_logits(logits)
    if token_ids.dim() != 2 or token_ids.shape[0] != logits.shape[0]:
        raise ValueError(
            f"Tokens must be [{logits.shape[0]}, width], but they are {list(token_ids.shape)}."
        )
    for x, dtype in ((token_ids, torch.int32), *others):
        if x.shape != token_ids.shape or x.dtype != dtype or not x.is_contiguous():
            raise ValueError(
                f"Beside tokens {list(token_ids.shape)} there must be as many {dtype}, not"
                f" {list(x.shape)} {x.dtype}."
            )


def _check_per_row(logits: Tensor, *values: Tensor) -> None:
    for x in values:
        if x.shape != logits.shape[:1] or x.dtype != torch.float32:
            raise ValueError(
                f"Each of {logits.shape[0]} rows needs one float32, but there are {list(x.shape)}"
                f" {x.dtype}."
            )


def apply_biases(logits: Tensor, token_ids: Tensor, biases: Tensor) -> None:
    """Add `biases` [n, width] float32 to the logits of tokens; -inf bans one."""
    _check_beside(logits, token_ids, (biases, torch.float32))
    run = _apply_biases if takes_kernel("apply_biases", logits) else apply_biases_reference
    run(logits, token_ids, biases)


def apply_biases_reference(logits: Tensor, token_ids: Tensor, biases: Tensor) -> None:
    rows, columns = torch.nonzero(token_ids >= 0, as_tuple=True)
    logits[rows, token_ids[rows, columns].long()] += biases[rows, columns]


def apply_bitmask(logits: Tensor, bitmask: Tensor, rows: Tensor | None = None) -> None:
    """-inf where the bit of a token is 0. bitmask [m, ceil(vocab / 32)] int32: bit b of word w is
    that of token 32 * w + b. `rows` [m] int32: the rows meant; None: all of them, in order."""
    check_logits(logits)
    num_masks = logits.shape[0] if rows is None else rows.shape[0]
    wanted = (num_masks, -(-logits.shape[1] // 32))
    if bitmask.shape != wanted or bitmask.dtype != torch.int32 or bitmask.stride(1) != 1:
        raise ValueError(
            f"The bitmask must be {list(wanted)} int32, but it is {list(bitmask.shape)}"
            f" {bitmask.dtype}."
        )
    if rows is not None and (rows.dim() != 1 or rows.dtype != torch.int32):
        raise ValueError(f"Rows must be [m] int32, not {list(rows.shape)} {rows.dtype}.")
    run = _apply_bitmask if takes_kernel("apply_bitmask", logits) else apply_bitmask_reference
    run(logits, bitmask, rows)


def apply_bitmask_reference(logits: Tensor, bitmask: Tensor, rows: Tensor | None = None) -> None:
    bits = torch.arange(32, device=logits.device, dtype=torch.int32)
    is_allowed = (bitmask[:, :, None] >> bits & 1).flatten(1)[:, : logits.shape[1]] != 0
    if rows is None:
        logits.masked_fill_(~is_allowed, -torch.inf)
    else:
        logits[rows.long()] = logits[rows.long()].masked_fill(~is_allowed, -torch.inf)


def apply_penalties(
    logits: Tensor,
    token_ids: Tensor,
    recent_counts: Tensor,
    answer_counts: Tensor,
    repetition: Tensor,
    frequency: Tensor,
    presence: Tensor,
) -> None:
    """Lower the logits of tokens that were said; counts [n, width] int32, penalties [n] float32.

    A token with a recent count is divided by `repetition` where its logit is above 0, and
    multiplied below (Keskar and others, arXiv 1909.05858). One with an answer count loses
    `frequency` for each time and `presence` once (OpenAI's API).
    """
    _check_beside(logits, token_ids, (recent_counts, torch.int32), (answer_counts, torch.int32))
    _check_per_row(logits, repetition, frequency, presence)
    run = _apply_penalties if takes_kernel("apply_penalties", logits) else apply_penalties_reference
    run(logits, token_ids, recent_counts, answer_counts, repetition, frequency, presence)


def apply_penalties_reference(
    logits: Tensor,
    token_ids: Tensor,
    recent_counts: Tensor,
    answer_counts: Tensor,
    repetition: Tensor,
    frequency: Tensor,
    presence: Tensor,
) -> None:
    rows, columns = torch.nonzero(token_ids >= 0, as_tuple=True)
    ids = token_ids[rows, columns].long()
    values, factors = logits[rows, ids], repetition[rows]
    repeated = torch.where(values > 0, values / factors, values * factors).clamp(max=LARGEST)
    values = torch.where(recent_counts[rows, columns] > 0, repeated, values)
    counts = answer_counts[rows, columns]
    lost = frequency[rows] * counts + torch.where(counts > 0, presence[rows], 0.0)
    logits[rows, ids] = values - lost


def apply_temperature(logits: Tensor, temperatures: Tensor) -> None:
    """Divide by `temperatures` [n] float32; a row with 0 stays, as its largest logit is taken."""
    check_logits(logits)
    _check_per_row(logits, temperatures)
    run = _divide if takes_kernel("apply_temperature", logits) else apply_temperature_reference
    run(logits, temperatures)


def apply_temperature_reference(logits: Tensor, temperatures: Tensor) -> None:
    logits /= torch.where(temperatures > 0, temperatures, 1.0)[:, None]


def apply_softcap(logits: Tensor, cap: float) -> None:
    """cap * tanh(logits / cap), for models that were trained so (Gemma 2)."""
    check_logits(logits)
    if cap <= 0:
        raise ValueError(f"A cap must be above 0, got {cap}.")
    run = _cap if takes_kernel("apply_softcap", logits) else apply_softcap_reference
    run(logits, cap)


def apply_softcap_reference(logits: Tensor, cap: float) -> None:
    logits.div_(cap).tanh_().mul_(cap)


def _apply_biases(logits: Tensor, token_ids: Tensor, biases: Tensor) -> None:
    width = token_ids.shape[1]
    launch(
        bias_kernel,
        (logits.shape[0], -(-width // COLUMNS)),
        {
            "logits": logits,
            "token_ids": token_ids,
            "biases": biases,
            "row_stride": logits.stride(0),
            "width": width,
        },
        {"COLUMNS": COLUMNS},
        counts=("width",),
    )


@jit_for_counts("width")
def bias_kernel(
    logits: tensor,
    token_ids: tensor,
    biases: tensor,
    row_stride: tensor,
    width: tensor,
    COLUMNS: constexpr,
) -> None:
    row = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    token = tl.load(token_ids + row * width + column, mask=column < width, other=-1)
    bias = tl.load(biases + row * width + column, mask=token >= 0, other=0.0)
    target = logits + row * row_stride + token
    tl.store(target, tl.load(target, mask=token >= 0, other=0.0) + bias, mask=token >= 0)


def _apply_bitmask(logits: Tensor, bitmask: Tensor, rows: Tensor | None) -> None:
    num_masks, vocab = bitmask.shape[0], logits.shape[1]
    launch(
        bitmask_kernel,
        (num_masks, -(-vocab // COLUMNS)),
        {
            "logits": logits,
            "bitmask": bitmask,
            "rows": bitmask if rows is None else rows,
            "row_stride": logits.stride(0),
            "mask_stride": bitmask.stride(0),
            "vocab": vocab,
        },
        {"HAS_ROWS": rows is not None, "COLUMNS": COLUMNS},
    )


@jit
def bitmask_kernel(
    logits: tensor,
    bitmask: tensor,
    rows: tensor,
    row_stride: tensor,
    mask_stride: tensor,
    vocab: tensor,
    HAS_ROWS: constexpr,
    COLUMNS: constexpr,
) -> None:
    mask = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    row = mask
    if HAS_ROWS:
        row = tl.load(rows + mask).to(tl.int64)
    is_held = column < vocab
    word = tl.load(bitmask + mask * mask_stride + column // 32, mask=is_held, other=0)
    is_banned = ((word >> (column % 32)) & 1) == 0
    tl.store(logits + row * row_stride + column, -float("inf"), mask=is_held & is_banned)


def _apply_penalties(
    logits: Tensor,
    token_ids: Tensor,
    recent_counts: Tensor,
    answer_counts: Tensor,
    repetition: Tensor,
    frequency: Tensor,
    presence: Tensor,
) -> None:
    width = token_ids.shape[1]
    launch(
        penalty_kernel,
        (logits.shape[0], -(-width // COLUMNS)),
        {
            "logits": logits,
            "token_ids": token_ids,
            "recent_counts": recent_counts,
            "answer_counts": answer_counts,
            "repetition": repetition,
            "frequency": frequency,
            "presence": presence,
            "row_stride": logits.stride(0),
            "width": width,
        },
        {"LARGEST": LARGEST, "COLUMNS": COLUMNS},
        counts=("width",),
    )


@jit_for_counts("width")
def penalty_kernel(
    logits: tensor,
    token_ids: tensor,
    recent_counts: tensor,
    answer_counts: tensor,
    repetition: tensor,
    frequency: tensor,
    presence: tensor,
    row_stride: tensor,
    width: tensor,
    LARGEST: constexpr,
    COLUMNS: constexpr,
) -> None:
    row = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    place = row * width + column
    token = tl.load(token_ids + place, mask=column < width, other=-1)
    is_held = token >= 0
    target = logits + row * row_stride + token
    value = tl.load(target, mask=is_held, other=0.0)
    factor = tl.load(repetition + row)
    repeated = tl.minimum(tl.where(value > 0, value / factor, value * factor), LARGEST)
    value = tl.where(tl.load(recent_counts + place, mask=is_held, other=0) > 0, repeated, value)
    count = tl.load(answer_counts + place, mask=is_held, other=0)
    once = tl.where(count > 0, tl.load(presence + row), 0.0)
    value -= tl.load(frequency + row) * count.to(tl.float32) + once
    tl.store(target, value, mask=is_held)


def _divide(logits: Tensor, temperatures: Tensor) -> None:
    _scale(logits, temperatures, 0.0)


def _cap(logits: Tensor, cap: float) -> None:
    _scale(logits, None, cap)


def _scale(logits: Tensor, temperatures: Tensor | None, cap: float) -> None:
    num_rows, vocab = logits.shape
    launch(
        scale_kernel,
        (num_rows, -(-vocab // COLUMNS)),
        {
            "logits": logits,
            "temperatures": logits if temperatures is None else temperatures,
            "cap": float(cap),
            "row_stride": logits.stride(0),
            "vocab": vocab,
        },
        {"HAS_CAP": temperatures is None, "COLUMNS": COLUMNS},
    )


@jit
def scale_kernel(
    logits: tensor,
    temperatures: tensor,
    cap: tensor,
    row_stride: tensor,
    vocab: tensor,
    HAS_CAP: constexpr,
    COLUMNS: constexpr,
) -> None:
    row = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    target = logits + row * row_stride + column
    value = tl.load(target, mask=column < vocab, other=0.0)
    if HAS_CAP:
        value = soft_capped(value, cap)
    else:
        temperature = tl.load(temperatures + row)
        value = value / tl.where(temperature > 0, temperature, 1.0)
    tl.store(target, value, mask=column < vocab)
