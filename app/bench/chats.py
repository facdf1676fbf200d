"""How a server remembers conversations: what each next turn waits for and computes again.

Eight workloads (`chat_workloads`) are run on Inglenook over its own /v1, and on a peer beside it
when there is one: llama.cpp's server, started here at its best, or any OpenAI-compatible address.
Each workload has servers of its own; turn by turn one side waits while the other is measured.
"""

import argparse
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter, time
from typing import Any

import numpy as np

from app.bench.app_process import new_home
from app.bench.chat_client import Answer, split_address
from app.bench.chat_history import Plan
from app.bench.chat_servers import LlamaChatServer, OurServer, RunningServer, Server
from app.bench.chat_sides import Side, settle
from app.bench.chat_texts import Texts, sources_of
from app.bench.chat_workloads import WORKLOADS, Step, Workload
from app.bench.compare import MIN_PAIRS, Figure, Pair, interleave, show_pair
from app.bench.machine import Others, Used, machine
from app.bench.options import add_context, add_effort, add_model, add_server, program_of
from app.bench.our_engine import model_of
from app.bench.report import Report
from app.bench.thinking_model import write_thinking_model
from engine.cores import usable_cores
from engine.errors import UsageError

COLUMNS = (
    *("workload", "side", "turns", "ttft_ms", "ttft_p95_ms", "ratio", "low", "high"),
    *("prompt", "read", "read_p95", "cached", "restored", "gap_p95_ms", "slowdown"),
    *("processor_s", "written_mb"),
)
NOTES = (
    "A turn, in the middle: ttft is the time to the first text, and ratio ours / theirs; of prompt"
    " tokens, read were computed, cached were in memory and restored were brought back.",
    "Of all of a workload, with what leads up to its turns: gap is between two pieces of text,"
    " slowdown the time of the long prompt against alone; processor and written are the server's.",
)
# More than a workload ever takes.
TEXTS_EACH = 100_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    add_server(parser)
    parser.add_argument("--url", metavar="U", help="a server that runs already to compare with")
    parser.add_argument("--key", default="", metavar="K", help="what that one wants to be told")
    parser.add_argument("--only", default="", metavar="W1,W4", help=titles())
    parser.add_argument("--turns", type=int, default=10, metavar="N", help="a conversation")
    parser.add_argument("--chats", type=int, default=12, metavar="N", help="where there are many")
    parser.add_argument("--tokens", type=int, default=24, metavar="N", help="of an answer")
    add_context(parser)
    parser.add_argument("--threads", type=int, metavar="N", help="of llama-server (ours adapts)")
    parser.add_argument("--texts", default="", metavar="DIR", help=".txt files (else made up)")
    add_effort(parser, pairs=MIN_PAIRS, minutes=5.0, each="workload")


def titles() -> str:
    return "; ".join(f"{workload.name} {workload.title}" for workload in WORKLOADS)


def run(options: argparse.Namespace) -> Report:
    from engine.backends.llama_cpp.model import LlamaModel

    workloads = wanted(options.only)
    check(options)
    model = model_of(options.model)
    threads = options.threads or usable_cores()
    facts = machine(
        model=model.stem,
        context=options.context,
        threads=threads,
        peer=Path(options.server).name if options.server else options.url or "none",
        turns=options.turns,
        chats=options.chats,
        tokens=options.tokens,
        texts=Path(options.texts).name or "made up",
    )
    facts_only = LlamaModel(model, facts_only=True)
    # A server that goes on running may remember the texts of an earlier run.
    run_name = f"run {time():.0f}" if options.url else ""
    texts = Texts(facts_only.vocabulary, sources_of(options.texts), run_name)
    rows: list[dict[str, Any]] = []
    notes = list(NOTES)
    for workload in workloads:
        plan = Plan(
            texts=texts,
            context=options.context,
            turns=options.turns,
            chats=options.chats,
            tokens=options.tokens,
            first_text=TEXTS_EACH * WORKLOADS.index(workload),
        )
        with ExitStack() as stack:
            folder = Path(stack.enter_context(new_home()))
            servers = servers_of(options, workload, model, threads, folder)
            if options.url and len(servers) == 1:
                notes.append(
                    f"{workload.name} is ours alone: a server that runs already cannot be"
                    " restarted, with the same model or another."
                )
            sides = [stack.enter_context(Side(server, options.tokens)) for server in servers]
            rows += rows_of(measure(workload, plan, sides, options.pairs, options.minutes))
    facts_only.close()
    columns = [name for name in COLUMNS if any(row.get(name) is not None for row in rows)]
    return Report("chats", facts, rows, columns, ("label", "ttft_ms"), notes)


def wanted(only: str) -> list[Workload]:
    names = {name.strip().upper() for name in only.split(",") if name.strip()}
    unknown = names - {workload.name for workload in WORKLOADS}
    if unknown:
        raise UsageError(f"There is no workload {', '.join(sorted(unknown))}: {titles()}.")
    return [workload for workload in WORKLOADS if not names or workload.name in names]


def check(options: argparse.Namespace) -> None:
    if options.server and options.url:
        raise UsageError("One peer at a time: give --server or --url.")
    if options.server:
        program_of(options.server)
    if options.url:
        split_address(options.url)
    for name, least in (("turns", 1), ("chats", 2), ("tokens", 1), ("context", 256), ("pairs", 1)):
        if getattr(options, name) < least:
            raise UsageError(f"--{name} must be at least {least}.")


def servers_of(
    options: argparse.Namespace, workload: Workload, model: Path, threads: int, folder: Path
) -> list[Server]:
    """Ours, and the peer's if there is one that can take part in the workload."""
    if workload.strips_thinking:
        model = write_thinking_model(model, folder)
    servers: list[Server] = [OurServer(folder / "home", model, options.context)]
    if options.server:
        slots = folder / "slots" if workload.is_restarting else None
        if slots is not None:
            slots.mkdir()
        servers.append(
            LlamaChatServer(
                program_of(options.server),
                model,
                context_tokens=options.context,
                threads=threads,
                slot_folder=slots,
            )
        )
    if options.url and not workload.is_restarting and not workload.strips_thinking:
        servers.append(RunningServer(options.url, options.key))
    return servers


@dataclass(frozen=True, slots=True)
class Measured:
    """A workload as it went: the steps of each side, ours first, and the ratios of their times.

    `others_cores` None: the processes changed, so that others cannot be told from them.
    """

    workload: Workload
    sides: Sequence[Side]
    steps: Sequence[Sequence[Step]]
    ratios: Mapping[str, Figure]
    num_restless: int
    others_cores: float | None


def measure(
    workload: Workload, plan: Plan, sides: Sequence[Side], pairs: int, minutes: float
) -> Measured:
    """Go through the script on each side: in pairs, or alone for `pairs` turns."""
    restless = 0

    def stepping(side: Side) -> Callable[[int], Step]:
        script = workload.script(side, plan)

        def step(number: int) -> Step:
            nonlocal restless
            restless += not settle(sides)
            return next(script)

        return step

    pids = tuple(side.pid for side in sides if side.pid is not None)
    with Others(pids) as others:
        if len(sides) == 2:
            found, figures = interleave(
                stepping(sides[0]),
                stepping(sides[1]),
                ratios,
                minutes=minutes,
                min_pairs=pairs,
                on_pair=show_pair(f"{workload.name}, "),
            )
            steps = [[pair.ours for pair in found], [pair.theirs for pair in found]]
        else:
            steps, figures = [alone(stepping(sides[0]), pairs, minutes)], {}
    return Measured(
        workload,
        sides,
        steps,
        figures,
        restless,
        None if workload.is_restarting else others.cores,
    )


def alone(step: Callable[[int], Step], pairs: int, minutes: float) -> list[Step]:
    steps: list[Step] = []
    ends = perf_counter() + 60 * minutes
    while len(steps) < pairs and (perf_counter() < ends or not steps):
        steps.append(step(len(steps)))
    return steps


def ratios(pair: Pair[Step]) -> dict[str, float]:
    """Both sides are at the same place of the script, so they have the same names."""
    return {name: pair.ours[name].ttft_s / pair.theirs[name].ttft_s for name in pair.ours}


def rows_of(measured: Measured) -> list[dict[str, Any]]:
    """A row for each name and side. What is of the whole workload stands in its first."""
    rows = []
    names = list(dict.fromkeys(name for step in measured.steps[0] for name in step))
    for name in names:
        for side, steps in zip(measured.sides, measured.steps, strict=True):
            row = row_of(name, side.name, [step[name] for step in steps if name in step])
            figure = measured.ratios.get(name)
            if figure is not None and side is measured.sides[0]:
                row |= {"ratio": figure.median, "low": figure.low, "high": figure.high}
            if name == names[0]:
                row |= whole_of(side.used, side.asked_s)
                row |= {
                    "restless": measured.num_restless,
                    "others_cores": measured.others_cores,
                }
            rows.append(row)
    return rows


def row_of(name: str, side: str, answers: Sequence[Answer]) -> dict[str, Any]:
    """Times in milliseconds and tokens of a turn, as medians; `read_all` is their sum."""
    times = [1e3 * answer.ttft_s for answer in answers]
    gaps = [1e3 * gap for answer in answers for gap in answer.gaps_s]
    row: dict[str, Any] = {
        "workload": name,
        "side": side,
        "label": f"{name} {side}",
        "turns": len(answers),
        "ttft_ms": median(times),
        "ttft_p95_ms": p95(times),
        "gap_p95_ms": p95(gaps) if gaps else None,
    }
    told = {
        "prompt": [answer.counts.prompt for answer in answers],
        "read": [answer.counts.prefilled for answer in answers],
        "cached": [answer.counts.cached for answer in answers],
        "restored": [answer.counts.restored for answer in answers],
    }
    for field, values in told.items():
        known = [value for value in values if value is not None]
        row[field] = median(known) if known else None
        if field == "read" and known:
            row |= {"read_p95": p95(known), "read_all": sum(known)}
    slowdowns = [answer.ttft_s / answer.alone_s for answer in answers if answer.alone_s]
    if slowdowns:
        row["slowdown"] = median(slowdowns)
    return row


def whole_of(used: Used | None, asked_s: float) -> dict[str, Any]:
    """`asked_s` is what the side was waited for, in seconds of the wall."""
    if used is None:
        return {"asked_s": asked_s}
    written = None if used.written_bytes is None else used.written_bytes / 1e6
    return {"asked_s": asked_s, "processor_s": used.processor_s, "written_mb": written}


def p95(values: Sequence[float]) -> float:
    return float(np.percentile(values, 95))
