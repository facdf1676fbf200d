"""What is done to rows of logits before the draw: biases, masks, penalties, temperature. In place.

The order is that of the engine: biases, then the mask of a grammar, then penalties, and the
temperature where the filters want it. Rows are [n, vocab] float32; lists of tokens are [n, width]
int32, distinct within a row, and below 0 where a row has fewer.
"""

import torch
from torch import Tensor

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
    apply_biases_reference(logits, token_ids, biases)


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
    apply_bitmask_reference(logits, bitmask, rows)


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
    apply_penalties_reference(
        logits, token_ids, recent_counts, answer_counts, repetition, frequency, presence
    )


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
    apply_temperature_reference(logits, temperatures)


def apply_temperature_reference(logits: Tensor, temperatures: Tensor) -> None:
    logits /= torch.where(temperatures > 0, temperatures, 1.0)[:, None]


def apply_softcap(logits: Tensor, cap: float) -> None:
    """cap * tanh(logits / cap), for models that were trained so (Gemma 2)."""
    check_logits(logits)
    if cap <= 0:
        raise ValueError(f"A cap must be above 0, got {cap}.")
    apply_softcap_reference(logits, cap)


def apply_softcap_reference(logits: Tensor, cap: float) -> None:
    logits.div_(cap).tanh_().mul_(cap)
