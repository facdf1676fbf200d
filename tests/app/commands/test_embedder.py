"""`docs embedder`: which model finds by meaning."""

from pathlib import Path
from typing import Any

import pytest

from app.commands import embedder as command
from app.commands.carry_out import carry_out
from app.commands.options import Options
from app.documents.embedding.choice import NONE, EmbedderChoice
from app.documents.embedding.embeddings import Embedding
from app.documents.library import Library
from app.settings import load_settings
from engine.errors import ModelUnsupported
from tests.app.commands.console import Recorder
from tests.fake_embedder import COMMAND, WIDTH, write_fake_model
from tests.fakes_documents import FakeReader
from tests.fakes_model import FakeModelServices

TEXT = "It was built by the town in the year of the war, and it is on the river. "


@pytest.fixture
def model(home: Path) -> Path:
    return write_fake_model(home / "tiny.json")


@pytest.fixture
async def library(services: FakeModelServices, home: Path) -> Library:
    services.save_settings(services.settings.with_embedder(EmbedderChoice(NONE)))
    made = Library(
        services.paths.documents,
        FakeReader(),
        embedding=Embedding(
            services.paths.embedders, lambda: services.settings.embedder_choice, command=COMMAND
        ),
    )
    services.__dict__["documents"] = made
    folder = home / "papers"
    folder.mkdir()
    (folder / "a.txt").write_text(TEXT * 40)
    await made.prepare()
    await made.add(folder)
    await made.settled()
    return made


async def docs(services: FakeModelServices, action: str, **options: Any) -> Recorder:
    console = Recorder()
    await carry_out(services, Options(command="docs", action=action, **options), console)
    return console


async def test_without_a_model_it_says_that_words_alone_are_searched(
    services: FakeModelServices, library: Library
) -> None:
    console = await docs(services, "embedder")
    assert console.out == "Words alone are searched: no embedding model is used.\n"
    await library.close()


async def test_a_chosen_model_is_kept_and_its_vectors_are_made(
    services: FakeModelServices, library: Library, model: Path
) -> None:
    console = await docs(services, "embedder", text=str(model), json=True)
    found = console.json()
    assert found["without"] == 0 and found["passages"] > 3
    assert found["searched"] == "tiny" and found["dimensions"] == WIDTH
    assert "to be made" in console.notes[0]
    assert load_settings(services.paths.settings).embedder == str(model)
    status = await docs(services, "status", json=True)
    assert status.json()["vectors"]["without"] == 0
    assert "have a vector" in (await docs(services, "status")).out
    await library.close()


async def test_what_takes_minutes_is_begun_only_when_it_is_asked_for_twice(
    services: FakeModelServices,
    library: Library,
    model: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(command, "ASKED_FROM_S", 0.0)
    console = await docs(services, "embedder", text=str(model))
    assert "Nothing has changed yet: add --yes to begin." in console.out
    assert services.settings.embedder == NONE
    console = await docs(services, "embedder", text=str(model), yes=True)
    assert services.settings.embedder == str(model)
    await library.close()


async def test_what_goes_before_texts_and_the_languages_can_be_said(
    services: FakeModelServices, library: Library, model: Path
) -> None:
    options = {"query_prefix": "ask: ", "languages": ("de", "en")}
    console = await docs(services, "embedder", text=str(model), json=True, **options)
    assert console.json()["query_prefix"] == "ask: " and console.json()["passage_prefix"] == ""
    assert console.json()["languages"] == ["de", "en"]
    await library.close()


async def test_a_model_that_is_refused_changes_nothing(
    services: FakeModelServices, library: Library, home: Path
) -> None:
    chat = write_fake_model(home / "chat.json", refused="chat.json is no embedding model.")
    with pytest.raises(ModelUnsupported, match="no embedding model"):
        await docs(services, "embedder", text=str(chat))
    assert services.settings.embedder == NONE
    await library.close()


async def test_none_forgets_the_vectors(
    services: FakeModelServices, library: Library, model: Path
) -> None:
    await docs(services, "embedder", text=str(model))
    console = await docs(services, "embedder", text=NONE, json=True)
    assert console.json()["embedder"] == NONE and console.json()["searched"] == ""
    await library.close()
