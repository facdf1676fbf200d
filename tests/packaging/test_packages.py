"""The packages that users get, as people who have nothing else: run after `make package`.

    make package && .venv/bin/python -m pytest -m nightly tests/packaging

Every person here has no Python, no PATH but what the test gives, and no network. Pictures of the
screen and the figures are left in dist/proof.
"""

import asyncio
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pytest
from PIL import ImageGrab
from playwright.async_api import async_playwright

from app.version import VERSION
from tests.chromium import find_chromium
from tests.packaging.no_network import can_be_cut, no_network
from tests.packaging.packaged import PATIENCE_S, Packaged, page, take_away_writing
from tests.visitor import Visitor

ROOT = Path(__file__).resolve().parents[2]
DIST = ROOT / "dist"
PROOF = DIST / "proof"
SOMEBODY = 54321
"""A user without a name, a password or anything of their own."""
QUESTION = "What is the capital of France?"
FIRST_ANSWER_S = 120
MOST_MEMORY_BYTES = 600e6
START_OVER_SOURCE = 2.0

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(sys.platform != "linux", reason="packages of Linux"),
]


@pytest.fixture(scope="module", autouse=True)
def cut_off() -> Iterator[None]:
    if not can_be_cut():
        yield
        return
    with no_network():
        with pytest.raises(OSError):
            socket.create_connection(("192.0.2.1", 80), timeout=1)
        yield


@pytest.fixture(scope="module", autouse=True)
def proof() -> Path:
    PROOF.mkdir(parents=True, exist_ok=True)
    return PROOF


@pytest.fixture(scope="module")
def archive() -> Path:
    found = DIST / f"inglenook-{VERSION}-linux-x86_64.tar.xz"
    if not found.exists():
        pytest.fail("There is no package yet: run `make package`.")
    return found


@pytest.fixture(scope="module")
def somewhere() -> Iterator[Path]:
    """Where another user may go as well, under a name that has spaces and more than ASCII."""
    folder = Path("/var/tmp") / f"Jürgens Täst {os.getpid()}"
    folder.mkdir()
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def unpacked(archive: Path, somewhere: Path) -> Path:
    with tarfile.open(archive) as file:
        file.extractall(somewhere, filter="tar")
    return somewhere / archive.name.removesuffix(".tar.xz")


@pytest.fixture
def user_home(somewhere: Path) -> Path:
    home = somewhere / f"home {len(list(somewhere.iterdir()))}"
    home.mkdir()
    if os.geteuid() == 0:
        os.chown(home, SOMEBODY, SOMEBODY)
    return home


@pytest.fixture
def somebody(unpacked: Path, user_home: Path) -> Packaged:
    """Who runs the program from where it was unpacked, and may not write there."""
    user = SOMEBODY if os.geteuid() == 0 else None
    return Packaged(program=unpacked / "inglenook" / "inglenook", home=user_home, user=user)


def note(name: str, value: object) -> None:
    """A figure for the README, beside the pictures."""
    file = PROOF / "figures.json"
    figures = json.loads(file.read_text()) if file.exists() else {}
    file.write_text(json.dumps({**figures, name: value}, indent=2, sort_keys=True) + "\n")


# Questions on the command line


def test_it_answers_from_the_root_folder_and_a_path_that_is_not_ascii(somebody: Packaged) -> None:
    assert "Paris" in somebody.ask(QUESTION)["text"]


def test_it_answers_where_the_system_lets_nobody_write(somebody: Packaged, unpacked: Path) -> None:
    before = {file: file.lstat().st_mtime_ns for file in unpacked.rglob("*")}
    take_away_writing(unpacked)
    assert "Paris" in somebody.ask(QUESTION)["text"]
    assert {file: file.lstat().st_mtime_ns for file in unpacked.rglob("*")} == before


def test_every_part_came_along(somebody: Packaged) -> None:
    looked = somebody.run("selfcheck")
    assert looked.returncode == 0, looked.stdout + looked.stderr


def test_without_a_home_it_works_or_says_one_sentence(somebody: Packaged) -> None:
    """A user whom no list of users knows, without HOME."""
    homeless = replace(somebody, environment={"HOME": "", "INGLENOOK_HOME": ""})
    done = homeless.run("generate", QUESTION)
    assert_works_or_says_why(done)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount")
@pytest.mark.parametrize("kilobytes", [16, 400, 4000])
def test_a_home_that_is_nearly_full_works_or_says_one_sentence(
    somebody: Packaged, kilobytes: int
) -> None:
    options = f"size={kilobytes}k,uid={SOMEBODY},gid={SOMEBODY}"
    mount = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(somebody.home)]
    subprocess.run(mount, check=True)
    try:
        assert_works_or_says_why(somebody.run("generate", QUESTION))
        with somebody.started("launch", "--no-open") as app:
            said = app.says("Inglenook") if kilobytes > 400 else app.says("")
            assert "Traceback" not in said
    finally:
        subprocess.run(["umount", "-l", str(somebody.home)], check=True)


def assert_works_or_says_why(done: "subprocess.CompletedProcess[str]") -> None:
    if done.returncode == 0:
        assert done.stdout.strip()
        return
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1, done.stderr
    assert done.stderr.strip().endswith(".")


# The double click


def test_a_second_start_shows_the_first_one(somebody: Packaged) -> None:
    with somebody.started("launch", "--no-open") as first:
        first.says("ready")
        address = somebody.owner()
        again = somebody.run("launch", "--no-open")
        assert again.returncode == 0
        assert address.url in again.stdout


def test_a_port_that_is_taken_is_no_obstacle(somebody: Packaged) -> None:
    with socket.create_server(("127.0.0.1", 7341)):
        with somebody.started("launch", "--no-open") as app:
            app.says("ready")
            assert somebody.owner().port != 7341
        asked_for = somebody.run("run", "--no-open", "--port", "7341")
    assert asked_for.returncode == 1
    assert "7341" in asked_for.stderr and asked_for.stderr.count("\n") == 1


def test_without_a_browser_the_address_is_said(somebody: Packaged) -> None:
    with somebody.started() as app:
        line = app.says("http://127.0.0.1")
        assert somebody.owner().url in line


def test_it_starts_as_fast_as_from_its_source_and_stays_small(
    somebody: Packaged, tmp_path: Path
) -> None:
    """Interleaved, since the machine has good and bad minutes; the first pair fills the caches."""
    source = Packaged(
        program=Path(sys.executable),
        home=tmp_path,
        environment={"PYTHONPATH": str(ROOT), "PATH": os.environ["PATH"]},
    )
    times: dict[str, list[float]] = {"package": [], "source": []}
    memory = 0
    for _ in range(4):
        for name, program, before in (
            ("package", somebody, ()),
            ("source", source, ("-m", "app.launcher")),
        ):
            begun = time.monotonic()
            with program.started(*before, "launch", "--no-open") as app:
                app.says("ready")
                page(program.owner())
                times[name].append(time.monotonic() - begun)
                if name == "package":
                    # Carried out by the app that runs, which then has the model loaded.
                    assert program.run("generate", "Hi", "--max-tokens", "1").returncode == 0
                    memory = max(memory, app.memory_bytes())
    package, from_source = (sorted(times[name][1:])[1] for name in ("package", "source"))
    note("start_s", {"package": round(package, 2), "source": round(from_source, 2)})
    note("idle_memory_mb", round(memory / 1e6))
    assert package <= START_OVER_SOURCE * from_source
    assert memory <= MOST_MEMORY_BYTES


@contextmanager
def screen(number: int) -> Iterator[str]:
    """An X server of 1280 x 900 dots that nobody looks at."""
    server = shutil.which("Xvfb")
    if server is None:
        pytest.fail("The screen is Xvfb's: install the package xvfb.")
    display = f":{number}"
    command = [server, display, "-screen", "0", "1280x900x24", "-nolisten", "tcp"]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        try:
            wait_until(lambda: Path(f"/tmp/.X11-unix/X{number}").exists(), 20)
            yield display
        finally:
            process.terminate()


def wait_until(is_so: Callable[[], bool], patience_s: float) -> None:
    deadline = time.monotonic() + patience_s
    while not is_so():
        assert time.monotonic() < deadline, f"waited {patience_s:g} s in vain"
        time.sleep(0.1)


@contextmanager
def no_browser_left(number: Path) -> Iterator[None]:
    """A window outlives the program that opened it; this one ends with the test."""
    try:
        yield
    finally:
        with suppress(FileNotFoundError, ProcessLookupError):
            os.kill(int(number.read_text()), signal.SIGTERM)


def browser_folder(folder: Path) -> Path:
    """A PATH with one browser, which the test can look into; the sandbox needs more rights than
    the machines that tests run on give."""
    chromium = find_chromium()
    if chromium is None:
        pytest.fail("There is no Chromium.")
    tools = folder / "programs"
    tools.mkdir()
    wrapper = tools / "chromium"
    flags = "--no-sandbox --disable-gpu --remote-debugging-port=9333"
    number = folder / "browser.pid"
    lines = ["#!/bin/sh", f'echo $$ >"{number}"']
    lines.append(f'PATH=/usr/bin:/bin exec "{chromium}" {flags} "$@" 2>/dev/null')
    wrapper.write_text("\n".join([*lines, ""]), encoding="utf-8")
    wrapper.chmod(0o755)
    return tools


async def test_from_the_package_at_hand_to_the_first_answer_by_the_menu(
    archive: Path, user_home: Path
) -> None:
    begun = time.monotonic()
    user = SOMEBODY if os.geteuid() == 0 else None
    as_user = {"user": user, "group": user, "extra_groups": None if user is None else []}
    environment = {"HOME": str(user_home), "PATH": "/usr/bin:/bin"}
    shell = f'tar xf "{archive}" && inglenook-*/install.sh'
    installed = subprocess.run(
        ["sh", "-c", shell],
        cwd=user_home,
        env=environment,
        capture_output=True,
        text=True,
        **as_user,
    )
    assert installed.returncode == 0, installed.stderr
    entry = (user_home / ".local/share/applications/inglenook.desktop").read_text("utf-8")
    (command,) = [line[5:] for line in entry.splitlines() if line.startswith("Exec=")]
    assert command == f'"{user_home}/.local/opt/inglenook/inglenook"'
    with screen(94) as display:
        program = Packaged(
            program=Path(command.strip('"')),
            home=user_home,
            user=user,
            # As in every desktop's session: in the C locale Chromium waits forever for files of its
            # own in a folder whose name is not ASCII.
            environment={
                "DISPLAY": display,
                "LANG": "C.UTF-8",
                "PATH": str(browser_folder(user_home)),
            },
        )
        with program.started(), no_browser_left(user_home / "browser.pid"):
            async with async_playwright() as playwright:
                browser = None
                deadline = time.monotonic() + PATIENCE_S
                while browser is None:
                    assert time.monotonic() < deadline, "no window came"
                    with suppress(Exception):
                        browser = await playwright.chromium.connect_over_cdp(
                            "http://127.0.0.1:9333"
                        )
                (window,) = browser.contexts[0].pages
                ImageGrab.grab(xdisplay=display).save(PROOF / "1-first-look.png")
                program.owner()
                visitor = Visitor(window, window.url)
                try:
                    await window.locator("#composer button[aria-label]").wait_for(timeout=90_000)
                    await visitor.send(QUESTION)
                    await visitor.sees_answer("Paris")
                    seconds = time.monotonic() - begun
                    # The picture is of what was painted, which comes after what the page holds.
                    await visitor.send_button.wait_for()
                    await asyncio.sleep(1)
                except Exception as error:
                    raise AssertionError(f"{error}; the page: {visitor.faults}") from error
                finally:
                    ImageGrab.grab(xdisplay=display).save(PROOF / "2-first-answer.png")
                assert [fault for fault in visitor.faults if "404" not in fault] == []
                await browser.close()
    note("package_to_first_answer_s", round(seconds, 1))
    assert seconds <= FIRST_ANSWER_S


# The .deb


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may install it")
def test_the_deb_is_installed_answers_and_is_removed(somewhere: Path, user_home: Path) -> None:
    """Into a root of its own, with the records of the packages that this machine has."""
    package = DIST / f"inglenook_{VERSION}_amd64.deb"
    root = somewhere / "root"
    records = root / "var/lib/dpkg"
    records.mkdir(parents=True)
    for name in ("status", "diversions", "statoverride"):
        source = Path("/var/lib/dpkg") / name
        if source.exists():
            shutil.copyfile(source, records / name)
    (records / "info").mkdir()
    (records / "updates").mkdir()
    (records / "available").touch()
    dpkg = ["dpkg", f"--instdir={root}", f"--admindir={records}", "--force-script-chrootless"]
    installed = subprocess.run([*dpkg, "-i", str(package)], capture_output=True, text=True)
    assert installed.returncode == 0, installed.stderr
    program = Packaged(program=root / "usr/bin/inglenook", home=user_home, user=SOMEBODY)
    assert "Paris" in program.ask(QUESTION)["text"]
    removed = subprocess.run([*dpkg, "--purge", "inglenook"], capture_output=True, text=True)
    assert removed.returncode == 0, removed.stderr
    assert not (root / "usr/lib/inglenook").exists()


# Older processors


def emulated(program: Packaged, processor: str) -> Packaged:
    """The program on another processor. The emulator does not follow a program that starts itself
    anew, as PyInstaller's does to set the path of its libraries, so that is done beforehand."""
    emulator = shutil.which("qemu-x86_64")
    if emulator is None:
        pytest.fail("Other processors are qemu's: install the package qemu-user.")
    inside = program.program.parent / "_internal"
    done = {
        "LD_LIBRARY_PATH": str(inside),
        "_PYI_ARCHIVE_FILE": str(program.program),
        "_PYI_APPLICATION_HOME_DIR": str(inside),
        "_PYI_PARENT_PROCESS_LEVEL": "0",
    }
    handed = [part for name, value in done.items() for part in ("-E", f"{name}={value}")]
    return replace(program, prefix=(emulator, "-cpu", processor, *handed))


@pytest.mark.parametrize(
    ("processor", "kind"),
    [
        ("Nehalem", "sse42"),
        ("SandyBridge", "sandybridge"),
        ("IvyBridge", "ivybridge"),
        ("Haswell", "haswell"),
        ("Haswell,-avx2", "piledriver"),
    ],
)
def test_an_older_processor_gets_the_library_for_its_kind_and_answers(
    somebody: Packaged, processor: str, kind: str
) -> None:
    older = emulated(somebody, processor)
    looked = older.run("selfcheck", "--only", "engine", timeout=600)
    assert f" for {kind}:" in looked.stdout, looked.stdout + looked.stderr
    answer = older.run("generate", QUESTION, "--max-tokens", "3", timeout=600)
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout.strip()


def test_a_processor_that_is_too_old_is_told_so_in_one_sentence(somebody: Packaged) -> None:
    told = emulated(somebody, "qemu64").run("generate", QUESTION, timeout=600)
    assert told.returncode == 1
    assert "too old" in told.stderr and told.stderr.count("\n") == 1


def test_a_double_click_on_one_that_is_too_old_says_the_same(somebody: Packaged) -> None:
    with emulated(somebody, "qemu64").started("launch", "--no-open") as app:
        assert "too old" in app.says("processor")


def test_this_processor_is_not_what_the_emulator_shows(somebody: Packaged) -> None:
    """Otherwise the tests above would have run on the real one."""
    here = somebody.run("selfcheck", "--only", "engine").stdout
    there = emulated(somebody, "Nehalem").run("selfcheck", "--only", "engine", timeout=600).stdout
    assert " for sse42:" in there and here != there
