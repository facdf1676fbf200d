"""A document that is read from its beginning to its end, and the conversations about it."""

import asyncio
import html
import os
from dataclasses import replace
from pathlib import Path

import pytest

from app.chat.belonging import document_source
from app.chat.context import prompt_limit
from app.chat.message import MessageState
from app.chat.prospect import Prospects
from app.chat.sight import Sights
from app.chat.whole_reading import ROOM_TO_ASK, cost_of
from app.documents.grounds import with_marks
from app.documents.scope import WHOLE_LIBRARY, Scope
from app.ui.render import waiting_for
from engine.errors import UsageError
from engine.sampling_params import SamplingParams
from tests.app.chat.room import Room
from tests.app.chat.test_continued import choices
from tests.app.chat.test_documents import INN, QUESTION, ask, prompt_text
from tests.waiting import until

LEASE = (
    "The lease begins on 1 March 2024 and the rent is 850 euros a month.\f"
    "The deposit is 1,700 euros, and it is paid back within six weeks.\f"
    "Dogs are allowed, and parrots are not."
)


@pytest.fixture
async def lease(room: Room) -> Path:
    return await room.add(lease=LEASE, inn=INN) / "lease.txt"


async def chat(room: Room, path: Path, system_prompt: str = "", *, temporary: bool = False) -> str:
    scope = Scope(paths=(str(path),), as_whole=True)
    made = await room.conversations.create(
        system_prompt=system_prompt, documents=scope, temporary=temporary
    )
    return made.conversation_id


def source_of(room: Room, number: int) -> tuple[str, list[int]]:
    """Of the request with this number: whose its first tokens are, and these."""
    stream = room.engine.streams[number]
    belonging = stream.options.belonging
    return belonging.source, stream.prompt[: belonging.num_source_tokens]


async def test_all_of_it_stands_before_everything_else(room: Room, lease: Path) -> None:
    conversation_id = await chat(room, lease, "Be brief.")
    await ask(room, conversation_id, "What is the rent?", "850 euros [1].")
    said = prompt_text(room, room.engine.streams[0].prompt)
    places = [said.index(words) for words in ("850", "1,700", "parrots", "Be brief.", "What is")]
    assert places == sorted(places)
    assert "<<file | " in said and "<<passage 3 | page 3 |" in said
    assert "Maloja" not in said and said.count("850") == 1


async def test_conversations_about_it_begin_with_the_same_tokens(room: Room, lease: Path) -> None:
    for number, system in enumerate(("Be brief.", "", "Be brisk, and say why.")):
        await ask(room, await chat(room, lease, system), f"Question {number}?", "Yes.")
    (first, *others) = [source_of(room, number) for number in range(3)]
    assert first[0].startswith("doc:") and others == [first, first]
    text = prompt_text(room, first[1])
    assert "parrots are not" in text and "Be b" not in text and "Question" not in text


async def test_the_next_turn_goes_on_where_this_one_ended(room: Room, lease: Path) -> None:
    conversation_id = await chat(room, lease)
    await ask(room, conversation_id, "What is the rent?", "850 euros [1].")
    await room.jobs.at_rest(conversation_id)
    assert room.engine.background == []
    await ask(room, conversation_id, "And the deposit?", "1,700 euros [2].")
    one, other = (prompt_text(room, stream.prompt) for stream in room.engine.streams)
    assert other.startswith(f"{one.removesuffix('assistant' + chr(10))}assistant\n850 euros [1].")


async def test_citations_name_pages_and_only_these_are_kept(room: Room, lease: Path) -> None:
    answer = await ask(
        room,
        await chat(room, lease),
        "Deposit?",
        "The deposit is 1,700 euros [1]. Dogs are allowed, parrots are not allowed [3].",
    )
    (_, stored) = await room.stored(answer.conversation_id)
    grounds = stored.grounds
    assert grounds is not None and grounds.whole is not None
    assert grounds.whole.paths == (str(lease),) and grounds.whole.num_pages == 3
    assert grounds.numbers == grounds.cited == (2, 3) and not grounds.is_summary
    assert [each.page for each in grounds.quotations] == [2, 3]
    assert with_marks(stored.content, grounds) == (
        "The deposit is 1,700 euros [2]. Dogs are allowed, parrots are not allowed [3]."
    )
    assert "850" not in str(grounds.as_json())


async def test_brackets_are_kept_to_its_parts(room: Room, lease: Path) -> None:
    await ask(room, await chat(room, lease), "Deposit?", "1,700 euros [2].")
    guidance = room.engine.streams[0].guidance
    assert guidance is not None and guidance.is_text
    matcher = guidance.grammar.matcher()
    assert matcher.num_valid(list(b"It is [3].")) == 10
    assert matcher.num_valid(list(b"It is [4].")) < 10


async def test_another_name_reads_nothing_again(room: Room, lease: Path) -> None:
    await ask(room, await chat(room, lease), "What is the rent?", "850 euros [1].")
    moved = lease.rename(lease.with_name("contract.txt"))
    await room.library.look()
    await room.library.settled()
    conversation_id = await chat(room, lease)
    answer = await ask(room, conversation_id, "What is the rent?", "850 euros [1].")
    followed = await room.conversations.get(conversation_id)
    assert followed.documents == Scope(paths=(str(moved),), as_whole=True)
    assert room.engine.streams[1].prompt == room.engine.streams[0].prompt
    assert answer.grounds is not None and answer.grounds.whole is not None
    assert answer.grounds.whole.name == "contract.txt"
    moved.unlink()
    await room.library.look()
    with pytest.raises(UsageError, match="contract.txt has no text, or was renamed"):
        await room.jobs.send(conversation_id, "What is the rent?")


async def test_what_has_no_room_is_searched_and_that_is_said(room: Room, lease: Path) -> None:
    lease.write_text("\f".join([LEASE] * 8))
    room.engine.max_request_tokens = 1600
    await room.library.add(lease)
    await room.library.settled()
    answer = await ask(room, await chat(room, lease), "What is the rent?", "850 euros [1].")
    assert answer.grounds is not None and answer.grounds.whole is None
    assert answer.grounds.quotations
    assert "lease.txt has 2," in answer.notice and "so it was searched" in answer.notice
    assert "A context of 4,096 tokens would hold it" in answer.notice


async def test_what_the_model_was_not_made_for_is_said_with_the_tokens(
    room: Room, lease: Path
) -> None:
    lease.write_text("\f".join([LEASE] * 20))
    room.engine.max_request_tokens = 1600
    await room.library.add(lease)
    await room.library.settled()
    answer = await ask(room, await chat(room, lease), "What is the rent?", "850 euros [1].")
    assert "so it was searched" in answer.notice and "would hold it" not in answer.notice
    read = await room.answering.whole(Scope(paths=(str(lease),)))
    assert read is not None
    max_answer = room.settings.sampling.max_tokens
    cost = await cost_of(room.chat_model, read, max_answer)
    assert f"It needs a context of {cost.needed:,} tokens" in answer.notice
    assert "this model was made for 4,096: to have it read whole, choose" in answer.notice
    assert prompt_limit(cost.needed, max_answer) >= cost.num_tokens + ROOM_TO_ASK
    assert prompt_limit(cost.needed - 2, max_answer) < cost.num_tokens + ROOM_TO_ASK


async def test_several_documents_are_searched_and_that_is_said(room: Room, lease: Path) -> None:
    answer = await ask(room, await chat(room, lease.parent), "What is the rent?", "850 euros [1].")
    assert answer.grounds is not None and answer.grounds.whole is None
    assert "Only a single document" in answer.notice


async def test_where_nothing_can_be_asked_that_alone_is_said(room: Room, lease: Path) -> None:
    with pytest.raises(UsageError, match="no text in the documents that were chosen") as refused:
        await room.jobs.send(await chat(room, lease.with_name("none.txt")), "What is the rent?")
    assert "more than one" not in str(refused.value)


async def test_what_the_model_saw_is_built_again(room: Room, lease: Path) -> None:
    answer = await ask(room, await chat(room, lease), "What is the rent?", "850 euros [1].")
    sights = Sights(
        room.conversations,
        lambda: room.chat_model,
        lambda: room.settings,
        lambda: room.answering,
    )
    saw = await sights.saw(answer.message_id)
    assert saw.doubt == "" and saw.num_tokens == len(room.engine.streams[0].prompt)
    fill = await sights.fill(answer.conversation_id, "")
    assert fill is not None and fill.num_used > len(room.engine.streams[0].prompt)
    lease.write_text("Another lease.")
    await room.library.look()
    await room.library.settled()
    assert "the file asked about has changed" in (await sights.saw(answer.message_id)).doubt


async def test_before_the_first_question_it_is_counted_where_it_will_stand(
    room: Room, lease: Path
) -> None:
    sights = Sights(
        room.conversations,
        lambda: room.chat_model,
        lambda: room.settings,
        lambda: room.answering,
    )
    conversation_id = await chat(room, lease)
    whole = await sights.fill(conversation_id, "")
    await room.conversations.set_documents(conversation_id, None)
    without = await sights.fill(conversation_id, "")
    assert whole is not None and without is not None
    assert whole.num_used - without.num_used == whole.num_whole > len(LEASE)
    # One that is not stored yet takes as much.
    new = await sights.fill(None, "", documents=Scope(paths=(str(lease),), as_whole=True))
    searched = await sights.fill(None, "", documents=Scope(paths=(str(lease),)))
    assert new is not None and searched is not None
    assert new.num_used - searched.num_used == new.num_whole == whole.num_whole


async def test_a_file_that_changes_is_another_document(room: Room, lease: Path) -> None:
    conversation_id = await chat(room, lease)
    await ask(room, conversation_id, "What is the rent?", "850 euros [1].")
    lease.write_text(LEASE.replace("850", "900"))
    await room.library.look()
    await room.library.settled()
    answer = await ask(room, conversation_id, "And now?", "900 euros [1].")
    assert "900" in prompt_text(room, room.engine.streams[1].prompt)
    one, other = source_of(room, 0)[0], source_of(room, 1)[0]
    await until(lambda: bool(room.gone))
    assert one != other and list(map(document_source, room.gone)) == [one]
    assert answer.grounds is not None and answer.grounds.cited == (1,)


async def test_who_removes_the_file_is_heard_once_and_only_if_it_was_read(
    room: Room, lease: Path
) -> None:
    await ask(room, await chat(room, lease), "What is the rent?", "850 euros [1].")
    assert len(await room.library.ever_read_whole()) == 1
    await room.library.remove(lease.parent)
    await until(lambda: bool(room.gone))
    assert list(map(document_source, room.gone)) == [source_of(room, 0)[0]]
    assert await room.library.ever_read_whole() == []


async def test_another_answer_and_another_way_have_it_before_them(room: Room, lease: Path) -> None:
    room.settings = replace(room.settings, show_likelihoods=True)
    conversation_id = await chat(room, lease)
    job = await room.jobs.send(conversation_id, "What is the rent?")
    stream = await room.stream()
    stream.write("In", choices("In"))
    stream.end()
    old = (await job.finished()).message
    job = await room.jobs.regenerate(conversation_id)
    (await room.stream(count=2)).end("850 euros [1].")
    await job.finished()
    await room.conversations.set_documents(conversation_id, None)
    job = await room.jobs.continue_from(conversation_id, old.message_id, 1, ord("o"))
    (await room.stream(count=3)).end(" euros.")
    assert (await job.finished()).message.grounds is not None
    prompts = [stream.prompt for stream in room.engine.streams]
    assert prompts[1:] == [prompts[0]] * 2
    os.remove(lease)
    await room.library.look()
    with pytest.raises(UsageError, match="has changed, or left the library"):
        await room.jobs.continue_from(conversation_id, old.message_id, 1, ord("o"))


async def test_work_in_the_background_tells_whose_the_beginning_is(room: Room, lease: Path) -> None:
    room.settings = replace(room.settings, automatic_titles=True)
    conversation_id = await chat(room, lease)
    await ask(room, conversation_id, "What is the rent?", "<think>Hm.</think>850 euros [1].")
    await room.jobs.at_rest(conversation_id)
    assert room.engine.background
    wanted = room.engine.streams[0].options.belonging
    assert {each.options.belonging for each in room.engine.background} == {wanted}


async def test_a_look_ahead_has_it_before_it(room: Room, lease: Path) -> None:
    conversation_id = await chat(room, lease)
    await ask(room, conversation_id, "What is the rent?", "850 euros [1].")
    prospects = Prospects(room.conversations, lambda: room.chat_model, lambda: room.answering)
    looking = asyncio.create_task(prospects.look(conversation_id, SamplingParams()))
    await until(lambda: bool(room.engine.background) or looking.done())
    looking.cancel()
    (looked,) = room.engine.background
    assert looked.prompt == room.engine.streams[0].prompt
    assert looked.options.belonging == room.engine.streams[0].options.belonging


async def test_a_temporary_chat_about_it_is_not_durable(room: Room, lease: Path) -> None:
    await ask(room, await chat(room, lease, temporary=True), "What is the rent?", "850 euros [1].")
    belonging = room.engine.streams[0].options.belonging
    assert not belonging.is_durable and belonging.source


async def test_while_it_is_read_that_is_said_and_not_that_the_message_is(
    room: Room, lease: Path
) -> None:
    job = await room.jobs.send(await chat(room, lease), "What is the rent?")
    stream = await room.stream()
    num_tokens = stream.options.belonging.num_source_tokens
    stream.read(num_tokens // 2)
    await until(lambda: bool(job.answer.doing))
    said = waiting_for(job.answer)
    assert html.unescape(said).startswith(
        "Reading lease.txt from its beginning to its end: page 2 of 3,"
        f" {num_tokens // 2:,} of {num_tokens:,} tokens."
    )
    stream.read(num_tokens)
    await until(lambda: not job.answer.doing)
    assert "Reading your message" in waiting_for(job.answer)
    stream.end("850 euros [1].")
    await job.finished()


class TestReadOnce:
    """Two who ask about it at the same time."""

    async def test_the_second_waits_until_the_first_has_read_it(
        self, room: Room, lease: Path
    ) -> None:
        one, other = await chat(room, lease), await chat(room, lease)
        first = await room.jobs.send(one, "What is the rent?")
        stream = await room.stream()
        second = await room.jobs.send(other, "And the deposit?")
        await until(lambda: "read once for both" in second.answer.doing)
        assert len(room.engine.streams) == 1
        stream.write("8")
        other_stream = await room.stream(count=2)
        # Its own reading is shown now.
        await until(lambda: second.answer.doing == "")
        other_stream.end("1,700 euros [2].")
        assert (await second.finished()).message.state is MessageState.DONE
        stream.end("50 euros [1].")
        await first.finished()

    async def test_the_second_goes_on_where_the_first_is_stopped(
        self, room: Room, lease: Path
    ) -> None:
        one, other = await chat(room, lease), await chat(room, lease)
        await room.jobs.send(one, "What is the rent?")
        await room.stream()
        second = await room.jobs.send(other, "And the deposit?")
        await until(lambda: bool(second.answer.doing))
        room.jobs.stop(one)
        (await room.stream(count=2)).end("1,700 euros [2].")
        assert (await second.finished()).doing == ""

    async def test_who_waits_can_be_stopped(self, room: Room, lease: Path) -> None:
        one, other = await chat(room, lease), await chat(room, lease)
        first = await room.jobs.send(one, "What is the rent?")
        stream = await room.stream()
        second = await room.jobs.send(other, "And the deposit?")
        await until(lambda: bool(second.answer.doing))
        room.jobs.stop(other)
        assert (await second.finished()).message.state is MessageState.STOPPED
        stream.end("850 euros [1].")
        await first.finished()

    async def test_others_do_not_wait(self, room: Room, lease: Path) -> None:
        await room.jobs.send(await chat(room, lease), "What is the rent?")
        stream = await room.stream()
        made = await room.conversations.create(documents=WHOLE_LIBRARY)
        job = await room.jobs.send(made.conversation_id, QUESTION)
        (await room.stream(count=2)).end("In Switzerland [1].")
        await job.finished()
        stream.end("850 euros.")


async def test_what_it_takes_is_said_before_anything_is_read(room: Room, lease: Path) -> None:
    model = room.chat_model
    sights = Sights(
        room.conversations,
        lambda: model if is_loaded else None,
        lambda: room.settings,
        lambda: room.answering,
    )
    scope = Scope(paths=(str(lease),))
    is_loaded = False
    before = await sights.whole(scope, None)
    assert before is not None and before.cost is None and before.num_pages == 3
    is_loaded = True
    sight = await sights.whole(scope, None)
    assert sight is not None and sight.cost is not None and sight.cost.fits
    assert sight.cost.num_tokens > len(LEASE)
    each = model.loaded.info.kv_bytes_per_token
    assert sight.kv_bytes == sight.cost.num_tokens * each
    assert await sights.whole(Scope(paths=(str(lease.parent),)), None) is None
    # Who looks writes nothing down, and sees what will be read.
    assert await room.library.ever_read_whole() == []
    answer = await ask(room, await chat(room, lease), "What is the rent?", "850 euros [1].")
    assert len(await room.library.ever_read_whole()) == 1
    assert answer.grounds is not None and answer.grounds.num_tokens == sight.cost.num_tokens
    assert await sights.whole(scope, None) == sight


async def test_what_is_too_long_to_be_read_is_not_noted_as_read(room: Room, lease: Path) -> None:
    lease.write_text("\f".join([LEASE] * 8))
    await room.library.add(lease)
    await room.library.settled()
    room.engine.max_request_tokens = 1600
    answer = await ask(room, await chat(room, lease), "What is the rent?", "850 euros [1].")
    assert "so it was searched" in answer.notice
    assert await room.library.ever_read_whole() == []


async def test_a_file_that_goes_between_the_look_and_the_reading_is_not_read(
    room: Room, lease: Path
) -> None:
    seen = await room.answering.whole(Scope(paths=(str(lease),)))
    assert seen is not None and not seen.is_marked
    await room.library.remove(lease.parent)
    assert await room.answering.mark_whole(seen) is None


async def test_two_who_look_before_it_is_read_read_it_with_one_fence(
    room: Room, lease: Path
) -> None:
    scope = Scope(paths=(str(lease),))
    seen = await room.answering.whole(scope)
    assert seen is not None
    other = replace(seen, whole=replace(seen.whole, fence="0badcafe"))
    one, two = [await room.answering.mark_whole(each) for each in (seen, other)]
    assert one == two == await room.answering.whole(scope)
    assert one is not None and one.whole.fence == seen.whole.fence and one.is_marked
