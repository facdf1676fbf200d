"""Summaries of long documents, section by section, with a model that the test writes."""

from dataclasses import replace
from pathlib import Path

import pytest

from app.chat.digest import Section, sections_of
from app.chat.message import MessageState
from app.chat.sight import Sights
from app.documents.grounds import Grounds
from app.documents.quotation import Quotation
from app.documents.rows import files
from app.documents.scope import Scope
from app.ui.render import figures
from engine.errors import UsageError
from engine.metrics import Timings
from tests.app.chat.room import Room
from tests.app.chat.test_documents import ask, prompt_text
from tests.app.documents.test_grounds import quotation
from tests.fakes_model import FakeStream
from tests.waiting import until


def part(number: int, num_words: int, heading: str = "") -> Quotation:
    return quotation(
        page=number,
        page_to=number,
        heading=(heading,) if heading else (),
        text=f"w{number} " * num_words,
    )


def num_words(text: str) -> int:
    return len(text.split())


def pages(sections: list[Section]) -> list[list[int]]:
    return [[each.page for each in section.parts] for section in sections]


class TestSections:
    def test_as_many_parts_as_fit_are_one(self) -> None:
        parts = [part(number, 40) for number in range(1, 6)]
        assert pages(sections_of(parts, num_words, 100)) == [[1, 2], [3, 4], [5]]

    def test_a_heading_begins_another_where_there_is_enough(self) -> None:
        headings = ("one", "one", "two", "two", "three")
        parts = [part(number, 30, each) for number, each in enumerate(headings, start=1)]
        assert pages(sections_of(parts, num_words, 100)) == [[1, 2], [3, 4], [5]]
        assert pages(sections_of(parts, num_words, 1000)) == [[1, 2, 3, 4, 5]]

    def test_a_part_that_is_too_long_is_cut_and_stands_alone(self) -> None:
        sections = sections_of([part(1, 10), part(2, 500), part(3, 10)], num_words, 100)
        assert pages(sections) == [[1], [2], [3]]
        assert 50 < num_words(sections[1].parts[0].text) <= 100

    def test_nothing_has_none(self) -> None:
        assert sections_of([], num_words, 100) == []

    def test_it_is_named_by_its_pages_and_what_it_stands_under(self) -> None:
        assert Section((part(3, 1),)).heading == "Page 3"
        assert Section((part(3, 1, "Rent"), part(4, 1, "Rent"))).heading == "Pages 3 to 4, Rent"
        assert Section((part(3, 1, "Rent"), part(4, 1, "Dogs"))).heading == "Pages 3 to 4"


LEASE = "\f".join(
    f"Clause {number} says that tenant {number} pays {number}00 euros. " * 20
    for number in range(1, 5)
)


@pytest.fixture
async def conversation_id(room: Room) -> str:
    folder = await room.add(lease=LEASE)
    room.engine.max_request_tokens = 3000
    room.engine.background_script = None
    scope = Scope(paths=(str(folder / "lease.txt"),))
    return (await room.conversations.create(documents=scope)).conversation_id


async def asked(room: Room, number: int = 1) -> FakeStream:
    """The request for the section with this number, from 1."""
    await until(lambda: len(room.engine.background) >= number)
    return room.engine.background[number - 1]


async def test_each_section_is_read_alone_and_all_of_it_is_the_answer(
    room: Room, conversation_id: str
) -> None:
    job = await room.jobs.sum_up(conversation_id)
    for number in range(1, 5):
        stream = await asked(room, number)
        said = prompt_text(room, stream.prompt)
        assert f"Clause {number} says" in said and f"Clause {number + 1} says" not in said
        assert "no instructions" in said and stream.options.is_background
        assert stream.guidance is not None and stream.guidance.is_text
        matcher = stream.guidance.grammar.matcher()
        assert matcher.num_valid(list(b"It is < 3.")) == 10
        assert matcher.num_valid(list(b"<<section")) < 9 and matcher.num_valid(list(b"a [1]")) < 5
        stream.write(f"Tenant {number} pays {number}00 euros.")
        await until(lambda number=number: f"{number}00" in job.answer.message.content)
        assert f"section {number} of 4" in job.answer.message.notice
        stream.end()
    last = await asked(room, 5)
    assert "Pages" not in prompt_text(room, last.prompt)
    assert "**Page 4**\n\nTenant 4 pays 400 euros." in prompt_text(room, last.prompt)
    last.end("Four tenants pay.")
    answer = (await job.finished()).message
    assert answer.state is MessageState.DONE and answer.notice == ""
    assert answer.content == (
        "**Page 1**\n\nTenant 1 pays 100 euros.\n\n**Page 2**\n\nTenant 2 pays 200 euros.\n\n"
        "**Page 3**\n\nTenant 3 pays 300 euros.\n\n**Page 4**\n\nTenant 4 pays 400 euros.\n\n"
        "**In short**\n\nFour tenants pay."
    )
    prompts = [each.prompt for each in room.engine.background]
    timings = Timings(**answer.timings)
    assert len(prompts) == 5 and timings.prompt_tokens == sum(map(len, prompts))
    assert f"{timings.prompt_tokens:,} tokens read" in figures(answer)
    user, stored = await room.stored(conversation_id)
    assert user.content == "Sum up lease.txt, section by section." and stored == answer
    assert answer.grounds is not None and answer.grounds.is_summary
    assert Grounds.from_json(answer.grounds.as_json()) == answer.grounds
    sights = Sights(room.conversations, lambda: room.chat_model, lambda: room.settings)
    with pytest.raises(UsageError, match="made of many prompts"):
        await sights.saw(answer.message_id)
    assert [each.page for each in answer.grounds.quotations] == [1, 2, 3, 4]


async def test_stopped_it_keeps_what_is_there(room: Room, conversation_id: str) -> None:
    job = await room.jobs.sum_up(conversation_id)
    (await asked(room)).end("Tenant 1 pays 100 euros.")
    stream = await asked(room, 2)
    stream.write("Tenant 2")
    await until(lambda: "Tenant 2" in job.answer.message.content)
    room.jobs.stop(conversation_id)
    answer = (await job.finished()).message
    assert answer.state is MessageState.STOPPED
    assert answer.content.startswith("**Page 1**\n\nTenant 1 pays 100 euros.")
    assert len(room.engine.background) == 2


async def test_another_answer_to_it_is_another_summary(room: Room, conversation_id: str) -> None:
    job = await room.jobs.sum_up(conversation_id)
    await asked(room)
    room.jobs.stop(conversation_id)
    await job.finished()
    # Also when the conversation asks no file any more.
    await room.conversations.set_documents(conversation_id, None)
    again = await room.jobs.regenerate(conversation_id)
    stream = await asked(room, 2)
    assert stream.prompt == room.engine.background[0].prompt
    room.jobs.stop(conversation_id)
    assert (await again.finished()).message.grounds is not None


async def test_another_summary_is_of_the_file_under_its_new_name(
    room: Room, conversation_id: str
) -> None:
    await room.jobs.sum_up(conversation_id)
    await asked(room)
    room.jobs.stop(conversation_id)
    await room.jobs.at_rest(conversation_id)
    (path,) = await room.library.ask(lambda tables: files(tables))
    Path(path.path).rename(Path(path.path).with_name("contract.txt"))
    await room.library.look()
    again = await room.jobs.regenerate(conversation_id)
    await asked(room, 2)
    assert "contract.txt" in again.answer.message.notice
    room.jobs.stop(conversation_id)
    await again.finished()


async def test_it_is_reproducible_where_all_answers_are(room: Room, conversation_id: str) -> None:
    room.settings = replace(room.settings, reproducible=True)
    await room.jobs.sum_up(conversation_id)
    assert (await asked(room)).options.is_reproducible
    room.jobs.stop(conversation_id)


async def test_what_is_not_one_document_is_refused_before_anything_is_stored(
    room: Room, conversation_id: str
) -> None:
    made = await room.conversations.create()
    with pytest.raises(UsageError, match="No file is chosen"):
        await room.jobs.sum_up(made.conversation_id)
    await room.conversations.set_documents(made.conversation_id, Scope(paths=("/nowhere",)))
    with pytest.raises(UsageError, match="One document is summed up at a time"):
        await room.jobs.sum_up(made.conversation_id)
    room.engine.max_request_tokens = 300
    with pytest.raises(UsageError, match="no room for a section"):
        await room.jobs.sum_up(conversation_id)
    assert await room.stored(made.conversation_id) == await room.stored(conversation_id) == []


async def test_questions_after_it_see_the_summary(
    room: Room, conversation_id: str, home: Path
) -> None:
    room.settings = replace(room.settings, default_sampling={"max_tokens": 64})
    job = await room.jobs.sum_up(conversation_id)
    for number in range(1, 6):
        (await asked(room, number)).end("Short.")
    await job.finished()
    await room.conversations.set_documents(conversation_id, None)
    await ask(room, conversation_id, "What else?", "Nothing.")
    said = prompt_text(room, room.engine.streams[-1].prompt)
    assert said.index("Sum up lease.txt") < said.index("**Page 1**\n\nShort.") < said.index("else?")
