"""Whether what is foretold of a model comes true: its memory, and how fast it writes.

Both are told from the file's header alone, and then measured: the memory in a process of its own,
the speed with our engine. Beside the starter (and `--model`, such as gemma3-270m) stand models with
random weights of other sizes and types. Memory within 10 % and speed within 20 % pass.

What a machine can do changes within a minute, by what else runs on it. So its pace is measured
again for each answer that is written, right before or right after it, and the ratio is of the two.
"""

import argparse
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from app.amounts import bytes_in_words
from app.bench.compare import Bar, interleave, show_pair
from app.bench.fit_memory import BATCH
from app.bench.machine import Others, machine
from app.bench.options import add_effort
from app.bench.our_engine import OurEngine, model_of
from app.bench.random_model import RandomModel
from app.bench.report import Report
from app.bench.workload import Prompts
from app.machine.rates import measure_rates
from app.models.pace import Pace, measure_pace
from app.models.starter import starter_model
from engine.backends.llama_cpp.chat_file import check_chat_file
from engine.backends.llama_cpp.gguf_shape import shape_of
from engine.config import EngineConfig
from engine.errors import EngineError

MEMORY_BAR, SPEED_BAR = Bar(at_least=0.90, at_most=1.10), Bar(at_least=0.80, at_most=1.20)
RANDOM = (
    RandomModel(name="random-50m-Q8_0", type_name="Q8_0", width=512, layers=16),
    RandomModel(name="random-300m-Q4_0", type_name="Q4_0", width=1024, layers=26),
    RandomModel(name="random-800m-Q4_K", type_name="Q4_K", width=1536, layers=30),
)
COLUMNS = (
    *("model", "weights", "foretold_mb", "measured_mb", "memory_ratio"),
    *("foretold_speed", "measured_speed", "speed_ratio", "interval", "pairs", "passed"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--model", action="append", default=[], metavar="M", help="one more model")
    parser.add_argument("--context", type=context, default=4096, metavar="N")
    parser.add_argument("--tokens", type=int, default=64, metavar="N", help="written each time")
    parser.add_argument("--random", type=int, default=len(RANDOM), metavar="N", help="the first N")
    add_effort(parser, pairs=10, minutes=2.0)


def context(text: str) -> int:
    """Room for two steps of the largest size."""
    number = int(text)
    if number < 2 * BATCH:
        raise argparse.ArgumentTypeError(f"at least {2 * BATCH} tokens, not {number}")
    return number


def run(options: argparse.Namespace) -> Report:
    with Others() as others:
        rows = [row_of(model_of(name), options) for name in ("starter", *options.model)]
        for model in RANDOM[: options.random]:
            with written(model) as path:
                rows.append(row_of(path, options))
        pace = pace_now()
    facts = machine(
        threads=pace.rates.num_threads,
        context=options.context,
        read_bytes_per_s=pace.rates.read_bytes_per_s,
        products={kind: round(each) for kind, each in pace.products.items()},
        layer_us=1e6 * pace.layer_s,
    )
    notes = [
        "Tokens a second behind a prompt of 64; memory with weights, KV and buffers.",
        "The speeds are medians, and their ratio is the median of the pairs with its interval.",
        f"Others kept {others.cores:.2f} cores busy meanwhile.",
    ]
    return Report("fit", facts, rows, COLUMNS, notes=notes)


def pace_now() -> Pace:
    """As it comes: whatever else runs meets the answer beside it as well."""
    return measure_pace(measure_rates(), starter_model())


def row_of(path: Path, options: argparse.Namespace) -> dict[str, Any]:
    shape = shape_of(check_chat_file(path))
    config = EngineConfig(model_path=path, context_tokens=options.context)
    foretold = shape.memory_bytes(config)
    measured = memory_of(path, options.context)
    kv_type = shape.context.kv.choose("auto")
    behind = 64 + options.tokens // 2
    with OurEngine(config) as engine:
        prompts = Prompts(engine.tokenizer)
        # The first one fills the pages of fresh memory.
        engine.generate(prompts.generations(1, 64, options.tokens))
        pairs, figures = interleave(
            lambda _: 1 / pace_now().write_s(shape, behind, kv_type),
            lambda _: engine.generate(prompts.generations(1, 64, options.tokens)).decode_rate,
            lambda pair: {"speed": pair.ours / pair.theirs},
            minutes=options.minutes,
            min_pairs=options.pairs,
            on_pair=show_pair(f"{path.stem} "),
        )
    speed_ratio = figures["speed"]
    passed = MEMORY_BAR.is_met_by(foretold / measured) and SPEED_BAR.is_met(speed_ratio)
    return {
        "model": path.stem,
        "weights": bytes_in_words(shape.num_bytes),
        "foretold_mb": foretold / 1e6,
        "measured_mb": measured / 1e6,
        "memory_ratio": foretold / measured,
        "foretold_speed": median(pair.ours for pair in pairs),
        "measured_speed": median(pair.theirs for pair in pairs),
        "speed_ratio": speed_ratio.median,
        "interval": [speed_ratio.low, speed_ratio.high],
        "pairs": len(pairs),
        "passed": passed,
    }


def memory_of(path: Path, context_tokens: int) -> int:
    """In a process of its own. Raises EngineError where it fails."""
    command = [sys.executable, "-m", "app.bench.fit_memory", str(path), str(context_tokens)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise EngineError(f"The memory of {path.name} could not be measured: {done.stderr[-300:]}")
    return int(done.stdout.split()[-1])


@contextmanager
def written(model: RandomModel) -> Iterator[Path]:
    with TemporaryDirectory(prefix="inglenook-") as folder:
        yield model.write(Path(folder) / f"{model.name}.gguf")
