"""The door of the page's sheet of models."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from app.models.library import Listed
from app.models.way import DownloadState
from app.web import server
from engine.adapter import Adapter
from tests.engine.backends.llama_cpp.tiny_adapter import write_tiny_adapter
from tests.engine.backends.llama_cpp.tiny_model import write_tiny_model
from tests.fakes_chat import FakeServices
from tests.fakes_hub import FakeHub
from tests.serving import served
from tests.visitor import eventually


@pytest.fixture
def services(tmp_path: Path) -> Iterator[FakeServices]:
    services = FakeServices(tmp_path)
    yield services
    services.database.close()


@pytest.fixture
async def client(services: FakeServices, tmp_path: Path) -> AsyncIterator[httpx.AsyncClient]:
    async with (
        served(lambda port: server.build(services, port, tmp_path / "cache")) as url,
        httpx.AsyncClient(base_url=url, headers={"Origin": url}, trust_env=False) as client,
    ):
        yield client


async def act(client: httpx.AsyncClient, action: str, **given: Any) -> Any:
    # As a page sends it, which may hold what is no text.
    content = json.dumps(given).encode()
    return (await client.post(f"/_app/models/{action}", content=content)).json()


async def test_what_is_here_what_can_come_and_who_was_asked(
    client: httpx.AsyncClient, services: FakeServices
) -> None:
    write_tiny_model(services.paths.models / "tiny.gguf")
    here = (await client.get("/_app/models")).json()
    rows = {row["name"]: row for row in here["models"]}
    assert rows["tiny"]["verdict"] == "fits well" and rows["tiny"]["level"] == "fits"
    available = (await client.get("/_app/models/available")).json()
    assert all(row["sizes"] for row in available)
    assert (await client.get("/_app/models/connections")).json() == []
    assert (await client.get("/_app/models/downloads")).json() == []


async def test_only_the_page_itself_may_act(
    client: httpx.AsyncClient, services: FakeServices
) -> None:
    path = write_tiny_model(services.paths.cache / "mine.gguf")
    url = f"{client.base_url}/_app/models/add"
    async with httpx.AsyncClient(trust_env=False) as stranger:
        assert (await stranger.post(url, json={"path": str(path)})).status_code == 403
        headers = {"Origin": "http://evil.example"}
        assert (await stranger.post(url, json={}, headers=headers)).status_code == 403
    assert services.library.shelf.added() == []
    await act(client, "add", path=str(path))
    assert services.library.shelf.added() == [path]


@pytest.mark.parametrize(
    ("action", "given", "words"),
    [
        ("add", {"path": "/nowhere/m.gguf"}, "There is no model file at /nowhere/m.gguf"),
        ("add", {"path": 7}, "give a name, a text or a path"),
        ("add", {"path": "x" * 100_000}, "is no name and no path"),
        ("add", {"path": "/" + "x" * 300 + ".gguf"}, "This could not be done: "),
        ("add", {"path": "/nowhere/a\0b.gguf"}, "is no name and no path"),
        ("add", {"path": "file:///nowhere/a%20b.gguf"}, "no model file at /nowhere/a b.gguf"),
        ("add", {"path": "file://elsewhere/m.gguf"}, "on another machine (elsewhere)"),
        ("use", {"name": "x" * 300}, "This could not be done: "),
        ("use", {"name": "nobody"}, "There is no model 'nobody' here"),
        ("pause", {"name": "nobody"}, "There is no download of nobody"),
        ("download", {"name": "gpt-9"}, "The catalogue has no 'gpt-9'"),
        ("search", {"text": " "}, "give a name, a text or a path"),
        ("own", {"name": "starter", "context_tokens": "x"}, "are not numbers and names"),
        ("own", {"name": "starter", "context_tokens": 3}, "context_tokens must be at least 256"),
        ("announce", {"name": "m.gguf", "num_bytes": "7", "beginning": "GGUF"}, "choose the file"),
        (
            "announce",
            {"name": "m.gguf", "num_bytes": 7, "beginning": "%PDF"},
            "is not a GGUF model",
        ),
        ("announce", {"name": "m.pdf", "num_bytes": 7, "beginning": "%PDF"}, "is no GGUF file"),
        ("announce", {"name": "m.gguf", "num_bytes": 10**18, "beginning": "GGUF"}, "make room"),
        ("adapters", {"adapters": "pirate"}, "open the sheet anew"),
        ("adapters", {"adapters": [7]}, "open the sheet anew"),
        ("adapters", {"adapters": [{"path": "/a", "scale": None}]}, "a scale between -4 and 4"),
        ("adapters", {"adapters": [{"path": "/a", "scale": 9}]}, "between -4 and 4, got 9"),
        ("remove", {"name": "starter", "is_sure": True}, "comes with the app"),
    ],
)
async def test_what_is_refused_is_a_sentence(
    client: httpx.AsyncClient, action: str, given: dict[str, Any], words: str
) -> None:
    assert words in (await act(client, action, **given))["refused"]


async def test_what_is_no_request_is_refused(client: httpx.AsyncClient) -> None:
    assert (await client.post("/_app/models/fly", json={})).status_code == 404
    assert (await client.post("/_app/models/add", content=b"{")).status_code == 400
    assert (await client.post("/_app/models/add", json=[1])).status_code == 400


async def test_the_model_in_use_offers_the_adapters_of_its_kind(
    client: httpx.AsyncClient, services: FakeServices
) -> None:
    pirate = write_tiny_adapter(services.paths.models / "pirate.gguf")
    write_tiny_adapter(services.paths.models / "other.gguf", architecture="gemma3")
    write_tiny_model(services.paths.models / "tiny.gguf")

    async def rows() -> dict[str, Any]:
        here = (await client.get("/_app/models")).json()
        assert [row["name"] for row in here["models"]] == ["starter", "tiny", "other", "pirate"]
        return {row["name"]: row for row in here["models"]}

    before = await rows()
    assert before["pirate"]["is_adapter"] and "which changes a model" in before["pirate"]["note"]
    (offered,) = before["starter"]["adapters"]
    assert (offered["name"], offered["is_used"], offered["scale"]) == ("pirate", False, 1.0)
    assert before["tiny"]["adapters"] == []
    assert await act(client, "adapters", adapters=[{"path": str(pirate), "scale": 0.5}]) == {
        "notice": ""
    }
    await act(client, "own", name="starter", threads=2)
    assert services.adapters == (Adapter(pirate, 0.5),)
    pirate.unlink()
    here = (await client.get("/_app/models")).json()
    (used,) = here["models"][0]["adapters"]
    assert (used["name"], used["is_used"], used["scale"]) == ("pirate", True, 0.5)
    await act(client, "adapters", adapters=[])
    assert services.adapters == ()


async def test_removing_asks_first(client: httpx.AsyncClient, services: FakeServices) -> None:
    path = write_tiny_model(services.paths.cache / "mine.gguf")
    await act(client, "add", path=str(path))
    asked = await act(client, "remove", name="mine")
    assert asked["question"].startswith("Forget where mine is?")
    assert services.library.shelf.added() == [path]
    await act(client, "remove", name="mine", is_sure=True)
    assert services.library.shelf.added() == [] and path.exists()


async def test_who_was_asked_about_one_model_does_not_remove_another(
    client: httpx.AsyncClient, services: FakeServices
) -> None:
    for folder in ("one", "two"):
        (services.paths.cache / folder).mkdir(parents=True)
        write_tiny_model(services.paths.cache / folder / "mine.gguf")
        await act(client, "add", path=str(services.paths.cache / folder / "mine.gguf"))
    one, two = services.library.shelf.added()
    asked = await act(client, "remove", name="mine")
    assert asked["path"] == str(one)
    services.library.shelf.forget(one)
    gone = await act(client, "remove", name="mine", path=asked["path"], is_sure=True)
    assert "is another model by now" in gone["refused"]
    assert services.library.shelf.added() == [two]


async def test_a_search_and_its_sizes(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    with FakeHub().serving() as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        hub.files["some/one"] = {"one-Q4_K_M.gguf": b"1234", "one-Q8_0.gguf": b"12345678"}
        (found,) = await act(client, "search", text="one")
        assert found["name"] == "some/one" and "apache-2.0" in found["facts"]
        sizes = await act(client, "offers", name="some/one")
        assert [size["quantization"] for size in sizes] == ["Q4_K_M", "Q8_0"]
        assert sizes[0]["verdict"] == "fits well"


async def test_a_dropped_file_goes_to_the_models_folder_and_can_be_removed_again(
    client: httpx.AsyncClient, services: FakeServices
) -> None:
    content = write_tiny_model(services.paths.cache / "mine.gguf").read_bytes()
    url = "/_app/models/drop?name=mine.gguf"
    here = (await client.post(url, content=content)).json()
    (row,) = [row for row in here["models"] if row["name"] == "mine"]
    assert "copied" in row["facts"] and row["can_be_removed"]
    assert (services.paths.models / "mine.gguf").read_bytes() == content
    refused = (await client.post(url, content=content)).json()["refused"]
    assert refused == "mine.gguf is in the models folder already: remove it first."
    await act(client, "remove", name="mine", is_sure=True)
    assert list(services.paths.models.iterdir()) == []


async def test_only_the_page_itself_may_drop_a_file(
    client: httpx.AsyncClient, services: FakeServices
) -> None:
    content = write_tiny_model(services.paths.cache / "mine.gguf").read_bytes()
    url = f"{client.base_url}/_app/models/drop?name=mine.gguf"
    async with httpx.AsyncClient(trust_env=False) as stranger:
        for headers in ({}, {"Origin": "http://evil.example"}):
            assert (await stranger.post(url, content=content, headers=headers)).status_code == 403

    async def unmeasured() -> AsyncIterator[bytes]:
        yield content

    assert (await client.post(url, content=unmeasured())).status_code == 411
    assert list(services.paths.models.iterdir()) == []


async def test_a_connection_that_is_closed_in_the_middle_leaves_nothing(
    client: httpx.AsyncClient, services: FakeServices
) -> None:
    content = write_tiny_model(services.paths.cache / "mine.gguf").read_bytes()
    host = client.base_url.netloc.decode()
    reader, writer = await asyncio.open_connection(client.base_url.host, client.base_url.port)
    head = (
        f"POST /_app/models/drop?name=mine.gguf HTTP/1.1\r\nHost: {host}\r\n"
        f"Origin: http://{host}\r\nContent-Length: {100_000_000}\r\n\r\n"
    )
    writer.write(head.encode() + content + bytes(9_000_000))
    await writer.drain()

    def come() -> list[int]:
        return [each.stat().st_size for each in services.paths.models.rglob("*.gguf")]

    async with asyncio.timeout(10):
        while not come() or not come()[0]:
            await asyncio.sleep(0.01)
        writer.close()
        while list(services.paths.models.iterdir()):
            await asyncio.sleep(0.01)
    # It can come again.
    url = "/_app/models/drop?name=mine.gguf"
    assert "refused" not in (await client.post(url, content=content)).json()


async def test_a_download_that_ends_while_the_models_are_looked_at_is_still_named(
    client: httpx.AsyncClient, services: FakeServices, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page would else not ask again, and call it a file that somebody put there."""
    library = services.library
    seen = library.here

    async def looked_at_before_the_end() -> list[Listed]:
        listed = await seen()
        hub.wrong.bytes_per_s = 0.0

        async def is_done() -> bool:
            return all(each.state is DownloadState.DONE for each in library.downloads.all())

        await eventually(is_done, "the end of the download")
        return listed

    with FakeHub().serving() as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        hub.files["some/one"] = {"one-Q4_K_M.gguf": bytes(50_000)}
        hub.wrong.bytes_per_s = 50_000
        await library.download("some/one")
        monkeypatch.setattr(library, "here", looked_at_before_the_end)
        here = (await client.get("/_app/models")).json()
    assert [each["name"] for each in here["downloads"]] == ["one-Q4_K_M"]
    assert (await client.get("/_app/models/downloads")).json() == []
