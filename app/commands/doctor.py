"""`inglenook doctor`: what this machine is, what will run, how fast, and what is wrong."""

import asyncio
import errno
import platform
import shutil
import time
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass

import numpy as np
import psutil

from app.amounts import bytes_in_words, counted
from app.commands.console import Console, write_json
from app.commands.options import Options
from app.models.local import ModelFacts, model_facts
from app.services import Services
from engine.config import DEFAULT_CONTEXT_TOKENS
from engine.errors import HomeError, InglenookError
from engine.kv.disk_check import check_disk, repair_disk
from engine.sampling_params import SamplingParams

MIN_FREE_DISK = 2_000_000_000
BANDWIDTH_BYTES = 256 * 2**20

# File sizes of usual 4-bit models, by their parameters in billions.
USUAL_MODELS = ((0.5, 0.4e9), (1.5, 1.1e9), (3.0, 2.0e9), (8.0, 4.9e9), (14.0, 9.0e9))


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at. `remedy` is empty when it is well."""

    name: str
    ok: bool
    message: str
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Prediction:
    """How a 4-bit model of this size would do here, by the memory it must be read from."""

    parameters_billion: float
    fits: bool
    tokens_per_second: float


class Failed(Exception):
    """A check that did not hold: what was seen, and what to do."""

    def __init__(self, message: str, remedy: str) -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy


async def doctor(services: Services, options: Options, console: Console) -> None:
    """Look at everything, say it, and never stop at the first fault.

    A fault that was found is no failure of the command; a repair that was impossible is one.
    """
    examination = Examination(services, is_repair=options.repair)
    checks = [await examination.run(name, look) for name, look in examination.looks()]
    bandwidth = await asyncio.to_thread(memory_bandwidth)
    predictions = predict(bandwidth)
    if options.json:
        result = {
            "ok": all(check.ok for check in checks),
            "backend": "llama",
            "checks": [asdict(check) for check in checks],
            "memory_bandwidth": bandwidth,
            "predictions": [asdict(prediction) for prediction in predictions],
        }
        write_json(console, result)
    else:
        write_report(console, checks, bandwidth, predictions)
    (cache,) = [check for check in checks if check.name == "cache"]
    if options.repair and not cache.ok:
        raise HomeError(f"Nothing was repaired, because {cache.message}: {cache.remedy}.")


def write_report(
    console: Console,
    checks: Sequence[Check],
    bandwidth: float,
    predictions: Sequence[Prediction],
) -> None:
    for check in checks:
        console.write(f"{'ok ' if check.ok else 'NOT'}  {check.name:10}  {check.message}\n")
        if check.remedy:
            console.write(f"     {'':10}  -> {check.remedy}\n")
    console.write(f"\nMemory is read at {bytes_in_words(bandwidth)}/s. A 4-bit model of\n")
    for prediction in predictions:
        speed = f"writes at most {prediction.tokens_per_second:,.0f} tokens/s"
        verdict = speed if prediction.fits else "does not fit into the free memory"
        console.write(f"  {prediction.parameters_billion:4.1f} billion parameters {verdict}\n")


class Examination:
    """The checks of one home, in the order in which a person would look."""

    def __init__(self, services: Services, *, is_repair: bool = False) -> None:
        self._services = services
        self._is_repair = is_repair
        self._facts: ModelFacts | None = None

    def looks(self) -> list[tuple[str, Callable[[], Awaitable[str]]]]:
        return [
            ("machine", self.machine),
            ("home", self.home),
            ("history", self.history),
            # Before anything loads a model, which uses the cache from then on.
            ("cache", self.cache),
            ("model", self.model),
            ("memory", self.memory),
            ("answer", self.answer),
        ]

    async def run(self, name: str, look: Callable[[], Awaitable[str]]) -> Check:
        try:
            return Check(name, True, await look())
        except Failed as failed:
            return Check(name, False, failed.message, failed.remedy)
        except InglenookError as error:
            what, _, remedy = str(error).rpartition(": ")
            return Check(name, False, what or str(error), remedy if what else "")

    async def machine(self) -> str:
        cores = psutil.cpu_count(logical=False) or psutil.cpu_count() or 1
        total = bytes_in_words(psutil.virtual_memory().total)
        return (
            f"{platform.system()} {platform.machine()}, {counted(cores, 'core')}, {total} of"
            f" memory, Python {platform.python_version()}"
        )

    async def home(self) -> str:
        folder = self._services.paths.data
        free = shutil.disk_usage(folder).free
        words = bytes_in_words(free)
        if free < MIN_FREE_DISK:
            raise Failed(
                f"only {words} are free where {folder} lies",
                "make room on this disk, or move INGLENOOK_HOME to another one",
            )
        return f"{folder}, {words} free"

    async def history(self) -> str:
        database = self._services.database
        damage = await database.damage()
        if damage:
            raise Failed(
                f"the history is damaged ({damage})",
                f"quit the app, keep a copy of {database.path}, and put a backup from the same"
                " folder in its place",
            )
        count = await self._services.conversations.count()
        return f"{counted(count, 'conversation')}, the file is sound"

    async def cache(self) -> str:
        folder = self._services.paths.kv
        look = repair_disk if self._is_repair else check_disk
        try:
            report = await asyncio.to_thread(look, folder)
        except OSError as error:
            if error.errno == errno.EBUSY:
                raise Failed(
                    f"the app uses {folder} now, and cannot be disturbed",
                    "quit the app, then repair again",
                ) from error
            raise Failed(
                f"{folder} cannot be read ({error.strerror})",
                "quit the app and delete this folder; it holds nothing that cannot be made again",
            ) from error
        pieces = counted(report.num_segments, "piece")
        size = f"{pieces} of conversations, {bytes_in_words(report.num_bytes)}"
        if report.is_in_use:
            return f"{size}, in use now and therefore only counted"
        if report.is_sound:
            return f"{size}, all sound"
        stray = counted(report.num_orphans, "stray file")
        faults = f"{report.num_damaged:,} damaged and {stray}"
        if report.is_index_damaged:
            faults += ", and no index"
        if self._is_repair:
            return f"{faults} were removed or put right; before that {size}"
        raise Failed(
            f"{size}; besides these {faults}",
            "quit the app and run `inglenook doctor --repair`; what goes is read again when needed",
        )

    async def model(self) -> str:
        context = self._services.settings.context_tokens or DEFAULT_CONTEXT_TOKENS
        path = self._services.model_path
        self._facts = facts = await asyncio.to_thread(model_facts, path, context)
        return (
            f"{facts.name}: {facts.architecture}, {facts.parameters / 1e6:,.0f} million"
            f" parameters, {facts.quantization}, context {facts.context:,}"
        )

    async def memory(self) -> str:
        if self._facts is None:
            raise Failed("without a model there is nothing to compare", "see the line above")
        needed, free = self._facts.memory_bytes, psutil.virtual_memory().available
        takes, left = bytes_in_words(needed), bytes_in_words(free)
        loaded = self._services.loaded_model is not None
        if not loaded and needed > free:
            raise Failed(
                f"the model needs about {takes} and {left} are free",
                "close other programs, choose a smaller model or a smaller context",
            )
        return f"the model takes about {takes}, {left} are free"

    async def answer(self) -> str:
        model = await self._services.chat_model()
        prompt = model.loaded.tokenizer.encode("The quick brown fox jumps over the lazy")
        params = SamplingParams(temperature=0, max_tokens=32, ignore_eos=True, loop_guard=False)
        started = time.perf_counter()
        with model.loaded.engine.submit(prompt, params) as stream:
            outputs = [output async for output in stream]
        timings = outputs[-1].timings
        assert timings is not None
        tokens = counted(timings.completion_tokens, "token")
        return (
            f"{tokens} in {time.perf_counter() - started:.1f} s,"
            f" {timings.tokens_per_second:,.0f} tokens/s"
        )


def memory_bandwidth() -> float:
    """Bytes a second that all cores together read from memory: the best of four readings."""
    num_cores = psutil.cpu_count(logical=False) or 1
    parts = np.array_split(np.ones(BANDWIDTH_BYTES // 8, np.int64), num_cores)
    best = float("inf")
    with ThreadPoolExecutor(num_cores) as readers:
        for _ in range(4):
            started = time.perf_counter()
            list(readers.map(np.max, parts))
            best = min(best, time.perf_counter() - started)
    return BANDWIDTH_BYTES / best


def predict(bandwidth: float) -> list[Prediction]:
    """Every token reads the whole model once, so bandwidth over size bounds the speed."""
    free = psutil.virtual_memory().available
    return [
        Prediction(billions, size * 1.2 < free, bandwidth / size) for billions, size in USUAL_MODELS
    ]
