"""Downloads from a real server on this machine, which breaks off, stalls and lies."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path
from struct import pack
from typing import Any

import pytest

from app.models.connections import Connections
from app.models.download import Downloads
from app.models.hub import Hub, Offer, RemoteFile
from app.models.local import list_models
from app.models.outside import Outside
from app.models.way import Download, DownloadState
from app.paths import Paths
from app.settings import Settings
from engine.errors import DownloadEnded, DownloadError, UsageError
from tests.fakes_hub import FakeHub
from tests.waiting import until

REPO = "someone/small"
FILE = "small-Q4_K_M.gguf"
PARTS = ["big-Q8_0-00001-of-00002.gguf", "big-Q8_0-00002-of-00002.gguf"]
CONTENT = bytes(range(256)) * 12_000
GGUF_HEADER = b"GGUF" + pack("<IQQ", 3, 0, 0)
# One tensor of 1,000 floats, and none of them is there.
CUT = b"GGUF" + pack("<IQQ", 3, 1, 0) + pack("<QcIQIQ", 1, b"a", 1, 1000, 0, 0)
PLENTY = 10**12


class Downloading:
    """Downloads into a home, with what came of them."""

    def __init__(self, paths: Paths, free: int = PLENTY, stall_s: float = 20.0) -> None:
        self.paths = paths
        self.done: list[Path] = []
        self.outside = Outside(Connections(paths.connections), stall_s)
        self.free = free
        self.downloads = Downloads(
            paths.models,
            self.outside,
            lambda path, offer: self.done.append(path),
            free=lambda folder: self.free,
            wait_s=0.01,
        )

    async def offer(self, repo: str = REPO) -> Offer:
        return (await Hub(self.outside).offers(repo))[0]

    async def bring(self, offer: Offer | None = None) -> Path:
        name = await self.downloads.begin(offer or await self.offer())
        return await self.downloads.wait(name, lambda download: None)

    def shown(self) -> Download:
        (one,) = self.downloads.all()
        return one

    def files(self) -> set[str]:
        return {file.name for file in self.paths.models.iterdir()}

    def offered(self) -> list[str]:
        return [each.name for each in list_models(self.paths, Settings()) if not each.is_starter]


@pytest.fixture
async def room(paths: Paths, hub: FakeHub) -> AsyncIterator[Downloading]:
    hub.files[REPO] = {FILE: CONTENT}
    room = Downloading(paths)
    yield room
    await room.downloads.close()


async def test_what_a_model_sees_by_comes_along_under_its_name(
    room: Downloading, hub: FakeHub
) -> None:
    hub.files[REPO] = {FILE: CONTENT, "mmproj-F16.gguf": CONTENT[:5000]}
    offer = await room.offer()
    assert offer.num_bytes == len(CONTENT) + 5000
    path = await room.bring(offer)
    assert path.read_bytes() == CONTENT
    assert (room.paths.models / f"mmproj-{FILE}").read_bytes() == CONTENT[:5000]
    assert room.offered() == [path.stem]


async def test_what_a_model_sees_by_can_come_after_it(room: Downloading, hub: FakeHub) -> None:
    await room.bring()
    hub.files[REPO] = {FILE: CONTENT, "mmproj-F16.gguf": CONTENT[:5000]}
    hub.asked.clear()
    await room.bring(await room.offer())
    assert not any(path.endswith(FILE) for path, _ in hub.asked)
    assert (room.paths.models / f"mmproj-{FILE}").read_bytes() == CONTENT[:5000]


async def test_what_comes_is_whole_checked_and_in_its_place(room: Downloading) -> None:
    path = await room.bring()
    assert path == room.paths.models / FILE
    assert path.read_bytes() == CONTENT
    assert room.files() == {FILE}
    assert room.done == [path]
    assert room.shown().state is DownloadState.DONE
    hosts = {each.host for each in Connections(room.paths.connections).all()}
    assert hosts == {"127.0.0.1"}


async def test_what_breaks_off_goes_on_where_it_was(room: Downloading, hub: FakeHub) -> None:
    hub.wrong.cuts = [1_200_000, 0, 500_000]
    await room.bring()
    assert hub.ranges == ["", "bytes=1200000-", "bytes=1200000-", "bytes=1700000-"]
    assert (room.paths.models / FILE).read_bytes() == CONTENT


async def test_a_server_without_ranges_begins_anew_and_ends_well(
    room: Downloading, hub: FakeHub
) -> None:
    hub.wrong.cuts, hub.wrong.has_ranges = [1_200_000], False
    assert (await room.bring()).read_bytes() == CONTENT


async def test_a_file_that_changed_meanwhile_begins_anew(room: Downloading, hub: FakeHub) -> None:
    """Without sums only the name of the version tells; it is asked for with If-Range."""
    hub.wrong.has_sums = False
    hub.wrong.bytes_per_s = 4_000_000
    name = await room.downloads.begin(await room.offer())
    await until(lambda: room.shown().num_bytes > 0)
    await room.downloads.pause(name)
    hub.wrong.bytes_per_s = 0
    other = GGUF_HEADER + CONTENT[: -len(GGUF_HEADER)]
    hub.etag, hub.files[REPO][FILE] = '"two"', other
    await room.downloads.resume(name)
    assert (await room.downloads.wait(name, lambda download: None)).read_bytes() == other


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"<html>Log in to go on</html>", "it is no GGUF"),
        (GGUF_HEADER[:20], "it breaks off within 20 bytes"),
        (CUT, "it ends at "),
        (b"", "it is empty"),
    ],
    ids=["a page", "half a header", "cut off", "empty"],
)
async def test_without_a_sum_only_a_model_file_is_kept(
    room: Downloading, hub: FakeHub, content: bytes, reason: str
) -> None:
    hub.wrong.has_sums = False
    hub.files[REPO][FILE] = content
    with pytest.raises(DownloadEnded, match=f"{reason}.*: it was thrown away; download it again"):
        await room.bring(await room.offer())
    assert FILE not in room.files() and f"{FILE}.part" not in room.files()
    assert room.offered() == []


async def test_wrong_bytes_are_thrown_away(room: Downloading, hub: FakeHub) -> None:
    offer = await room.offer()
    hub.wrong.has_sums = False
    hub.files[REPO][FILE] = CONTENT[:-1] + b"!"
    with pytest.raises(DownloadEnded, match="wrong content .* thrown away: download it again"):
        await room.bring(offer)
    assert FILE not in room.files() and f"{FILE}.part" not in room.files()
    assert room.offered() == []


async def test_another_version_than_was_announced_is_not_begun(
    room: Downloading, hub: FakeHub
) -> None:
    offer = await room.offer()
    hub.files[REPO][FILE] = CONTENT[::-1]
    with pytest.raises(DownloadEnded, match="has another version by now"):
        await room.bring(offer)
    assert f"{FILE}.part" not in room.files()


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ({"announced_extra": 5}, "has 3,072,005 bytes where 3,072,000 were announced"),
        ({"sent_extra": 5}, "sends more than the 3,072,000 bytes it announced"),
        ({"encoding": "gzip"}, "packs the file .gzip. unasked"),
        ({"status": 404}, "has nothing under this name"),
        ({"status": 403}, "only to those who are known there"),
        ({"status": 429}, "wait a few minutes"),
        ({"redirect": "http://192.0.2.1/x"}, "without encryption"),
    ],
)
async def test_a_server_that_lies_or_refuses_is_one_sentence(
    room: Downloading, hub: FakeHub, fault: dict[str, Any], words: str
) -> None:
    for name, value in fault.items():
        setattr(hub.wrong, name, value)
    with pytest.raises(DownloadEnded, match=words):
        await room.bring()
    assert room.offered() == []
    assert room.shown().state is DownloadState.FAILED


async def test_a_piece_from_elsewhere_is_not_taken(room: Downloading, hub: FakeHub) -> None:
    hub.wrong.cuts, hub.wrong.wrong_range = [1_200_000], True
    with pytest.raises(DownloadEnded, match="another piece than the one that was asked for"):
        await room.bring()


async def test_a_server_that_stalls_is_left_and_what_came_is_kept(
    paths: Paths, hub: FakeHub
) -> None:
    hub.files[REPO] = {FILE: CONTENT}
    hub.wrong.stall_after = 1_100_000
    room = Downloading(paths, stall_s=0.2)
    hub.wrong.has_ranges = True
    name = await room.downloads.begin(await room.offer())
    await until(lambda: len(hub.ranges) > 1)
    assert hub.ranges[1] == "bytes=1100000-"
    hub.wrong.stall_after = None
    hub.go_on.set()
    assert (await room.downloads.wait(name, lambda download: None)).read_bytes() == CONTENT


async def test_a_server_that_is_gone_is_one_sentence(room: Downloading) -> None:
    offer = await room.offer()
    gone = Offer(REPO, "Q8_0", (RemoteFile("x.gguf", "http://127.0.0.1:9/x.gguf", 5, ""),))
    with pytest.raises(
        DownloadError, match="There is no connection to 127.0.0.1: check the connection"
    ):
        await room.bring(gone)
    assert offer.num_bytes == len(CONTENT)


async def test_it_can_be_paused_gone_on_with_and_given_up(room: Downloading, hub: FakeHub) -> None:
    hub.wrong.bytes_per_s = 2_000_000
    name = await room.downloads.begin(await room.offer())
    await until(lambda: room.shown().num_bytes >= 2**20)
    assert room.shown().bytes_per_s > 0 or room.shown().seconds_left is None
    await room.downloads.pause(name)
    assert room.shown().state is DownloadState.PAUSED
    size = (room.paths.models / f"{FILE}.part").stat().st_size
    assert size == room.shown().num_bytes >= 2**20
    with pytest.raises(DownloadError, match="was paused"):
        await room.downloads.wait(name, lambda download: None)
    assert room.offered() == []

    # As after a restart of the app.
    again = Downloading(room.paths)
    assert again.shown() == room.shown()
    hub.wrong.bytes_per_s = 0
    await again.downloads.resume(name)
    assert (await again.downloads.wait(name, lambda download: None)).read_bytes() == CONTENT
    assert hub.ranges == ["", f"bytes={size}-"]


async def test_what_is_given_up_leaves_nothing(room: Downloading, hub: FakeHub) -> None:
    hub.wrong.bytes_per_s = 2_000_000
    name = await room.downloads.begin(await room.offer())
    await until(lambda: room.shown().num_bytes > 0)
    await room.downloads.cancel(name)
    assert room.files() == set()
    assert room.downloads.all() == []
    with pytest.raises(UsageError, match="no download of small-Q4_K_M"):
        await room.downloads.resume(name)


async def test_a_model_in_parts_is_there_only_as_a_whole(room: Downloading, hub: FakeHub) -> None:
    hub.files["someone/big"] = {PARTS[1]: CONTENT[::-1], PARTS[0]: CONTENT}
    offer = await room.offer("someone/big")
    assert [file.name for file in offer.files] == PARTS
    hub.wrong.cuts = [len(CONTENT), 1_500_000]
    hub.wrong.status = 200
    name = await room.downloads.begin(offer)
    await until(lambda: len(hub.ranges) > 1)
    assert room.offered() == []
    path = await room.downloads.wait(name, lambda download: None)
    assert (name, path.name) == ("big-Q8_0", PARTS[0])
    assert room.files() == set(PARTS)
    assert (room.paths.models / PARTS[1]).read_bytes() == CONTENT[::-1]
    assert room.offered() == ["big-Q8_0"]


async def test_a_part_that_is_missing_at_the_server_is_not_offered(
    room: Downloading, hub: FakeHub
) -> None:
    hub.files["someone/big"] = {PARTS[0]: CONTENT}
    with pytest.raises(DownloadError, match="has no GGUF file that can be used"):
        await room.offer("someone/big")


async def test_a_disk_without_room_is_said_before(room: Downloading) -> None:
    room.free = 501_000_000
    with pytest.raises(DownloadEnded, match="3.1 MB are still to come, 501 MB are free"):
        await room.bring()
    assert room.files() == set()


async def test_a_disk_that_fills_up_meanwhile_keeps_what_came(
    room: Downloading, hub: FakeHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.models.part_file._LOOK_BYTES", 2**20)
    hub.wrong.bytes_per_s = 10_000_000
    name = await room.downloads.begin(await room.offer())
    await until(lambda: room.shown().num_bytes > 0)
    room.free = 1000
    with pytest.raises(DownloadEnded, match="make room"):
        await room.downloads.wait(name, lambda download: None)
    assert (room.paths.models / f"{FILE}.part").stat().st_size > 0
    room.free = PLENTY
    await room.downloads.resume(name)
    assert (await room.downloads.wait(name, lambda download: None)).read_bytes() == CONTENT


async def test_what_is_here_is_not_downloaded_again(room: Downloading) -> None:
    await room.bring()
    with pytest.raises(UsageError, match="is here already"):
        await room.bring()


async def test_two_at_once_of_one_model_are_one(room: Downloading, hub: FakeHub) -> None:
    offer = await room.offer()
    await asyncio.gather(room.bring(offer), room.bring(offer))
    assert hub.ranges == [""]


async def test_another_process_that_brings_the_same_is_not_disturbed(
    room: Downloading, hub: FakeHub
) -> None:
    hub.wrong.bytes_per_s = 2_000_000
    name = await room.downloads.begin(await room.offer())
    await until(lambda: room.shown().num_bytes > 0)
    other = Downloading(room.paths)
    with pytest.raises(DownloadEnded, match="Another Inglenook is downloading"):
        await other.bring(await room.offer())
    hub.wrong.bytes_per_s = 0
    assert (await room.downloads.wait(name, lambda download: None)).read_bytes() == CONTENT


@pytest.mark.parametrize("name", ["../../x.gguf", "a/../.hidden.gguf", "x\x00.gguf"])
async def test_a_name_from_the_server_cannot_leave_the_folder(room: Downloading, name: str) -> None:
    offer = Offer(REPO, "", (RemoteFile(name, "http://127.0.0.1:9/", 5, ""),))
    if name.startswith(".."):
        # Its folders do not count.
        assert await room.downloads.begin(offer) == "x"
        return
    with pytest.raises(DownloadEnded, match="is not a name for a model file"):
        await room.downloads.begin(offer)


KILLED = """
import asyncio, sys
from app.cli import main
sys.exit(main(["models", "download", "someone/small"]))
"""


def test_a_killed_download_goes_on_where_it_was(home: Path, hub: FakeHub) -> None:
    hub.files[REPO] = {FILE: CONTENT}
    hub.wrong.bytes_per_s = 1_000_000
    environment = {**os.environ, "INGLENOOK_HOME": str(home)}
    command = [sys.executable, "-c", KILLED]
    killed = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE)
    part = home / "models" / f"{FILE}.part"
    deadline = time.monotonic() + 30
    while not (part.exists() and part.stat().st_size >= 2**20):
        assert time.monotonic() < deadline and killed.poll() is None
        time.sleep(0.02)
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    size = part.stat().st_size
    hub.wrong.bytes_per_s = 0
    done = subprocess.run(
        [*command[:2], KILLED.replace('small"', 'small", "--json"')],
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["bytes"] == len(CONTENT)
    assert Path(told["path"]).read_bytes() == CONTENT
    assert hub.ranges == ["", f"bytes={size}-"]
