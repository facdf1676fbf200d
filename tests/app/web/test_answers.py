"""Answers as files, as text, and in rows; only those in a form, and not when they are gone."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import unquote

import httpx
import pytest
from fastapi import FastAPI

from app.chat.answer_form import AnswerForm, MadeIn, Medium
from app.web.answers import MOST_ROWS, answers_router
from engine.guided.grammar import Grammar, GrammarKind
from tests.fakes_chat import FakeServices

SCHEMA = AnswerForm.of_own(GrammarKind.JSON_SCHEMA, "{}")
CSV = AnswerForm(Grammar(GrammarKind.LARK, "start: /a/"), "CSV", "", Medium.CSV)


@pytest.fixture
async def services(tmp_path: Path) -> AsyncIterator[FakeServices]:
    services = FakeServices(tmp_path)
    yield services
    services.conversations.close()
    services.database.close()


@pytest.fixture
async def client(services: FakeServices) -> AsyncIterator[httpx.AsyncClient]:
    app = FastAPI()
    app.include_router(answers_router(services.conversations))
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://test/_app/answers") as it:
        yield it


async def told(
    services: FakeServices,
    content: str,
    form: AnswerForm | None = SCHEMA,
    title: str = "",
    temporary: bool = False,
) -> str:
    """An answer in a conversation; its id."""
    made = await services.conversations.create(title=title, temporary=temporary)
    made_in = None if form is None else MadeIn(form)
    await services.tell(made.conversation_id, ["Q", content], made_in=made_in)
    return (await services.conversations.messages(made.conversation_id))[-1].message_id


async def test_an_answer_is_a_file_with_its_exact_text(
    services: FakeServices, client: httpx.AsyncClient
) -> None:
    text = '{"a":1.0,\n "b": "é <b> &#x0003C;"}'
    answer_id = await told(services, text, title='Who/what: "é"?')
    reply = await client.get(f"/{answer_id}")
    assert reply.content.decode() == text
    assert reply.headers["content-type"].startswith("application/json")
    disposition = reply.headers["content-disposition"]
    assert disposition.startswith("attachment; filename*=UTF-8''")
    assert unquote(disposition.partition("''")[2]) == "Who what é.json"


async def test_the_file_has_the_kind_of_its_form(
    services: FakeServices, client: httpx.AsyncClient
) -> None:
    reply = await client.get(f"/{await told(services, 'a,b', CSV, title='..')}")
    assert reply.headers["content-type"].startswith("text/csv")
    assert reply.headers["content-disposition"].endswith("answer.csv")


async def test_a_temporary_answer_can_be_kept_too(
    services: FakeServices, client: httpx.AsyncClient
) -> None:
    answer_id = await told(services, "{}", temporary=True)
    assert (await client.get(f"/{answer_id}")).text == "{}"


async def test_json_is_laid_out_for_reading(
    services: FakeServices, client: httpx.AsyncClient
) -> None:
    assert (
        await client.get(f"/{await told(services, '[1,2]')}/laid-out")
    ).text == "[\n  1,\n  2\n]"
    assert (await client.get(f"/{await told(services, 'a,b', CSV)}/laid-out")).text == "a,b"


async def test_rows_come_in_parts(services: FakeServices, client: httpx.AsyncClient) -> None:
    content = json.dumps([{"n": n, "<b>": True} for n in range(MOST_ROWS + 3)])
    answer_id = await told(services, content)
    first = (await client.get(f"/{answer_id}/rows")).json()
    assert first["num_rows"] == MOST_ROWS + 3
    assert len(first["rows"]) == MOST_ROWS and first["rows"][1] == ["1", "yes"]
    rest = (await client.get(f"/{answer_id}/rows?start={MOST_ROWS}")).json()
    assert [row[0] for row in rest["rows"]] == [str(MOST_ROWS + n) for n in range(3)]
    for start in (-5, 10**6):
        reply = await client.get(f"/{answer_id}/rows?start={start}")
        assert len(reply.json()["rows"]) == (MOST_ROWS if start < 0 else 0)


async def test_an_answer_of_another_shape_has_no_rows(
    services: FakeServices, client: httpx.AsyncClient
) -> None:
    assert (await client.get(f"/{await told(services, '{}')}/rows")).json()["num_rows"] == 0


@pytest.mark.parametrize("what", ["", "/laid-out", "/rows"])
async def test_what_is_gone_or_has_no_form_is_not_given_out(
    services: FakeServices, client: httpx.AsyncClient, what: str
) -> None:
    plain, gone = await told(services, "{}", None), await told(services, "{}")
    (answer,) = [each for each in (await services.conversations.path(gone)) if each.made_in]
    await services.conversations.delete(answer.conversation_id)
    for answer_id in (plain, gone, "nothing", "tmp-nothing"):
        reply = await client.get(f"/{answer_id}{what}")
        assert reply.status_code == 404
        assert "gone" in reply.text
