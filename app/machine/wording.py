"""What was found out about a machine, in lines for a person."""

from collections.abc import Iterator, Sequence
from datetime import datetime

from app.amounts import bytes_in_words, counted
from app.machine.check import Check
from app.machine.costs import Costs, Work
from app.machine.findings import Findings
from app.machine.kv_costs import USUAL_TOKENS, KVCosts
from app.machine.predictions import as_lines
from app.machine.roofline_picture import sentences


def lines_of(findings: Findings) -> list[str]:
    return [
        moment_of(findings),
        "",
        *check_lines(findings.checks),
        *_titled("What will run", plan_lines(findings)),
        *_titled("What a conversation takes", kv_lines(findings.kv)),
        *_titled("What it costs", cost_lines(findings.costs)),
        *_titled("Measured beside possible", _roofline_lines(findings)),
        *_titled(rates_line(findings), ["A 4-bit model of", *as_lines(findings.predictions)]),
    ]


def moment_of(findings: Findings) -> str:
    """By the clock on the wall: what was found is kept, and grows old."""
    return f"As it was on {datetime.fromtimestamp(findings.looked_at):%Y-%m-%d at %H:%M}"


def check_lines(checks: Sequence[Check]) -> Iterator[str]:
    for check in checks:
        yield f"{'ok ' if check.ok else 'NOT'}  {check.name:10}  {check.message}"
        if check.remedy:
            yield f"     {'':10}  -> {check.remedy}"


def plan_lines(findings: Findings) -> list[str]:
    if findings.plan is None:
        return ["nothing, before what is wrong above is put right"]
    better = findings.plan.why_not_better
    return [findings.plan.sentence, *([f"not better, because {better}"] if better else [])]


def kv_lines(kv: KVCosts | None) -> list[str]:
    if kv is None:
        return []
    if not kv.bytes_per_token:
        return ["this model keeps one state for a conversation, of the same size for any length"]
    bound = "" if kv.is_exact else ", at most: some of its layers keep one state for any length"
    each = bytes_in_words(kv.bytes_per_conversation)
    return [
        f"by the formula {kv.formula} for each token, as {kv.kv_type}{bound}",
        *_weighed(kv),
        f"{each} for a conversation of {USUAL_TOKENS:,} tokens: {kv.num_in_cells:,} fit into the"
        f" context of {kv.context_tokens:,}, {kv.num_in_ram:,} into RAM"
        f" ({bytes_in_words(kv.ram_budget)}), {kv.num_on_disk:,} onto the disk"
        f" ({bytes_in_words(kv.disk_budget)})",
    ]


def _weighed(kv: KVCosts) -> list[str]:
    if not kv.is_exact:
        return []
    weighed = kv.weighed_bytes_per_token
    if weighed is None:
        return ["nothing could be weighed, because no memory is kept for conversations in RAM"]
    return [f"weighed {weighed:,.0f} bytes for each token, with llama.cpp's own lists"]


def cost_lines(costs: Costs | None) -> list[str]:
    if costs is None:
        return []
    lines = [_cost("reading", costs.reading), _cost("writing", costs.writing)]
    if costs.writing.joules is None:
        lines.append("how much energy that is, this machine does not tell")
    return lines


def _cost(what: str, work: Work) -> str:
    energy = work.watt_hours_per_1000
    drawn = "" if energy is None else f" and {energy:.3g} Wh of the whole processor"
    return (
        f"{what} 1,000 tokens takes {work.processor_seconds_per_1000:,.1f} s of processor time"
        f"{drawn} (measured: {counted(work.num_tokens, 'token')} at"
        f" {work.tokens_per_second:,.0f} a second)"
    )


def rates_line(findings: Findings) -> str:
    read = f"Memory is read at {bytes_in_words(findings.memory_bandwidth)}/s"
    if findings.rates is None:
        return read
    return (
        f"{read}, and llama.cpp does {findings.rates.multiply_adds_per_s / 1e9:,.0f} billion"
        " multiply-adds/s"
    )


def _roofline_lines(findings: Findings) -> list[str]:
    return [] if findings.roofline is None else sentences(findings.roofline)


def _titled(title: str, lines: Sequence[str]) -> list[str]:
    return ["", title, *(f"  {line}" for line in lines)] if lines else []
