"""What quantising a model costs in quality, and what it brings in size and speed.

Each form is made of the least quantised one at hand, which is the reference; then each type of KV
is tried with the reference's weights.
"""

import argparse
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path
from threading import Thread
from typing import Any, NoReturn, cast, get_args

import numpy as np
from numpy.typing import NDArray

from app.bench.machine import machine
from app.bench.options import add_model
from app.bench.our_engine import model_of
from app.bench.report import Report
from app.eval.likeness import Likeness
from app.eval.quant_picture import Mark, draw
from app.eval.quant_plan import WHOLE, Plan
from app.machine.rates import measure_rates
from engine.backends.llama_cpp.file_types import FILE_TYPES, is_quantized
from engine.backends.llama_cpp.weights import read_weights
from engine.cores import usable_cores
from engine.errors import UsageError

TYPES = "Q8_0,Q6_K,Q5_K_M,Q4_K_M,Q4_0,Q3_K_M,Q2_K"
KV_TYPES = "q8_0,q5_1,q4_0"
WINDOW = 512
NUM_WINDOWS = 8
COLUMNS = (
    *("form", "kv", "weights", "mb", "bits", "perplexity", "kl", "kl_error", "kl_p99"),
    *("same_top", "read_per_s", "written_per_s", "kv_bytes"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    parser.add_argument("--types", default=TYPES, metavar="A,B", help=f"default {TYPES}")
    parser.add_argument("--kv-types", default=KV_TYPES, metavar="A,B", help=f"default {KV_TYPES}")
    parser.add_argument("--text", metavar="FILE", help="what is read (default: our own README)")
    parser.add_argument("--window", type=int, default=WINDOW, metavar="N", help="tokens of context")
    parser.add_argument("--windows", type=int, default=NUM_WINDOWS, metavar="N", help="at most")
    parser.add_argument("--threads", type=int, metavar="N")
    parser.add_argument("--folder", metavar="DIR", help="where the forms are made, and removed")
    parser.add_argument("--picture", metavar="FILE", help="size and loss of each form, as SVG")


@dataclass(frozen=True, slots=True)
class Form:
    """A file to be measured, with a name for the table."""

    name: str
    path: Path
    kv_type: str = "f16"


def run(options: argparse.Namespace) -> Report:
    types, kv_types = _wanted(options)
    model, text = model_of(options.model), _text(options.text)
    threads = options.threads or usable_cores()
    place = Path(options.folder or tempfile.gettempdir())
    _announce(
        Plan.of(read_weights(model), types, kv_types, options.window, options.windows), model, place
    )
    with _ended_in_order(), _folder_in(place) as folder:
        forms, notes = _forms(model, folder, types, kv_types, threads)
        work = Work(options.window, options.windows, threads, folder)
        rows = [work.row(form, text) for form in forms]
    rows = [row | {"loses": row["perplexity"] / rows[0]["perplexity"] - 1} for row in rows]
    if options.picture:
        marks = [_mark(row) for row in rows[1:]]
        Path(options.picture).write_text(draw(marks, model.stem).as_svg(), encoding="utf-8")
    facts = machine(model=model.stem, threads=threads, window=options.window)
    totals = {"reference": rows[0]["form"], "tokens": work.num_counted}
    return Report("quant", facts, rows, COLUMNS, notes=notes, kind="eval", totals=totals)


def _announce(plan: Plan, model: Path, place: Path) -> None:
    """What will be made, before anything is. Raises UsageError where there is no room for it."""
    try:
        plan.check_room(place)
    except OSError as error:
        raise UsageError(
            f"Nothing can be made in {place} ({error.strerror}): choose another --folder."
        ) from error
    _tell(plan.words(model.stem, place, measure_rates()))


@contextmanager
def _folder_in(place: Path) -> Iterator[Path]:
    """A folder that is gone afterwards, whatever ends the work."""
    try:
        folder = tempfile.TemporaryDirectory(dir=place, prefix="inglenook-quant-")
    except OSError as error:
        raise UsageError(
            f"Nothing can be made in {place} ({error.strerror}): choose another --folder."
        ) from error
    with folder as name:
        yield Path(name)


@contextmanager
def _ended_in_order() -> Iterator[None]:
    """A signal that asks for the end lets what was made be removed, as Ctrl-C does."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    names = [signal.SIGTERM, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else [])]
    before = {name: signal.signal(name, _end) for name in names}
    try:
        yield
    finally:
        for name, handler in before.items():
            signal.signal(name, handler)


def _end(number: int, _: object) -> NoReturn:
    sys.exit(128 + number)


def _wanted(options: argparse.Namespace) -> tuple[list[str], list[str]]:
    from engine.backends.llama_cpp.kv_type import KVType

    types = [name.strip().upper() for name in options.types.split(",") if name.strip()]
    kv_types = [name.strip().lower() for name in options.kv_types.split(",") if name.strip()]
    for names, known in ((types, tuple(FILE_TYPES)), (kv_types, get_args(KVType))):
        for name in names:
            if name not in known:
                raise UsageError(f"There is no type {name!r}; the types are {', '.join(known)}.")
    if options.window < 64:
        raise UsageError(f"A window of {options.window} tokens says nothing: give 64 or more.")
    return types, kv_types


def _text(file: str | None) -> str:
    if file is None:
        # Every installation has it, as the description of the package; a bundle has none.
        try:
            return str(metadata("inglenook").json["description"])
        except PackageNotFoundError as error:
            raise UsageError("There is no text to read here: give one with --text.") from error
    try:
        return Path(file).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"{file} cannot be read as a text ({error}): name another file."
        ) from error


def _forms(
    model: Path, folder: Path, types: Sequence[str], kv_types: Sequence[str], threads: int
) -> tuple[list[Form], list[str]]:
    """The reference first."""
    weights = read_weights(model)
    reference, notes, forms = Form(weights.main_type, model), [], []
    if is_quantized(weights):
        whole = folder / f"{WHOLE}.gguf"
        _make(model, whole, WHOLE, threads)
        reference = Form(f"{WHOLE} of {weights.main_type}", whole)
        forms.append(Form(f"{weights.main_type} as it is", model))
        notes.append(
            f"The reference is {model.name} with its {weights.main_type} weights written out as"
            " F16: what they lost when they were quantised is lost in the reference, too, so the"
            " losses here are those that come on top."
        )
    for name in types:
        if name == reference.name:
            continue
        _tell(f"making {name}")
        path = folder / f"{name}.gguf"
        _make(reference.path, path, name, threads)
        forms.append(Form(name, path))
    forms += [Form(reference.name, reference.path, kv) for kv in kv_types if kv != "f16"]
    return [reference, *forms], notes


def _make(source: Path, target: Path, type_name: str, threads: int) -> None:
    """In another thread: the library does not come back before it is done, and meanwhile only the
    main thread hears that the end is asked for."""
    from engine.backends.llama_cpp.quantize import quantize

    made: Future[object] = Future()

    def do() -> None:
        try:
            made.set_result(
                quantize(source, target, type_name, num_threads=threads, allow_again=True)
            )
        except BaseException as error:  # handed to who waits, whatever it is
            made.set_exception(error)

    Thread(target=do, name="quantize", daemon=True).start()
    made.result()


class Work:
    """Measures one form after the other, the reference first; what that one predicts lies in
    `folder` meanwhile. Used by one thread."""

    def __init__(self, window: int, most_windows: int, threads: int, folder: Path) -> None:
        self._window, self._most_windows, self._threads = window, most_windows, threads
        self._kept = folder / "logits.f32"
        self._reference: NDArray[np.float32] | None = None
        self.num_counted = 0

    def row(self, form: Form, text: str) -> dict[str, Any]:
        from app.eval.predicted import Predictor
        from engine.backends.llama_cpp.kv_type import KVType

        _tell(f"reading with {form.name}, KV as {form.kv_type}")
        likeness = Likeness()
        with Predictor(
            form.path,
            window=self._window,
            threads=self._threads,
            kv_type=cast(KVType, form.kv_type),
        ) as predictor:
            windows = predictor.windows(predictor.tokens(text), self._most_windows)
            if not windows:
                raise UsageError(
                    f"The text has fewer than {self._window:,} tokens: give a longer one, or a"
                    " smaller --window."
                )
            is_reference = self._reference is None
            if is_reference:
                # Of each window the second half is predicted.
                shape = len(windows) * (self._window - self._window // 2), predictor.num_vocabulary
                self._reference = np.memmap(self._kept, np.float32, "w+", shape=shape)
            assert self._reference is not None
            first = 0
            for piece in predictor.pieces(windows):
                kept = self._reference[first : first + len(piece.targets)]
                if is_reference:
                    kept[:] = piece.logits
                likeness.count(piece.logits, kept, piece.targets)
                first += len(piece.targets)
            self.num_counted = first
            written = predictor.write_tokens_per_second()
            speed, kv_bytes = predictor.read_tokens_per_second, predictor.kv_bytes_per_token
        return row_of(form, likeness) | {
            "read_per_s": speed,
            "written_per_s": written,
            "kv_bytes": kv_bytes,
        }


def row_of(form: Form, likeness: Likeness) -> dict[str, Any]:
    weights = read_weights(form.path)
    size = form.path.stat().st_size
    numbers = sum(tensor.num_numbers for tensor in weights.tensors)
    return {
        "form": form.name,
        "kv": form.kv_type,
        "weights": weights.main_type,
        "mb": size / 1e6,
        "bits": 8 * size / numbers,
        "perplexity": likeness.perplexity,
        "kl": likeness.divergence,
        "kl_error": likeness.divergence_error,
        "kl_p99": likeness.worst_divergence,
        "same_top": likeness.same_top,
    }


def _mark(row: dict[str, Any]) -> Mark:
    is_kv = row["kv"] != "f16"
    name = f"KV {row['kv']}" if is_kv else row["form"]
    return Mark(name=name, bits=row["bits"], divergence=row["kl"], is_kv=is_kv)


def _tell(what: str) -> None:
    sys.stderr.write(f"{what}\n")
    sys.stderr.flush()
