"""How fast tokens are written, by one stream and by four: alone, or against llama.cpp's server.

Writing is bound by reading the weights once a step, so what an engine adds shows as what is
missing to llama.cpp's own rate. Both sides have the same model, context, threads and prompts, and
either is idle while the other works.
"""

import argparse
from typing import Any

from app.amounts import counted
from app.bench import busy
from app.bench.compare import MIN_PAIRS, Bar, Figure, Pair, figure_of, interleave, show_pair
from app.bench.llama_server import LlamaServer
from app.bench.machine import Others, machine
from app.bench.options import add_context, add_effort, add_model, add_server, program_of
from app.bench.our_engine import OurEngine, Taken, model_of
from app.bench.report import Report
from app.bench.workload import Generation, Prompts
from engine.config import EngineConfig
from engine.cores import usable_cores
from engine.errors import UsageError

BARS = {"decode": Bar(at_least=0.97), "end_to_end": Bar(at_least=1.0)}
OVERHEAD_BAR = Bar(at_most=0.25)
# Each of them is a median over the steps of a whole run already.
MOST_RUNS_ALONE = 8
COLUMNS = ("measure", "streams", "ours", "theirs", "ratio", "low", "high", "pairs", "bar", "passed")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    add_server(parser)
    parser.add_argument("--busy", action="store_true", help="with half of the cores taken away")
    parser.add_argument("--streams", type=int, nargs="+", default=[1, 4], metavar="N")
    parser.add_argument("--tokens", type=int, default=128, metavar="N", help="written a stream")
    parser.add_argument("--prompt", type=int, default=64, metavar="N", help="prompt tokens")
    add_context(parser)
    parser.add_argument("--threads", type=int, metavar="N", help="ours fixed, too (else adapted)")
    add_effort(parser, pairs=MIN_PAIRS, minutes=5.0, each="row")


def run(options: argparse.Namespace) -> Report:
    if options.busy:
        if options.server:
            raise UsageError("--busy compares with our own idle side: leave --server out.")
        return busy.run(options)
    if options.server:
        program_of(options.server)
    model = model_of(options.model)
    threads = options.threads or usable_cores()
    facts = machine(
        model=model.stem,
        threads=threads,
        adapts=options.threads is None,
        context=options.context,
        prompt=options.prompt,
        tokens=options.tokens,
    )
    config = EngineConfig(model_path=model, context_tokens=options.context, threads=options.threads)
    rows: list[dict[str, Any]] = []
    with OurEngine(config) as ours, Others() as others:
        prompts = Prompts(ours.tokenizer)
        # The first steps touch the weights for the first time and settle the threads.
        ours.generate(prompts.generations(1, options.prompt, options.tokens))
        for streams in options.streams:
            if options.server:
                rows += compared(options, ours, prompts, streams, threads)
            else:
                rows += alone(options, ours, prompts, streams)
        rows.append(crowded(options, ours, prompts))
        for streams in options.streams:
            rows.append(overhead(options, ours, prompts, streams))
    notes = [] if options.server else [f"Others kept {others.cores:.2f} cores busy meanwhile."]
    bars = None if options.server else ("label", "ours")
    return Report("decode", facts, rows, COLUMNS, bars, notes)


def compared(
    options: argparse.Namespace, ours: OurEngine, prompts: Prompts, streams: int, threads: int
) -> list[dict[str, Any]]:
    """A server with as many places as there are streams, so that it holds back nothing."""
    with LlamaServer(
        program_of(options.server),
        model_of(options.model),
        streams=streams,
        context_tokens=options.context,
        threads=threads,
    ) as server:
        work = Work(options, prompts, streams)
        server.generate(work.next())
        with Others((server.pid,)) as others:
            pairs, figures = interleave(
                lambda number: from_nothing(ours, work.of(number)),
                lambda number: server.generate(work.of(number)),
                ratios,
                minutes=options.minutes,
                min_pairs=options.pairs,
                on_pair=show_pair(f"{counted(streams, 'stream')}, "),
            )
    return [
        row_of(measure, streams, pairs, figures[measure], bar)
        | {"others_cores": round(others.cores, 2)}
        for measure, bar in BARS.items()
    ]


class Work:
    """The generations of each pair: the same for both sides, other ones in every pair."""

    def __init__(self, options: argparse.Namespace, prompts: Prompts, streams: int) -> None:
        self._sizes = (streams, options.prompt, options.tokens)
        self._prompts = prompts
        self._number = -1
        self._generations = self.next()

    def next(self) -> Any:
        return self._prompts.generations(*self._sizes)

    def of(self, number: int) -> Any:
        if number != self._number:
            self._number = number
            self._generations = self.next()
        return self._generations


def ratios(pair: Pair[Taken]) -> dict[str, float]:
    return {
        "decode": pair.ours.decode_rate / pair.theirs.decode_rate,
        "end_to_end": pair.ours.end_to_end_rate / pair.theirs.end_to_end_rate,
    }


def row_of(
    measure: str, streams: int, pairs: list[Pair[Taken]], figure: Figure, bar: Bar
) -> dict[str, Any]:
    name = f"{measure}_rate"
    return {
        "measure": f"{measure.replace('_', ' ')}, tokens/s",
        "streams": streams,
        "ours": figure_of([getattr(pair.ours, name) for pair in pairs]).median,
        "theirs": figure_of([getattr(pair.theirs, name) for pair in pairs]).median,
        "ratio": figure.median,
        "low": figure.low,
        "high": figure.high,
        "pairs": figure.num,
        "bar": str(bar),
        "passed": bar.is_met(figure),
    }


def alone(
    options: argparse.Namespace, ours: OurEngine, prompts: Prompts, streams: int
) -> list[dict[str, Any]]:
    taken = [
        from_nothing(ours, prompts.generations(streams, options.prompt, options.tokens))
        for _ in range(options.pairs)
    ]
    rows = []
    for measure in BARS:
        figure = figure_of([getattr(one, f"{measure}_rate") for one in taken])
        rows.append(
            {
                "measure": f"{measure.replace('_', ' ')}, tokens/s",
                "label": f"{measure.replace('_', ' ')}, {counted(streams, 'stream')}",
                "streams": streams,
                "ours": figure.median,
                "low": figure.low,
                "high": figure.high,
                "pairs": figure.num,
            }
        )
    return rows


def from_nothing(ours: OurEngine, generations: list[Generation]) -> Taken:
    """With an empty memory, as the server has whose requests use no cache."""
    ours.forget()
    return ours.generate(generations)


def crowded(options: argparse.Namespace, ours: OurEngine, prompts: Prompts) -> dict[str, Any]:
    """One stream while ended conversations fill the memory: what keeping them costs."""
    sizes = (1, min(options.prompt, 64), options.tokens)
    runs = range(min(MOST_RUNS_ALONE, options.pairs))
    empty = [from_nothing(ours, prompts.generations(*sizes)) for _ in runs]
    room = options.context - sizes[1] - sizes[2]
    for _ in range(4):
        if room >= 64:
            ours.generate(prompts.generations(1, room // 4, 1))
    full = [ours.generate(prompts.generations(*sizes)) for _ in runs]
    figure = figure_of([one.decode_rate for one in full])
    alone = figure_of([one.decode_rate for one in empty]).median
    return {
        "measure": "decode in a full memory, tokens/s",
        "label": "decode in a full memory, 1 stream",
        "streams": 1,
        "ours": figure.median,
        "ratio": figure.median / alone,
        "low": figure.low / alone,
        "high": figure.high / alone,
        "pairs": figure.num,
    }


def overhead(
    options: argparse.Namespace, ours: OurEngine, prompts: Prompts, streams: int
) -> dict[str, Any]:
    """Python per step, judged in processor time; the wall's figure stands beside it."""
    costs = [
        ours.step_cost(prompts.generations(streams, 8, options.tokens))
        for _ in range(min(MOST_RUNS_ALONE, options.pairs))
    ]
    figure = figure_of([cost.processor_ms for cost in costs])
    return {
        "measure": "Python per step, ms",
        "label": f"Python per step, {counted(streams, 'stream')}",
        "streams": streams,
        "ours": figure.median,
        "low": figure.low,
        "high": figure.high,
        "pairs": figure.num,
        "bar": str(OVERHEAD_BAR),
        "passed": OVERHEAD_BAR.is_met_by(figure.median),
        "wall_ms": figure_of([cost.wall_ms for cost in costs]).median,
        "sampler_ms": figure_of([cost.sampler_ms for cost in costs]).median,
    }
