"""`make package`: everything that is published of one version for this system, into dist/.

package.py [--no-vision]

portable engine -> frozen folder -> its licences and parts -> archive and .deb -> latest.json
"""

import os
import shutil
import subprocess
import sys
import time
import zipfile
from datetime import UTC, datetime
from pathlib import Path

import linux_package
import macos_package
import traces
import windows_package
from companions import lay_companions
from components import components
from engine_wheel import CACHE, BuildError, EngineWheel, engine_wheel
from freeze import Frozen, freeze
from latest import write_latest
from notices import notices
from sbom import sbom

from app.version import VERSION

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "package"
DIST = ROOT / "dist"
MOST_MEGABYTES = 450
MAKERS = {
    "linux": (linux_package.make_archive, linux_package.make_deb),
    "darwin": (macos_package.make_dmg,),
    "win32": (windows_package.make_archive, windows_package.make_setup),
}


def make_package(vision: bool) -> list[Path]:
    """The files that were made. Raises BuildError."""
    say("The engine ...")
    engine = engine_wheel(vision)
    say("Freezing the app, about two minutes ...")
    frozen = freeze(BUILD / "frozen", unpacked(engine, BUILD / "engine"))
    describe(frozen, engine)
    lay_companions(frozen.program, engine.wheel, BUILD / "wheel")
    check(frozen)
    DIST.mkdir(exist_ok=True)
    say("Packing, some minutes ...")
    made = [publish(frozen, name) for name in ("THIRD-PARTY-NOTICES.txt", "inglenook.cdx.json")]
    for make in MAKERS[sys.platform]:
        made.append(make(frozen.folder, VERSION, DIST, BUILD))
    made.append(write_latest(DIST, VERSION, datetime.now(UTC).date()))
    return made


def unpacked(engine: EngineWheel, folder: Path) -> Path:
    """The wheel as an installation of its own, to come before the installed one."""
    shutil.rmtree(folder, ignore_errors=True)
    with zipfile.ZipFile(engine.wheel) as wheel:
        wheel.extractall(folder)
    return folder


def describe(frozen: Frozen, engine: EngineWheel | None) -> None:
    """Put the licences and the list of parts into the folder."""
    found = components(frozen, engine)
    texts = {"THIRD-PARTY-NOTICES.txt": notices(found), "inglenook.cdx.json": sbom(found, VERSION)}
    for name, text in texts.items():
        (frozen.folder / name).write_text(text, encoding="utf-8")
    for name in ("LICENSE", "NOTICE"):
        shutil.copyfile(ROOT / name, frozen.folder / name)


def check(frozen: Frozen) -> None:
    """What is wrong with every copy is found before there are any."""
    num_bytes = sum(file.lstat().st_size for file in frozen.folder.rglob("*") if not file.is_dir())
    megabytes = num_bytes / 10**6
    if megabytes > MOST_MEGABYTES:
        raise BuildError(f"The program has {megabytes:.0f} MB, and {MOST_MEGABYTES} are allowed.")
    found = traces.find_traces(frozen.folder, [*traces.own_places(), str(CACHE)])
    if found:
        places = "\n".join(f"    {place}: {word}" for place, word in found[:20])
        raise BuildError(f"{places}\n{len(found)} places name folders of this machine.")
    asked = subprocess.run(
        [str(frozen.program), "selfcheck"],
        cwd="/",
        env={key: os.environ[key] for key in ("HOME", "SYSTEMROOT", "TEMP") if key in os.environ},
        capture_output=True,
        text=True,
    )
    say(asked.stdout.rstrip())
    if asked.returncode:
        raise BuildError(f"{asked.stderr}The frozen program does not pass its own check.")
    say(f"{megabytes:.0f} MB unpacked.")


def publish(frozen: Frozen, name: str) -> Path:
    """Beside the packages too: for who wants to know before unpacking."""
    published = DIST / f"inglenook-{VERSION}-{name.removeprefix('inglenook.')}"
    shutil.copyfile(frozen.folder / name, published)
    return published


def say(sentence: str) -> None:
    print(sentence, flush=True)


def main() -> int:
    started = time.monotonic()
    try:
        made = make_package(vision="--no-vision" not in sys.argv[1:])
    except BuildError as error:
        print(error, file=sys.stderr)
        return 1
    for file in made:
        say(f"{file.stat().st_size / 10**6:8.1f} MB  {file.relative_to(ROOT)}")
    say(f"Made in {(time.monotonic() - started) / 60:.0f} minutes.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
