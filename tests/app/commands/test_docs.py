"""`docs`: a person's own files from a terminal."""

import asyncio
import os
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from app.commands import docs as command
from app.commands.carry_out import COMMANDS, carry_out
from app.commands.options import Options
from app.documents.library import Library
from engine.errors import DiskFull, UsageError
from tests.app.commands.console import Recorder
from tests.fakes_documents import FakeReader
from tests.fakes_model import FakeModelServices
from tests.waiting import until


@pytest.fixture
def reader(services: FakeModelServices) -> FakeReader:
    """Who reads for the library of these services."""
    reader = FakeReader()
    services.__dict__["documents"] = Library(services.paths.documents, reader)
    return reader


@pytest.fixture
def folder(home: Path, reader: FakeReader) -> Path:
    made = home / "papers"
    (made / "deep").mkdir(parents=True)
    (made / "a.txt").write_text("The river Inn rises in Switzerland.")
    (made / "deep/b.txt").write_text("# Rivers\nThe river Rhine.\fThe end of it.\f ")
    (made / "bad.txt").write_text("DAMAGED")
    (made / "locked.txt").write_text("LOCKED:secret\nThe river Danube.")
    return made


async def docs(services: FakeModelServices, action: str, **options: Any) -> Recorder:
    console = Recorder()
    await carry_out(services, Options(command="docs", action=action, **options), console)
    return console


async def test_adding_reads_everything_and_says_what_became_of_it(
    services: FakeModelServices, folder: Path
) -> None:
    console = await docs(services, "add", files=(str(folder),))
    assert console.out.splitlines() == [
        f"{folder / 'bad.txt'}  damaged: It is damaged: bring it again.",
        f"{folder / 'deep/b.txt'}  indexed: 1 of 3 pages has no text.",
        f"{folder / 'locked.txt'}  needs password: It needs its password.",
        "4 files: 1 damaged, 2 indexed, 1 needs password.",
    ]


async def test_the_status_has_every_file_and_counts_that_add_up(
    services: FakeModelServices, folder: Path
) -> None:
    added = (await docs(services, "add", files=(str(folder),), json=True)).json()
    said = (await docs(services, "status", json=True)).json()
    assert added == said
    assert said["files"][2] == {
        "path": str(folder / "deep/b.txt"),
        "status": "indexed",
        "pages": 3,
        "pages_by_ocr": 0,
        "pages_for_ocr": 0,
        "message": "1 of 3 pages has no text.",
    }
    assert sum(said["counts"].values()) == len(said["files"]) == 4
    assert (said["counts"]["indexed"], said["counts"]["offline"]) == (2, 0)
    deep = (str(folder / "deep"),)
    part = (await docs(services, "status", files=deep, json=True)).json()
    assert [Path(file["path"]).name for file in part["files"]] == ["b.txt"]


async def test_a_search_names_file_page_and_words(
    services: FakeModelServices, folder: Path
) -> None:
    await docs(services, "add", files=(str(folder),))
    console = await docs(services, "search", text="Where does the Inn rise?")
    assert console.out.splitlines()[:2] == [
        f"{folder / 'a.txt'}, page 1",
        "    The river Inn rises in Switzerland.",
    ]
    found = (await docs(services, "search", text="Rhine", json=True)).json()
    (hit,) = found["hits"]
    assert (hit["path"], hit["page"], hit["text"]) == (
        str(folder / "deep/b.txt"),
        1,
        "# Rivers\nThe river Rhine.",
    )
    assert hit["score"] > 0 and hit["heading"] == ["Rivers"] and found["is_enough"]
    assert (await docs(services, "search", text="zeugma")).notes == [
        "Nothing was found for 'zeugma'."
    ]
    weak = await docs(services, "search", text="Which river has painters, boats and candles?")
    assert weak.notes == ["None of these has much of what was asked for."]


async def test_a_password_opens_what_needs_it(
    services: FakeModelServices, folder: Path, reader: FakeReader
) -> None:
    place = (str(folder / "locked.txt"),)
    await docs(services, "add", files=place)
    console = await docs(services, "add", files=place, password="secret")
    assert console.out == "1 file: 1 indexed.\n"
    assert reader.passwords == ["", "secret"]


async def test_collections_are_made_listed_and_asked(
    services: FakeModelServices, folder: Path
) -> None:
    deep = (str(folder / "deep"),)
    await docs(services, "add", files=deep, collection="rivers")
    await docs(services, "add", files=(str(folder),))
    listed = (await docs(services, "list", json=True)).json()
    assert listed["collections"] == {"rivers": [str(folder / "deep")]}
    assert [(place["path"], place["files"]) for place in listed["places"]] == [(str(folder), 4)]
    found = (await docs(services, "search", text="river", collection="rivers", json=True)).json()
    assert {Path(hit["path"]).name for hit in found["hits"]} == {"b.txt"}
    with pytest.raises(UsageError, match="no collection 'lakes'"):
        await docs(services, "search", text="river", collection="lakes")
    await docs(services, "remove", files=deep, collection="rivers")
    assert (await docs(services, "list", json=True)).json()["collections"] == {}
    assert (await docs(services, "list")).out == f"{folder}  4 files\n"


async def test_each_place_is_listed_with_the_files_that_are_its_own(
    services: FakeModelServices, folder: Path
) -> None:
    hidden = folder / ".drafts"
    hidden.mkdir()
    (hidden / "c.txt").write_text("The river Po.")
    await docs(services, "add", files=(str(folder), str(hidden)))
    (there, drafts) = (await docs(services, "list", json=True)).json()["places"]
    assert (there["path"], there["files"], there["counts"]["indexed"]) == (str(folder), 4, 2)
    assert (drafts["path"], drafts["files"], drafts["counts"]["damaged"]) == (str(hidden), 1, 0)


async def test_removing_leaves_the_files(services: FakeModelServices, folder: Path) -> None:
    await docs(services, "add", files=(str(folder),))
    assert (await docs(services, "remove", files=(str(folder),), json=True)).json() == {
        "removed": 4
    }
    assert (folder / "a.txt").exists()
    assert (await docs(services, "search", text="river", json=True)).json()["hits"] == []
    assert "There are no files yet" in (await docs(services, "list")).notes[0]


async def test_progress_is_told_beside_the_result(
    services: FakeModelServices,
    folder: Path,
    reader: FakeReader,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(command, "PROGRESS_S", 0.02)
    reader.gate.clear()
    adding = asyncio.create_task(docs(services, "add", files=(str(folder),), json=True))
    await asyncio.sleep(0.2)
    reader.gate.set()
    console = await adding
    assert re.fullmatch(r"\d files? to read, now (a|b|locked)\.txt", console.progressed[0])
    assert len(console.json()["files"]) == 4


async def test_what_is_left_out_of_a_folder_is_said(
    services: FakeModelServices, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shut = folder / "shut"
    shut.mkdir()
    scandir = os.scandir

    def refuse(path: str) -> Any:
        if str(path) == str(shut):
            raise PermissionError(13, "Permission denied")
        return scandir(path)

    monkeypatch.setattr("app.documents.scan.os.scandir", refuse)
    (note,) = (await docs(services, "add", files=(str(folder),))).notes
    assert note.startswith(f"{shut} could not be looked into: give your user the right")
    await services.documents.close()
    paths = services.paths
    services.__dict__["documents"] = Library(paths.documents, FakeReader(), (shut, folder / "deep"))
    (note,) = (await docs(services, "add", files=(str(folder),))).notes
    assert note == f"Left out is what belongs to Inglenook itself: {folder / 'deep'}, {shut}."


async def test_what_ends_the_reading_ends_the_command(
    services: FakeModelServices, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise DiskFull("There is no room left.")

    monkeypatch.setattr("app.documents.intake.put_document", full)
    with pytest.raises(DiskFull):
        await asyncio.wait_for(docs(services, "add", files=(str(folder),)), 10)
    monkeypatch.undo()
    console = await docs(services, "add", files=(str(folder),))
    assert "2 indexed" in console.out


async def test_broken_off_it_goes_on_with_the_next_command(
    services: FakeModelServices, folder: Path, reader: FakeReader
) -> None:
    reader.gate.clear()
    adding = asyncio.create_task(docs(services, "add", files=(str(folder),)))
    while not reader.read_paths:
        await asyncio.sleep(0.01)
    adding.cancel()
    await asyncio.wait([adding])
    await services.documents.close()
    services.__dict__["documents"] = Library(services.paths.documents, FakeReader())
    assert "2 indexed" in (await docs(services, "add", files=(str(folder),))).out


async def test_of_several_places_what_can_be_taken_in_is(
    services: FakeModelServices, folder: Path
) -> None:
    wrong, deep = folder / "missing", folder / "deep"
    console = Recorder()
    options = Options(
        command="docs", action="add", files=(str(wrong), str(deep), str(folder / "a.txt"))
    )
    with pytest.raises(UsageError) as caught:
        await carry_out(services, options, console)
    assert str(caught.value) == (
        f"Only {deep}, {folder / 'a.txt'} were taken in. There is no file and no folder at {wrong},"
        " or it cannot be opened."
    )
    assert "2 files: 2 indexed." in console.out
    with pytest.raises(UsageError, match="^There is no file"):
        await docs(services, "add", files=(str(wrong),))


async def test_the_status_of_a_place_that_is_not_in_the_library_is_a_sentence(
    services: FakeModelServices, folder: Path
) -> None:
    (folder / "empty").mkdir()
    await docs(services, "add", files=(str(folder / "empty"), str(folder / "deep")))
    for place in ("missing", "deep/missing.txt", "a.txt"):
        with pytest.raises(UsageError, match="^Nothing at .* is in the library"):
            await docs(services, "status", files=(str(folder / place),))
    assert (await docs(services, "status", files=(str(folder / "empty"),))).out == "0 files.\n"
    assert (await docs(services, "status", files=(str(folder),))).out.endswith("1 indexed.\n")


async def test_a_place_that_is_missing_is_offline_though_nobody_follows_it(
    services: FakeModelServices, folder: Path
) -> None:
    await docs(services, "add", files=(str(folder),))
    gone = folder.rename(folder.with_name("elsewhere"))
    assert (await docs(services, "status", json=True)).json()["counts"]["offline"] == 4
    assert (await docs(services, "list")).out == f"{folder}  4 files (not there now)\n"
    (place,) = (await docs(services, "list", json=True)).json()["places"]
    assert (place["is_there"], place["counts"]["offline"]) == (False, 4)
    for missing in (folder, folder / "a.txt"):
        with pytest.raises(UsageError, match="not there now: what was read of it is kept"):
            await docs(services, "add", files=(str(missing),))
    # As the place where a disk is not plugged in.
    folder.mkdir()
    assert (await docs(services, "status", json=True)).json()["counts"]["offline"] == 4
    folder.rmdir()
    gone.rename(folder)
    assert (await docs(services, "status", json=True)).json()["counts"]["offline"] == 0


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such names")
async def test_a_name_cannot_pass_for_something_else(
    services: FakeModelServices, folder: Path
) -> None:
    odd = folder / "odd"
    odd.mkdir()
    for name in ("fake\n0 files.txt", "fake \u202etxt.exe"):
        (odd / name).write_text(f"The river Inn of {len(name)}.\f ")
    said = await docs(services, "add", files=(str(odd),))
    said.out += (await docs(services, "search", text="Inn")).out
    said.out += (await docs(services, "list")).out
    with pytest.raises(UsageError) as caught:
        await docs(services, "add", files=(str(odd / "missing\n\u202e"),))
    shown = said.out + str(caught.value)
    assert "fake\ufffd0 files.txt" in shown and "\u202e" not in shown
    assert not [line for line in said.out.splitlines() if line.startswith("0 files")]
    assert "\n" not in str(caught.value)


async def test_what_cannot_be_watched_is_said_with_the_status(
    services: FakeModelServices, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(*_: Any, **__: Any) -> AsyncIterator[Any]:
        raise OSError("OS file watch limit reached")
        yield

    monkeypatch.setattr("app.documents.watch.awatch", refuse)
    await docs(services, "add", files=(str(folder),))
    assert (await docs(services, "status")).notes == []
    services.documents.follow()
    await until(lambda: services.documents.notice)
    (note,) = (await docs(services, "status")).notes
    assert "are not noticed at once (OS file watch limit reached)" in note


def test_without_a_running_app_the_home_must_be_owned() -> None:
    assert COMMANDS["docs"].must_own(Options(command="docs", action="search"))


async def test_real_files_are_read_by_the_real_process(
    services: FakeModelServices, home: Path
) -> None:
    (home / "papers").mkdir()
    (home / "papers/note.md").write_text("# Rivers\n\nThe Inn rises in Switzerland.\n")
    (home / "papers/page.html").write_text("<h1>Lakes</h1><p>Constance is a lake.</p>")
    console = await docs(services, "add", files=(str(home / "papers"),))
    # Where an embedding model is installed, the vectors are told as well.
    assert console.out.startswith("2 files: 2 indexed.\n")
    found = (await docs(services, "search", text="Where does the Inn rise?", json=True)).json()
    assert Path(found["hits"][0]["path"]).name == "note.md"
    assert found["hits"][0]["heading"] == ["Rivers"]
