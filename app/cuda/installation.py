"""An installation for the graphics card: looked at, asked about, made, checked, and removed.

    look      an environment with pip alone says what would come; the sizes are asked for
    install   the same files, each by its checksum, into a new folder; checked; then it has its name

Nothing goes out unless the user asked for it, and every host is on the list of connections first.
"""

import asyncio
import shutil
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

from app.amounts import bytes_in_words
from app.cuda.cards import NOT_YET, OWN_INDEX, torch_index, why_useless
from app.cuda.environment import Environment, Made, python_in
from app.cuda.pip import Hear, Pip, hosts_of, run
from app.cuda.plan import Plan, WheelFile, file_of
from app.cuda.python import Python, find_python
from app.cuda.wheels import make_own_wheel, own_wheel
from app.machine.gpu import Gpu, look_at_gpus
from app.models.connections import Connections
from app.models.outside import Outside
from app.paths import Paths
from app.version import VERSION
from engine.errors import InglenookError, InstallationFailed, UsageError

WHY = "install for the graphics card"
MOST_LINES = 8
WORK = "work"
FREE = {"inglenook", "torch", "triton", "transformers", "pip", "setuptools"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """`useless`: why an installation would not help; `not_yet`: what it does not bring;
    `obstacle`: why what is made is not started. All empty when all is well. `is_ours`: this
    process runs from it."""

    gpus: tuple[Gpu, ...]
    useless: str
    not_yet: str
    made: Made | None
    obstacle: str
    is_ours: bool

    def as_json(self) -> dict[str, Any]:
        made = self.made
        return {
            "installed": made is not None,
            "used": made is not None and not self.obstacle,
            "running": self.is_ours,
            "version": made.version if made else "",
            "torch": made.torch if made else "",
            "bytes": made.num_bytes if made else 0,
            "obstacle": self.obstacle,
            "useless": self.useless,
            "not_yet": self.not_yet,
            "cards": [gpu.name for gpu in self.gpus],
        }


class Installation:
    """Owned by the event loop. `lines` are the last ones of what is being done, `plan` is what was
    looked at last, `failure` how the last work of the page ended."""

    def __init__(
        self,
        paths: Paths,
        connections: Connections,
        look_at_cards: Callable[[], list[Gpu]] = look_at_gpus,
        find: Callable[[], Python] = find_python,
        wheels: Path | None = None,
    ) -> None:
        """`wheels`: the folder with our own, where a package has brought one."""
        self.environment = Environment(paths.cuda)
        self.lines: list[str] = []
        self.plan: Plan | None = None
        self.failure: InglenookError | None = None
        self._paths = paths
        self._connections = connections
        self._outside = Outside(connections)
        self._look_at_cards = look_at_cards
        self._find = find
        self._wheels = wheels
        self._work: asyncio.Task[None] | None = None
        self._changed = asyncio.Event()

    async def standing(self) -> Standing:
        gpus = await asyncio.to_thread(self._look_at_cards)
        return Standing(
            gpus=tuple(gpus),
            useless=why_useless(gpus),
            not_yet=NOT_YET,
            made=self.environment.made(),
            obstacle=self.environment.obstacle(),
            is_ours=self.environment.is_ours,
        )

    @property
    def is_working(self) -> bool:
        return self._work is not None and not self._work.done()

    async def look(
        self, torch_from: str = "", *, anyway: bool = False, hear: Hear = lambda line: None
    ) -> Plan:
        """What would be fetched: only names and sizes are asked for. `torch_from` is an index for
        torch alone, "none" for no index of its own. Raises InglenookError."""
        index = await self._index(torch_from, anyway)
        with self.environment.alone():
            async with self._begun(hear) as (folder, pip, python):
                self.plan = await self._plan(folder, pip, python, index, hear)
        return self.plan

    async def install(
        self, torch_from: str = "", *, anyway: bool = False, hear: Hear = lambda line: None
    ) -> Made:
        """Raises InglenookError, and then what was there before is there. Cancelled, as well."""
        if self.environment.is_ready:
            raise UsageError("It is installed already: `inglenook cuda remove --yes` removes it.")
        if self.environment.is_ours:
            raise UsageError(
                "This Inglenook still runs from what was removed: quit it, start it again, and"
                " install then."
            )
        index = await self._index(torch_from, anyway)
        with self.environment.alone():
            async with self._begun(hear) as (folder, pip, python):
                plan = await self._plan(folder, pip, python, index, hear)
                self.plan = plan
                if plan.is_too_large:
                    raise InstallationFailed(
                        f"This needs about {bytes_in_words(plan.needed_bytes)} of disk and"
                        f" {bytes_in_words(plan.free_bytes)} are free where {self._paths.data}"
                        " lies: make room there, or move INGLENOOK_HOME to another disk."
                    )
                self._note(hosts_of([file.url for file in plan.files]))
                await self._bring(folder, pip, plan, hear)
                made = await self._check(folder, python, hear)
                await asyncio.to_thread(self.environment.take, folder, made)
        self.plan = None
        if self._cache is not None:
            await asyncio.to_thread(shutil.rmtree, self._cache, True)
        return made

    async def remove(self) -> bool:
        """False: it goes at the next start, because this process runs from it."""
        if self.environment.made() is None:
            raise UsageError("Nothing is installed for the graphics card.")
        with self.environment.alone():
            return await asyncio.to_thread(self.environment.remove)

    def begin(self, work: Callable[[Hear], Any]) -> None:
        """Do it while the page looks on; it outlives the page. Harmless while something is done."""
        if self.is_working:
            return
        self.lines, self.failure = [], None
        self._work = asyncio.create_task(self._do(work))

    def stop(self) -> None:
        if self._work is not None:
            self._work.cancel()

    async def follow(self) -> AsyncIterator[list[str]]:
        """The last lines whenever there is a new one, until nothing is done any more."""
        while self.is_working:
            changed = self._changed
            yield self.lines
            await changed.wait()

    async def close(self) -> None:
        if self._work is not None and not self._work.done():
            self._work.cancel()
            await asyncio.wait([self._work])

    async def _do(self, work: Callable[[Hear], Any]) -> None:
        try:
            await work(self._hear)
        except InglenookError as error:
            self.failure = error
        finally:
            # Who follows looks again, and finds that it is done.
            asyncio.get_running_loop().call_soon(self._tell)

    def _hear(self, line: str) -> None:
        self.lines = [*self.lines, line][-MOST_LINES:]
        self._tell()

    def _tell(self) -> None:
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    async def _index(self, torch_from: str, anyway: bool) -> str:
        gpus = await asyncio.to_thread(self._look_at_cards)
        useless = why_useless(gpus)
        if useless and not anyway:
            raise UsageError(useless)
        return torch_index(gpus, torch_from or (OWN_INDEX if useless else ""))

    @asynccontextmanager
    async def _begun(self, hear: Hear) -> AsyncIterator[tuple[Path, Pip, Python]]:
        """A new environment with pip alone; what is left of it goes."""
        await asyncio.to_thread(self.environment.sweep)
        python = await asyncio.to_thread(self._find)
        folder = self.environment.new_folder()
        try:
            hear(f"Making an environment with Python {python.version}")
            await run([*python.command, "-I", "-m", "venv", str(folder)], cwd=folder)
            work = folder / WORK
            work.mkdir()
            yield folder, Pip(python_in(folder), self._cache, work), python
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    @property
    def _cache(self) -> Path | None:
        """A package's own, deleted when all is done. A source tree uses pip's: there lies the
        engine that was built for it."""
        return None if self._wheels is None else self._paths.cache / "pip"

    async def _plan(self, folder: Path, pip: Pip, python: Python, index: str, hear: Hear) -> Plan:
        self._note([*await pip.index_hosts(), *hosts_of([index] if index else [])])
        wheel = self._wheels and own_wheel(self._wheels)
        if wheel is None:
            wheel = await make_own_wheel(pip, folder / WORK, hear)
        wanted = [f"inglenook[cuda] @ {wheel.as_uri()}"]
        versions = folder / WORK / "versions.txt"
        versions.write_text("\n".join(our_versions()), encoding="utf-8")
        arguments = [*_only_wheels(wheel.parent), "--constraint", str(versions)]
        if index:
            hear(f"Asking {index} for torch")
            only = ["--no-deps", "--index-url", index]
            found = await pip.report(*only, "torch", into=folder)
            # Of this build and no other, wherever the rest comes from.
            wanted.append(f"torch=={file_of(found[0]).version}")
            arguments += ["--extra-index-url", index]
        hear("Asking which files belong to it")
        report = await pip.report(*arguments, *wanted, into=folder)
        hear(f"Asking for the sizes of {len(report)} files")
        files = [await self._with_size(file_of(item)) for item in report]
        free = shutil.disk_usage(self._paths.data).free
        return Plan(python=python.version, files=tuple(files), free_bytes=free)

    async def _with_size(self, file: WheelFile) -> WheelFile:
        if file.is_here:
            return replace(file, num_bytes=file.path.stat().st_size)
        async with self._outside.get(file.url, WHY) as answer:
            told = answer.headers.get("content-length", "") if answer.status == 200 else ""
        return replace(file, num_bytes=int(told)) if told.isdecimal() else file

    async def _bring(self, folder: Path, pip: Pip, plan: Plan, hear: Hear) -> None:
        """The very files of the plan."""
        listed = folder / "files.txt"
        listed.write_text("\n".join(file.requirement for file in plan.files), encoding="utf-8")
        await pip.run("install", "--no-deps", "--progress-bar=off", "-r", str(listed), hear=hear)
        listed.unlink()
        shutil.rmtree(folder / WORK, ignore_errors=True)

    async def _check(self, folder: Path, python: Python, hear: Hear) -> Made:
        """Whether it is whole: torch can be imported, and the same Inglenook answers."""
        hear("Checking it")
        start = [str(python_in(folder)), "-I"]
        torch = await run([*start, "-c", "import torch; print(torch.__version__)"], cwd=folder)
        said = await run([*start, "-m", "app.launcher", "--version"], cwd=folder)
        version = said.split()[-1] if said.split() else ""
        if version != VERSION:
            raise InstallationFailed(
                f"What was installed says {said[:80]!r} and not Inglenook {VERSION}: nothing of it"
                " is used. Install Inglenook itself again, and try again."
            )
        num_bytes = await asyncio.to_thread(size_of, folder)
        return Made(
            version=VERSION,
            torch=torch.split()[-1],
            python=python.version,
            num_bytes=num_bytes,
        )

    def _note(self, hosts: Sequence[str]) -> None:
        for host in dict.fromkeys(hosts):
            self._connections.note(host, WHY)


def _only_wheels(beside: Path) -> list[str]:
    """Nothing is built where the engine's wheel lies beside ours; a source tree has a compiler."""
    if any(beside.glob("llama_cpp_python-*.whl")):
        return ["--only-binary", ":all:", "--find-links", str(beside)]
    return ["--prefer-binary"]


def our_versions() -> list[str]:
    """What runs us, which was tried: the same versions are taken, but of what the card needs."""
    found = {each.name: each.version for each in distributions() if each.name}
    return [f"{name}=={found[name]}" for name in sorted(found) if name.lower() not in FREE]


def size_of(folder: Path) -> int:
    return sum(file.lstat().st_size for file in folder.rglob("*") if not file.is_dir())
