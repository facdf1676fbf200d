"""`inglenook selfcheck`: whether everything that belongs to the program came along and works.

For packages: it asks of each part what only its files can answer, in a home of its own that is
gone afterwards. `doctor` looks at the machine and the user's home instead.
"""

import asyncio
import importlib
import pkgutil
import re
import tempfile
import urllib.request
from collections.abc import Awaitable, Callable
from pathlib import Path
from struct import pack

from app.amounts import counted
from app.documents.document import Page
from app.documents.reading import Reader
from app.machine.check import Check, Failed
from app.machine.self_test import SelfTest
from app.models.starter import starter_model
from app.paths import Paths
from app.services import Services
from app.version import VERSION
from engine.errors import InglenookError
from engine.guided.grammar import Grammar, GrammarKind
from engine.media import MediaKind
from grammars.catalog import ready_forms

PACKAGES = ("app", "engine", "grammars", "kernels")
# Parts that a machine without a graphics card does without.
OPTIONAL = {"torch", "triton", "transformers", "rapidocr", "cv2", "onnxruntime"}
NAMES = ("modules", "starter", "engine", "pictures", "forms", "documents", "page", "answer")
# Two white pixels, in the simplest form there is.
PICTURE = b"BM" + pack("<IIIIiiHHIIiiII", 62, 0, 54, 40, 2, 1, 1, 24, 0, 8, 0, 0, 0, 0)
PICTURE += bytes([255] * 6 + [0] * 2)
# One page with one word, and no more than a reader needs.
SMALL_PDF = b"""%PDF-1.4
1 0 obj <</Type/Catalog/Pages 2 0 R>> endobj
2 0 obj <</Type/Pages/Kids[3 0 R]/Count 1>> endobj
3 0 obj <</Type/Page/Parent 2 0 R/MediaBox[0 0 99 99]/Contents 4 0 R/Resources
<</Font<</F<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>>>>>>> endobj
4 0 obj <</Length 28>> stream
BT /F 9 Tf (Inglenook) Tj ET
endstream endobj
trailer <</Root 1 0 R>>
"""
REMEDY = "install Inglenook again"


def selfcheck(only: str = "") -> int:
    """Say what was found, one line each. `only` names one part. Returns the exit code: 0 when all
    is well."""
    print(f"Inglenook {VERSION}", flush=True)
    with tempfile.TemporaryDirectory(prefix="inglenook-", ignore_cleanup_errors=True) as folder:
        paths = Paths.from_environment({"INGLENOOK_HOME": folder})
        return 0 if asyncio.run(look(paths, only)) else 1


async def look(paths: Paths, only: str) -> bool:
    services = Services(paths)
    parts = Parts(services)
    checks: list[Check] = []
    try:
        for name, part in parts.all():
            if only not in ("", name):
                continue
            check = await check_of(name, part)
            print(f"{'ok ' if check.ok else 'NOT'}  {name:9}  {check.message}", flush=True)
            checks.append(check)
    finally:
        await services.close()
    return all(check.ok for check in checks)


async def check_of(name: str, part: Callable[[], Awaitable[str]]) -> Check:
    try:
        return Check(name, True, await part())
    except Failed as failed:
        return Check(name, False, failed.message, failed.remedy)
    except (InglenookError, ImportError, OSError) as error:
        return Check(name, False, f"{error}", REMEDY)


class Parts:
    """What has to be there, the quickest to see first."""

    def __init__(self, services: Services) -> None:
        self._services = services

    def all(self) -> list[tuple[str, Callable[[], Awaitable[str]]]]:
        quick = (self.modules, self.starter, self.engine, self.pictures)
        looks = (*quick, self.forms, self.documents, self.page, self.answer)
        return list(zip(NAMES, looks, strict=True))

    async def modules(self) -> str:
        names = module_names()
        if len(names) < 100:
            raise Failed(f"only {counted(len(names), 'module')} came along", REMEDY)
        # Its libraries read their switches when they are imported, so these come first.
        from app.web import environment

        environment.prepare(self._services.paths.cache)
        for name in names:
            try:
                await asyncio.to_thread(importlib.import_module, name)
            except ModuleNotFoundError as error:
                if error.name not in OPTIONAL:
                    raise Failed(f"{name} needs {error.name}, which is not here", REMEDY) from error
        return f"{counted(len(names), 'module')} can be used"

    async def starter(self) -> str:
        model = starter_model()
        if model is None:
            raise Failed("the starter model did not come along", REMEDY)
        return f"{model.name}, {model.stat().st_size:,} bytes"

    async def engine(self) -> str:
        from engine.backends.llama_cpp.library import build_name, processor_kind

        version, _, features = build_name()
        return f"llama.cpp {version} for {processor_kind() or 'this processor'}: {features.strip()}"

    async def pictures(self) -> str:
        from app.media.attachment import attachment_of
        from engine.backends.llama_cpp.mtmd import is_built

        read = await asyncio.to_thread(attachment_of, PICTURE, MediaKind.IMAGE, "a picture")
        if (read.width, read.height) != (2, 1) or len(read.media.load()) != 6:
            raise Failed("a picture was not read as it is", REMEDY)
        words = "are read by a process of their own"
        return words if is_built() else f"{words}; the engine was built without looking at them"

    async def forms(self) -> str:
        forms = ready_forms()
        if not forms:
            raise Failed("no ready-made form came along", REMEDY)
        model = await self._services.chat_model()
        for form in forms.values():
            grammar = Grammar(GrammarKind(form.kind), form.source, False, form.accepted)
            await model.loaded.grammars.compile(grammar)
        return f"{counted(len(forms), 'ready-made form')} can be kept to"

    async def documents(self) -> str:
        reader = Reader()
        with tempfile.TemporaryDirectory(prefix="inglenook-") as folder:
            file = Path(folder) / "a.pdf"
            file.write_bytes(SMALL_PDF)
            try:
                parts = [part async for part in reader.read(file)]
            finally:
                await reader.close()
        texts = [part.text for part in parts if isinstance(part, Page)]
        if texts != ["Inglenook"]:
            raise Failed(f"a PDF with one word was read as {texts}", REMEDY)
        return "a PDF is read by the process for it"

    async def page(self) -> str:
        from app.ui.page import STATIC
        from app.web import server
        from app.web.port import bind

        own = [file for file in STATIC.iterdir() if file.suffix in (".css", ".js", ".svg")]
        if not own:
            raise Failed("the page's own files did not come along", REMEDY)
        sock = bind(port=0)
        port = sock.getsockname()[1]
        built = await asyncio.to_thread(
            server.build, self._services, port, self._services.paths.cache
        )
        ready = asyncio.Event()
        serving = asyncio.create_task(server.serve(built, sock, ready.set))
        try:
            await asyncio.wait_for(ready.wait(), 60)
            num_files = await asyncio.to_thread(fetch_page, f"http://127.0.0.1:{port}")
        finally:
            serving.cancel()
            await asyncio.wait([serving])
        return f"{counted(len(own), 'own file')}, and {num_files} that it asks the server for"

    async def answer(self) -> str:
        return await SelfTest(self._services, await self._services.chat_model()).write()


def module_names() -> list[str]:
    """Of all modules of ours that came along."""
    return [
        module.name
        for package in map(importlib.import_module, PACKAGES)
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    ]


def fetch_page(url: str) -> int:
    """Read the page and whatever it names of the server's; how many files that was."""
    # A proxy from the environment has no business between us and this machine.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def read(path: str) -> str:
        with opener.open(f"{url}{path}", timeout=30) as response:
            content: bytes = response.read()
            if not content:
                raise OSError(f"{path} is empty")
            return content.decode("utf-8", "replace")

    html = read("/")
    paths = sorted(set(re.findall(r"""(?:src|href)=["']\.?(/(?:assets|static)/[^"'?]+)""", html)))
    if not paths:
        raise OSError("the page names no file of the server's")
    for path in paths:
        read(path)
    return len(paths)
