"""The checks of one home and its machine, in the order in which a person would look."""

import asyncio
import errno
import platform
import shutil
from collections.abc import Awaitable, Callable

import psutil

from app.amounts import bytes_in_words, counted
from app.documents.ocr import is_installed, remedy
from app.machine.check import Check, Failed
from app.machine.costs import Costs, measure_costs
from app.machine.gpu import Gpu, look_at_gpus, why_not_used
from app.machine.home import Home
from app.machine.plan import about_gpus
from app.machine.processor import REBUILD, Processor, how_the_library_ends, look_at_processor
from app.machine.rates import Rates, kept, known_rates, measure_rates, memory_bandwidth
from app.machine.storage import DiskFacts, look_at_disk, look_at_memory
from app.models.local import ModelFacts, model_facts
from engine.cores import physical_cores, usable_cores
from engine.errors import InglenookError
from engine.kv.disk_check import check_disk, repair_disk

MIN_FREE_DISK = 2_000_000_000
SLOW_LOADING_S = 60.0
LEAST_CONTEXT = 256
ABOVE = "see the line above"
LOOK_AT_FOLDERS = "see the line on the folders"


class Examination:
    """Goes through the checks once, and keeps what it saw on the way. Owned by the event loop."""

    def __init__(self, home: Home, *, is_repair: bool = False, is_again: bool = False) -> None:
        """`is_again`: measure the rates of the machine anew, even if they are known."""
        self._home = home
        self._is_repair = is_repair
        self._is_again = is_again
        self._has_library = False
        self.processor: Processor | None = None
        self.gpus: list[Gpu] = []
        self.rates: Rates | None = None
        self.memory_bandwidth = 0.0
        self.disk: DiskFacts | None = None
        self.facts: ModelFacts | None = None
        self.costs: Costs | None = None

    def looks(self) -> list[tuple[str, Callable[[], Awaitable[str]]]]:
        return [
            ("machine", self.machine),
            ("processor", self.look_at_processor),
            ("graphics", self.graphics),
            ("rates", self.measure_rates),
            ("folders", self.folders),
            ("home", self.home),
            ("history", self.history),
            ("documents", self.documents),
            # Before anything loads a model, which uses the cache from then on.
            ("cache", self.cache),
            ("model", self.model),
            ("disk", self.look_at_disk),
            ("memory", self.memory),
            ("answer", self.answer),
        ]

    async def checks(self) -> list[Check]:
        """All of them; a fault stops none."""
        return [await self._run(name, look) for name, look in self.looks()]

    async def _run(self, name: str, look: Callable[[], Awaitable[str]]) -> Check:
        try:
            return Check(name, True, await look())
        except Failed as failed:
            return Check(name, False, failed.message, failed.remedy)
        except InglenookError as error:
            what, _, remedy = str(error).rpartition(": ")
            return Check(name, False, what or str(error), remedy if what else "")
        except OSError as error:
            place = f" ({error.filename})" if error.filename else ""
            return Check(name, False, f"{error.strerror or error}{place}", LOOK_AT_FOLDERS)

    async def machine(self) -> str:
        total = bytes_in_words(psutil.virtual_memory().total)
        cores = counted(physical_cores(), "core")
        return (
            f"{platform.system()} {platform.machine()}, {cores}, {total} of memory,"
            f" Python {platform.python_version()}"
        )

    async def look_at_processor(self) -> str:
        fault = await asyncio.to_thread(how_the_library_ends)
        if fault:
            raise Failed(f"llama.cpp cannot be loaded: it ends with {fault}", REBUILD)
        self._has_library = True
        self.processor = await asyncio.to_thread(look_at_processor)
        about = f"{self.processor.name}; {self.processor.about_build}"
        if self.processor.unused:
            raise Failed(about, REBUILD)
        return about

    async def graphics(self) -> str:
        self.gpus = await asyncio.to_thread(look_at_gpus)
        reason = why_not_used(self.gpus)
        return about_gpus(self.gpus) + (f"; {reason}" if reason else "")

    async def measure_rates(self) -> str:
        if not self._has_library:
            self.memory_bandwidth = await asyncio.to_thread(memory_bandwidth, usable_cores())
            raise Failed("without llama.cpp only memory can be measured", ABOVE)
        paths = self._home.paths
        try:
            self.rates = rates = await asyncio.to_thread(known_rates, paths, again=self._is_again)
        except OSError as error:
            self.rates = rates = await asyncio.to_thread(measure_rates)
            self.memory_bandwidth = rates.read_bytes_per_s
            raise Failed(
                f"what was measured cannot be kept in {paths.cache} ({error.strerror})",
                "make this folder writable, or make room on its disk",
            ) from error
        self.memory_bandwidth = rates.read_bytes_per_s
        before = kept(paths)
        meanwhile = ""
        if before is not None and before.is_busy:
            meanwhile = "; other programs were at work meanwhile, so it may be more"
        return (
            f"{counted(rates.num_threads, 'thread')} read {bytes_in_words(self.memory_bandwidth)}/s"
            f" and do {rates.multiply_adds_per_s / 1e9:,.0f} billion multiply-adds/s{meanwhile}"
        )

    async def folders(self) -> str:
        """Raises HomeError."""
        await asyncio.to_thread(self._home.paths.create)
        return "all of them are there, and can be written"

    async def home(self) -> str:
        folder = self._home.paths.data
        free = shutil.disk_usage(folder).free
        words = bytes_in_words(free)
        if free < MIN_FREE_DISK:
            raise Failed(
                f"only {words} are free where {folder} lies",
                "make room on this disk, or move INGLENOOK_HOME to another one",
            )
        return f"{folder}, {words} free"

    async def documents(self) -> str:
        if is_installed():
            return "text, and by OCR the pages that are pictures"
        return f"text, but not the pages that are pictures; {remedy()}"

    async def history(self) -> str:
        database = self._home.database
        damage = await database.damage()
        if damage:
            raise Failed(
                f"the history is damaged ({damage})",
                f"quit the app, keep a copy of {database.path}, and put a backup from the same"
                " folder in its place",
            )
        count = await self._home.conversations.count()
        return f"{counted(count, 'conversation')}, the file is sound"

    async def cache(self) -> str:
        folder = self._home.paths.kv
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
        self._needs_library()
        config = self._home.engine_config
        self.facts = facts = await asyncio.to_thread(model_facts, config)
        changed = "".join(f", with {each.path.stem}" for each in config.adapters)
        return (
            f"{facts.name}: {facts.architecture}, {facts.parameters / 1e6:,.0f} million"
            f" parameters, {facts.quantization}, context {facts.context:,}{changed}"
        )

    async def look_at_disk(self) -> str:
        if self.facts is None:
            raise Failed("without a model there is no place to look at", ABOVE)
        path = self._home.model_path
        try:
            self.disk = disk = await asyncio.to_thread(look_at_disk, path)
        except OSError as error:
            raise Failed(
                f"the disk of {path} cannot be asked ({error.strerror})", "look at the disk"
            ) from error
        place = f"{disk.place}, {bytes_in_words(disk.free)} of {bytes_in_words(disk.total)} free"
        if disk.read_bytes_per_s is None:
            return f"{place}; how fast it reads cannot be measured here"
        seconds = path.stat().st_size / disk.read_bytes_per_s
        speed = f"{place}, read at {bytes_in_words(disk.read_bytes_per_s)}/s"
        if seconds > SLOW_LOADING_S:
            raise Failed(
                f"{speed}: loading the model takes about {seconds:,.0f} s",
                "put the model onto a faster disk, such as a built-in SSD",
            )
        return speed

    async def memory(self) -> str:
        if self.facts is None:
            raise Failed("without a model there is nothing to compare", ABOVE)
        memory = look_at_memory()
        needed, free = self.facts.memory_bytes, memory.available
        takes, left = bytes_in_words(needed), bytes_in_words(free)
        loaded = self._home.loaded_model is not None
        if not loaded and needed > free:
            raise Failed(
                f"the model needs about {takes} and {left} are free",
                f"close other programs, or choose {self._what_would_fit(free)}",
            )
        told = f"the model takes about {takes}, {left} are free"
        if memory.swap_used:
            told += f"; {bytes_in_words(memory.swap_used)} of other programs lie on the disk"
        return told

    def _what_would_fit(self, free: int) -> str:
        assert self.facts is not None
        facts = self.facts
        chosen = self._home.engine_config.num_cells(facts.context)
        weights = facts.memory_bytes - chosen * facts.kv_bytes_per_token
        tokens = (free - weights) // max(1, facts.kv_bytes_per_token)
        tokens -= tokens % LEAST_CONTEXT
        if tokens < LEAST_CONTEXT:
            return "a smaller model: this one does not fit with any context"
        return f"a context of at most {tokens:,} tokens in the settings, or a smaller model"

    async def answer(self) -> str:
        self._needs_library()
        loaded = (await self._home.chat_model()).loaded
        if self.rates is None:
            raise Failed("without the rates of this machine nothing is measured", ABOVE)
        engine = loaded.engine
        is_busy = engine.num_running + engine.num_waiting > 0
        self.costs = costs = await measure_costs(loaded, self.rates)
        meanwhile = "; somebody else was answered meanwhile, so it can be faster"
        return (
            f"{counted(costs.reading.num_tokens, 'token')} read at"
            f" {costs.reading.tokens_per_second:,.0f} tokens/s,"
            f" {costs.writing.num_tokens:,} written at"
            f" {costs.writing.tokens_per_second:,.0f} tokens/s{meanwhile if is_busy else ''}"
        )

    def _needs_library(self) -> None:
        if not self._has_library:
            raise Failed("nothing can be loaded without llama.cpp", "see the line on the processor")
