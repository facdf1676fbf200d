"""The door of the page's sheet of documents."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from app.documents.citation import Citation, Span, Verdict
from app.documents.embedding.embeddings import Embedding
from app.documents.grounds import Grounds
from app.documents.library import Library
from app.documents.png import MAGIC
from app.documents.reading import Reader
from app.web import server
from tests.app.documents.pdf_file import pdf_of
from tests.app.documents.test_grounds import quotation
from tests.fake_embedder import COMMAND, write_fake_model
from tests.fakes_chat import FakeServices
from tests.fakes_documents import FakeReader
from tests.serving import served

PLACE = "/_app/documents"


@pytest.fixture
async def services(tmp_path: Path) -> AsyncIterator[FakeServices]:
    services = FakeServices(tmp_path)
    paths = services.paths
    library = Library(
        paths.documents,
        FakeReader(),
        paths.own,
        received=paths.received,
        embedding=Embedding(
            paths.embedders, lambda: services.settings.embedder_choice, command=COMMAND
        ),
    )
    services.__dict__["documents"] = library
    yield services
    await services.documents.close()
    services.database.close()


@pytest.fixture
async def client(services: FakeServices, tmp_path: Path) -> AsyncIterator[httpx.AsyncClient]:
    async with (
        served(lambda port: server.build(services, port, tmp_path / "cache")) as url,
        httpx.AsyncClient(base_url=url, headers={"Origin": url}, trust_env=False) as client,
    ):
        yield client


@pytest.fixture
def papers(tmp_path: Path) -> Path:
    folder = tmp_path / "papers"
    folder.mkdir()
    (folder / "inn.txt").write_text("The river Inn.\fIt rises in Switzerland.")
    (folder / "bad.txt").write_text("DAMAGED")
    (folder / "locked.txt").write_text("LOCKED:secret\nThe river Danube.")
    return folder


async def act(client: httpx.AsyncClient, action: str, **given: Any) -> Any:
    return (await client.post(f"{PLACE}/{action}", json=given)).json()


async def added(client: httpx.AsyncClient, services: FakeServices, path: Path) -> Any:
    answer = await act(client, "add", path=str(path))
    assert "refused" not in answer
    await services.documents.settled()
    return (await client.get(PLACE)).json()


async def test_places_files_and_counters_that_add_up(
    client: httpx.AsyncClient, services: FakeServices, papers: Path
) -> None:
    here = await added(client, services, papers)
    (place,) = here["places"]
    assert place["total"] == "3 files" and sum(each["num"] for each in place["counts"]) == 3
    files = await act(client, "files")
    rows = {row["name"]: row for row in files["files"]}
    assert rows["inn.txt"]["words"] == "read" and rows["inn.txt"]["pages"] == "2 pages"
    assert rows["bad.txt"]["message"] == "It is damaged: bring it again."
    assert rows["locked.txt"]["needs_password"]
    await act(client, "unlock", path=rows["locked.txt"]["path"], password="secret")
    await services.documents.settled()
    files = await act(client, "files", state="needs password")
    assert files["num_found"] == 0 and files["total"] == 3
    assert "no such state" in (await act(client, "files", state="odd"))["refused"]


async def test_of_very_many_files_the_first_are_listed(
    client: httpx.AsyncClient, services: FakeServices, tmp_path: Path
) -> None:
    folder = tmp_path / "many"
    folder.mkdir()
    for number in range(250):
        (folder / f"{number:03}.txt").write_text(f"Note {number % 3}.")
    await added(client, services, folder)
    files = await act(client, "files")
    assert (files["num_found"], len(files["files"])) == (250, 200)
    # With its ending: the folders of the test may have any number.
    files = await act(client, "files", name="249.txt")
    assert [row["name"] for row in files["files"]] == ["249.txt"]


async def test_what_is_removed_or_read_again_is_asked_first(
    client: httpx.AsyncClient, services: FakeServices, papers: Path
) -> None:
    (place,) = (await added(client, services, papers))["places"]
    asked = await act(client, "again", path=place["path"])
    assert asked["question"].startswith("Read 3 files with 2 pages of papers again?")
    asked = await act(client, "remove", path=place["path"])
    assert "Take papers (3 files) out of the library" in asked["question"]
    assert (await client.get(PLACE)).json()["places"]
    await act(client, "again", path=place["path"], is_sure=True)
    await services.documents.settled()
    gone = await act(client, "remove", path=place["path"], is_sure=True)
    assert gone["places"] == [] and (papers / "inn.txt").exists()


async def test_a_dropped_file_is_kept_found_and_deleted_with_its_copy(
    client: httpx.AsyncClient, services: FakeServices
) -> None:
    assert (
        "no kind of file" in (await act(client, "announce", name="a.exe", num_bytes=5))["refused"]
    )
    for text in ("The river Rhine.", "The river Po."):
        dropped = (
            await client.post(f"{PLACE}/drop", params={"name": "notes.txt"}, content=text)
        ).json()
        await services.documents.settled()
    assert Path(dropped["added"]).parent == services.received.folder
    (place,) = (await client.get(PLACE)).json()["places"]
    assert place["is_received"] and place["total"] == "2 files"
    found = await act(client, "search", text="Po")
    assert [hit["name"] for hit in found["hits"]] == ["notes (2).txt"]
    asked = await act(client, "remove", path=dropped["added"])
    assert "Delete Inglenook's own copy of notes (2).txt (1 file)" in asked["question"]
    await act(client, "remove", path=dropped["added"], is_sure=True)
    assert (await act(client, "search", text="Po"))["hits"] == []
    assert [each.name for each in services.received.folder.iterdir()] == ["notes.txt"]
    await act(client, "remove", path=place["path"], is_sure=True)
    assert (await client.get(PLACE)).json()["places"] == []
    assert list(services.received.folder.iterdir()) == []


async def test_nothing_outside_its_own_folder_is_deleted(
    client: httpx.AsyncClient, services: FakeServices
) -> None:
    dropped = {"params": {"name": "notes.txt"}, "content": "The river Po."}
    await client.post(f"{PLACE}/drop", **dropped)
    await services.documents.settled()
    folder = services.received.folder
    outside = folder.parent / "outside.txt"
    outside.write_text("mine")
    for path in (f"{folder}/../outside.txt", f"{folder}/x/../../outside.txt", f"{folder}/.."):
        answer = await act(client, "remove", path=path, is_sure=True)
        assert "refused" in answer and outside.read_text() == "mine"
    assert (folder / "notes.txt").exists()


async def test_collections_are_made_filled_and_emptied(
    client: httpx.AsyncClient, services: FakeServices, papers: Path
) -> None:
    (place,) = (await added(client, services, papers))["places"]
    here = await act(client, "collect", path=place["path"], name="  my   work ")
    assert [each["name"] for each in here["collections"]] == ["my work"]
    found = await act(client, "search", text="Switzerland", collection="my work")
    (hit,) = found["hits"]
    assert hit["where"] == "page 2" and hit["stretch"][0] == 2
    assert (
        "60 letters" in (await act(client, "collect", path=place["path"], name="x" * 61))["refused"]
    )
    here = await act(client, "take_out", path=place["path"], name="my work")
    assert here["collections"] == []


@pytest.mark.parametrize(
    ("action", "path", "words"),
    [
        ("add", "papers", "is not a whole path"),
        ("add", "/nowhere/at/all", "no file and no folder"),
        ("add", "", "There is nothing to do it with"),
        ("add", "~nobody-of-this-name/x", "The folder of ~nobody-of-this-name is not known"),
        ("add", "/nowhere/a\0b", "is no name and no path"),
        ("add", "/" + "x" * 300, "no file and no folder"),
        ("add", "file:///nowhere/a%20b", "/nowhere/a b"),
        ("add", "file:///nowhere/a%00b", "is no name and no path"),
        ("add", "file://elsewhere/a", "on another machine (elsewhere)"),
        ("add", "file://[/a", "cannot be read"),
        ("collect", "/nowhere/a\0b", "is no name and no path"),
        ("remove", "/nowhere/a\0b", "is no name and no path"),
        ("unlock", "/nowhere///d800", "is no name and no path"),
    ],
)
async def test_a_path_that_cannot_be_meant_is_a_sentence(
    client: httpx.AsyncClient, action: str, path: str, words: str
) -> None:
    given = {"path": path, "name": "a", "password": "a", "is_sure": True}
    assert words in (await act(client, action, **given))["refused"]


@pytest.mark.parametrize(
    ("action", "body"),
    [
        ("files", r'{"name": "\ud800"}'),
        ("files", r'{"\ud800": ""}'),
        ("page", '{"document": 1, "number": 99999999999999999999999}'),
        ("page", '{"document": 12345678901234567890123, "number": 1}'),
        ("page", '{"document": 1, "number": 1, "stretch": [-99999999999999999999, 1, 1, 1]}'),
        ("page", r'{"answer": "\ud800", "quotation": 1, "citation": 1}'),
        ("picture", r'{"document": 1, "number": 1, "password": "\ud800"}'),
        ("add", r'{"path": "/nowhere/\ud800"}'),
    ],
)
async def test_what_no_table_holds_is_refused_at_the_door(
    client: httpx.AsyncClient, action: str, body: str
) -> None:
    # Not as the client would write it: a browser sends halves of pairs as they are.
    reply = await client.post(f"{PLACE}/{action}", content=body)
    assert reply.status_code == 400 and reply.text.endswith("nothing here has one.")


async def test_what_cannot_be_done_is_said_before_it_is_asked_whether_it_shall_be(
    client: httpx.AsyncClient, services: FakeServices, papers: Path
) -> None:
    (place,) = (await added(client, services, papers))["places"]
    inside, nowhere = str(papers / "inn.txt"), str(papers / "nowhere.txt")
    received = str(services.received.folder / "never.txt")
    assert "as a whole" in (await act(client, "remove", path=inside))["refused"]
    for action, path in (
        ("remove", "/nowhere"),
        ("remove", received),
        ("again", nowhere),
        ("collect", nowhere),
    ):
        for is_sure in (False, True) if action == "again" else (False,):
            asked = await act(client, action, path=path, name="work", is_sure=is_sure)
            assert "in the library" in asked["refused"] and "`" not in asked["refused"]
    assert (await act(client, "collect", path=inside, name="work"))["collections"]
    assert "question" in await act(client, "again", path=inside)
    assert "question" in await act(client, "remove", path=place["path"])


async def test_a_file_is_added_by_its_address(
    client: httpx.AsyncClient, services: FakeServices, papers: Path
) -> None:
    spaced = papers.rename(papers.with_name("my papers"))
    answer = await act(client, "add", path=spaced.as_uri())
    assert [place["name"] for place in answer["places"]] == ["my papers"]
    await services.documents.settled()


async def test_a_page_of_what_an_answer_stands_on_outlives_its_file(
    client: httpx.AsyncClient, services: FakeServices, papers: Path
) -> None:
    await added(client, services, papers)
    (hit,) = (await services.documents.find("Switzerland")).hits
    quoted = quotation(
        sha256=hit.sha256, paths=hit.paths, page=2, page_to=2, start=0, end=24, text=hit.text
    )
    made = await services.conversations.create()
    await services.tell(
        made.conversation_id,
        ["Where?", "There."],
        grounds=Grounds(is_found=True, quotations=(quoted,)),
    )
    answer = (await services.conversations.messages(made.conversation_id))[-1]
    asked = {"answer": answer.message_id, "quotation": 1, "citation": 0}
    page = await act(client, "page", **asked)
    assert page["text"][page["start"] : page["end"]] == "It rises in Switzerland."
    assert page["num_pages"] == 2 and page["notices"] == []
    (papers / "inn.txt").unlink()
    assert "cannot be opened now" in (await act(client, "page", **asked))["notices"][0]
    await services.documents.look()
    page = await act(client, "page", **asked)
    assert page["document"] is None and page["text"] == "It rises in Switzerland."
    assert "no longer in the library" in page["notices"][0]
    assert "no such passage" in (await act(client, "page", **asked | {"quotation": 2}))["refused"]
    await services.conversations.delete(made.conversation_id)
    assert "gone" in (await act(client, "page", **asked))["refused"]


async def test_a_chip_opens_the_page_on_which_its_quote_stands(
    client: httpx.AsyncClient, services: FakeServices, papers: Path
) -> None:
    await added(client, services, papers)
    (hit,) = (await services.documents.find("Switzerland")).hits
    text = "river Inn.\nIt rises in Switzerland."
    quoted = quotation(
        sha256=hit.sha256, paths=hit.paths, page=1, page_to=2, start=4, end=24, text=text
    )
    cited = Citation(
        number=1,
        sentence=Span(0, 6),
        mark=Span(5, 5),
        verdict=Verdict.ADDED,
        written=None,
        quote=Span(text.index("Switzerland"), len(text) - 1),
    )
    grounds = Grounds(is_found=True, quotations=(quoted,), citations=(cited,))
    made = await services.conversations.create()
    await services.tell(made.conversation_id, ["Where?", "There."], grounds=grounds)
    answer = (await services.conversations.messages(made.conversation_id))[-1]
    asked = {"answer": answer.message_id, "quotation": 1}
    page = await act(client, "page", **asked, citation=1)
    assert page["number"] == 2 and page["stretch"][:2] == [2, 2]
    assert page["text"][page["start"] : page["end"]] == "Switzerland"
    # Of the whole passage its beginning is shown.
    page = await act(client, "page", **asked, citation=0)
    assert page["number"] == 1 and page["text"][page["start"] : page["end"]] == "river Inn."


async def test_a_page_of_a_pdf_comes_as_a_picture_with_its_boxes(
    client: httpx.AsyncClient, services: FakeServices, tmp_path: Path
) -> None:
    await services.documents.close()
    services.__dict__["documents"] = Library(services.paths.documents, Reader())
    path = tmp_path / "lease.pdf"
    path.write_bytes(pdf_of([["Cover"], ["The lease ends in May."]]))
    await added(client, services, path)
    (hit,) = (await act(client, "search", text="lease ends"))["hits"]
    asked = {"document": hit["document"], "number": 2, "stretch": hit["stretch"]}
    assert (await act(client, "page", **asked))["can_be_drawn"]
    reply = await client.post(f"{PLACE}/picture", json=asked)
    assert reply.headers["content-type"] == "image/png" and reply.content.startswith(MAGIC)
    assert len(json.loads(reply.headers["inglenook-boxes"])) == 1
    path.write_bytes(pdf_of([["Another file"]]))
    refused = await act(client, "picture", **asked)
    assert "lease.pdf has changed since it was read" in refused["refused"]


async def test_only_the_page_itself_may_act(client: httpx.AsyncClient, papers: Path) -> None:
    async with httpx.AsyncClient(trust_env=False) as stranger:
        for action in ("add", "files", "search", "page", "picture", "remove", "drop?name=a.txt"):
            url = f"{client.base_url}{PLACE}/{action}"
            assert (await stranger.post(url, json={"path": str(papers)})).status_code == 403
            headers = {"Origin": "http://evil.example"}
            reply = await stranger.post(url, json={"path": str(papers)}, headers=headers)
            assert reply.status_code == 403
    assert (await client.post(f"{PLACE}/odd", json={})).status_code == 404
    assert (await client.post(f"{PLACE}/files", content=b"[")).status_code == 400
    assert (await client.post(f"{PLACE}/files", json=[])).status_code == 400


async def test_without_ocr_nothing_waits_for_it(
    client: httpx.AsyncClient,
    services: FakeServices,
    papers: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("app.web.documents.is_installed", lambda: False)
    await added(client, services, papers)
    # Of a picture: a page of which OCR could read what stands on it.
    await services.documents._store.run(
        lambda tables: tables.execute("update document set num_unread_pages = 1")
    )
    for is_sure in (False, True):
        said = await act(client, "pictures", path=str(papers), is_sure=is_sure)
        assert "There is no OCR here" in said["refused"] and "inglenook[ocr]" in said["refused"]
    files = await act(client, "files")
    assert "waiting" not in [row["state"] for row in files["files"]]


async def test_an_embedding_model_is_chosen_after_it_is_said_what_it_costs(
    client: httpx.AsyncClient, services: FakeServices, papers: Path, tmp_path: Path
) -> None:
    (papers / "inn.txt").write_text("The river is in the mountains, and it is on the border. " * 9)
    await added(client, services, papers)
    here = (await client.get(PLACE)).json()
    assert here["meaning"]["chosen"] == "none" and "Words alone" in here["meaning"]["words"]
    model = str(write_fake_model(tmp_path / "tiny.json"))
    said = await act(client, "embedder", path=model)
    assert "1 passage" in said["question"] and services.settings.embedder == "none"
    here = await act(client, "embedder", path=model, is_sure=True)
    assert here["meaning"]["chosen"] == services.settings.embedder == model
    await services.documents.embeddings.background.settled()
    here = (await client.get(PLACE)).json()
    assert "1 of 1 passage" in here["meaning"]["words"]
    assert "forget" in (await act(client, "embedder", path="none"))["question"]


async def test_an_embedding_model_that_is_none_is_refused(
    client: httpx.AsyncClient, services: FakeServices, tmp_path: Path
) -> None:
    model = write_fake_model(tmp_path / "chat.json", refused="chat.json is no embedding model.")
    assert "no embedding model" in (await act(client, "embedder", path=str(model)))["refused"]
    assert "whole path" in (await act(client, "embedder", path="chat.json"))["refused"]
    assert services.settings.embedder == "none"
