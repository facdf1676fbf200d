"""What an answer cost that several requests wrote one after the other."""

from collections.abc import Sequence

from engine.metrics import Timings


def together(parts: Sequence[Timings]) -> Timings:
    """Of all of them: sums of counts and of waits, the first token of the first, the end of the
    last, and the pace of all tokens that were written. Without parts nothing was measured."""
    if not parts:
        return Timings()
    paced = [(max(0, each.completion_tokens - 1), each.tpot_ms) for each in parts if each.tpot_ms]
    num_paced = sum(num for num, _ in paced)
    places = {each.restored_from for each in parts} - {""}
    return Timings(
        prefilled_tokens=sum(each.prefilled_tokens for each in parts),
        cached_tokens=sum(each.cached_tokens for each in parts),
        restored_tokens=sum(each.restored_tokens for each in parts),
        restored_from="disk" if "disk" in places else "".join(sorted(places)),
        restore_ms=sum(each.restore_ms for each in parts),
        begun_tokens=sum(each.begun_tokens for each in parts),
        forced_tokens=sum(each.forced_tokens for each in parts),
        drafted_tokens=sum(each.drafted_tokens for each in parts),
        accepted_tokens=sum(each.accepted_tokens for each in parts),
        completion_tokens=sum(each.completion_tokens for each in parts),
        ttft_ms=parts[0].ttft_ms,
        tpot_ms=sum(num * each for num, each in paced) / num_paced if num_paced else 0.0,
        queue_ms=sum(each.queue_ms for each in parts),
        finish=parts[-1].finish,
        is_reproducible=all(each.is_reproducible for each in parts),
    )
