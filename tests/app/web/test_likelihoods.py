"""How sure the model was, for the page's sheet; of what is gone nothing is told."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from app.chat.likelihoods import Alternative, Chosen, Likelihoods
from app.web.likelihoods import likelihoods_router
from tests.fakes_chat import FakeServices

TOKENS = (
    Chosen("Hi", -0.1, (Alternative(1, "Hi", -0.1), Alternative(2, " Ho\n", -3.0))),
    Chosen("!", -9.0, (Alternative(3, "", -0.2),)),
)


@pytest.fixture
async def services(tmp_path: Path) -> AsyncIterator[FakeServices]:
    services = FakeServices(tmp_path)
    yield services
    services.conversations.close()
    services.database.close()


@pytest.fixture
async def client(services: FakeServices) -> AsyncIterator[httpx.AsyncClient]:
    app = FastAPI()
    app.include_router(likelihoods_router(services.conversations, lambda: services.model.name))
    transport = httpx.ASGITransport(app)
    base = "http://test/_app/likelihoods"
    async with httpx.AsyncClient(transport=transport, base_url=base) as it:
        yield it


async def told(services: FakeServices, **more: Any) -> str:
    made = await services.conversations.create()
    await services.tell(made.conversation_id, ["Q", "Hi!"], **more)
    return (await services.conversations.messages(made.conversation_id))[-1].message_id


async def test_each_token_comes_with_what_else_could_have_come(
    services: FakeServices, client: httpx.AsyncClient
) -> None:
    answer_id = await told(
        services,
        likelihoods=Likelihoods.of(TOKENS),
        token_ids=(1, 4),
        model=services.model.name,
    )
    found = (await client.get(f"/{answer_id}")).json()
    assert found["obstacle"] == ""
    first, last = found["tokens"]
    assert (first["text"], first["p"]) == ("Hi", 0.9048)
    assert [(each["id"], each["text"], each["is_chosen"]) for each in first["alternatives"]] == [
        (1, "Hi", True),
        (2, "␣Ho⏎", False),
    ]
    # What came was not among the likeliest, and what is no text is no way on.
    assert [(each["id"], each["is_chosen"]) for each in last["alternatives"]] == [
        (3, False),
        (4, True),
    ]
    assert not last["alternatives"][0]["is_text"]


async def test_an_answer_of_another_model_says_why_nobody_can_go_on_with_it(
    services: FakeServices, client: httpx.AsyncClient
) -> None:
    more = {"likelihoods": Likelihoods.of(TOKENS), "token_ids": (1, 4), "model": "other"}
    found = (await client.get(f"/{await told(services, **more)}")).json()
    assert "written by other" in found["obstacle"]


async def test_what_is_not_known_or_gone_is_a_sentence(
    services: FakeServices, client: httpx.AsyncClient
) -> None:
    plain = await client.get(f"/{await told(services)}")
    assert plain.status_code == 404 and "not known" in plain.text
    gone = await told(services, likelihoods=Likelihoods.of(TOKENS), token_ids=(1, 4))
    answer = (await services.conversations.path(gone))[-1]
    await services.conversations.delete(answer.conversation_id)
    for answer_id in (gone, "nothing", "tmp-nothing"):
        reply = await client.get(f"/{answer_id}")
        assert reply.status_code == 404 and "gone" in reply.text
