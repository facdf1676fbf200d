import random
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from app.chat.answer_form import AnswerForm, MadeIn
from app.chat.message import Message, MessageState, Role
from app.history.database import Database
from engine.errors import HistoryError, NotFound
from engine.guided.grammar import GrammarKind
from tests.app.history.chats import Chats


def contents(messages: Iterable[Message]) -> list[str]:
    return [message.content for message in messages]


async def test_a_conversation_is_what_it_was_made_of(chats: Chats) -> None:
    made = await chats.create("Tea", "Be brief.", {"temperature": 0.2, "stop": ["\n"]})
    found = await chats.get(made.conversation_id)
    assert found == made
    assert (found.title, found.system_prompt) == ("Tea", "Be brief.")
    assert found.sampling == {"temperature": 0.2, "stop": ["\n"]}


async def test_its_choices_can_be_changed(chats: Chats) -> None:
    made = await chats.create()
    await chats.rename(made.conversation_id, "Coffee")
    await chats.set_system_prompt(made.conversation_id, "Be kind.")
    await chats.set_sampling(made.conversation_id, {"seed": 7})
    found = await chats.get(made.conversation_id)
    assert found == replace(made, title="Coffee", system_prompt="Be kind.", sampling={"seed": 7})


async def test_a_form_outlives_the_process_and_stays_with_the_answers_made_in_it(
    path: Path,
) -> None:
    form = AnswerForm.of_own(GrammarKind.REGEX, "[0-9]+")
    with Database(path) as database:
        made = await Chats(database).create(answer_form=form)
        await Chats(database).begin_turn(made.conversation_id, "How many?", form=form)
        await Chats(database).set_answer_form(made.conversation_id, None)
    with Database(path) as database:
        chats = Chats(database)
        await chats.interrupt_stale()
        assert (await chats.get(made.conversation_id)).answer_form is None
        user, answer = await chats.messages(made.conversation_id)
        assert (user.made_in, answer.made_in) == (None, MadeIn(form))
        await chats.set_answer_form(made.conversation_id, form)
        assert (await chats.get(made.conversation_id)).answer_form == form


async def test_a_turn_stores_the_message_and_an_empty_answer_at_once(chats: Chats) -> None:
    made = await chats.create()
    user, answer = await chats.begin_turn(made.conversation_id, "Where does smoke go?")
    assert (user.role, user.content, user.parent_id) == (Role.USER, "Where does smoke go?", None)
    assert (answer.role, answer.content) == (Role.ASSISTANT, "")
    assert answer.state is MessageState.STREAMING
    assert answer.parent_id == user.message_id
    assert await chats.messages(made.conversation_id) == [user, answer]
    found = await chats.get(made.conversation_id)
    assert found.active_leaf_id == answer.message_id
    assert found.updated_at > made.updated_at


async def test_a_turn_that_fails_stores_nothing(chats: Chats) -> None:
    made = await chats.create()
    with pytest.raises(NotFound):
        await chats.begin_turn(made.conversation_id, "Hello", parent_id="nowhere")
    assert await chats.messages(made.conversation_id) == []
    assert await chats.get(made.conversation_id) == made


async def test_the_next_turn_hangs_below_the_answer(chats: Chats) -> None:
    made = await chats.create()
    answer = await chats.say(made.conversation_id, "One?", "One.")
    turn = await chats.begin_turn(made.conversation_id, "Two?")
    assert turn.user.parent_id == answer.message_id
    assert contents(await chats.messages(made.conversation_id)) == ["One?", "One.", "Two?", ""]


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("Why is the sky blue?", "Why is the sky blue?"),
        ("  two\n lines ", "two lines"),
        ("word " * 40, ("word " * 12).strip() + "…"),
        ("空" * 100, "空" * 60 + "…"),
        ("a " + "b" * 100, "a " + "b" * 58 + "…"),
    ],
    ids=["short", "lines", "words", "no spaces", "one long word"],
)
async def test_the_first_words_become_the_title(chats: Chats, text: str, title: str) -> None:
    made = await chats.create()
    await chats.begin_turn(made.conversation_id, text)
    assert (await chats.get(made.conversation_id)).title == title


async def test_a_title_that_was_given_stays(chats: Chats) -> None:
    made = await chats.create("Mine")
    await chats.say(made.conversation_id, "Hello", "Hi")
    assert (await chats.get(made.conversation_id)).title == "Mine"


async def test_nothing_is_said_while_an_answer_is_written(chats: Chats) -> None:
    made = await chats.create()
    user, answer = await chats.begin_turn(made.conversation_id, "Hello")
    for refused in (
        chats.begin_turn(made.conversation_id, "And?"),
        chats.begin_turn(made.conversation_id, "And?", parent_id=None),
        chats.begin_answer(made.conversation_id, user.message_id),
    ):
        with pytest.raises(HistoryError, match="still being written"):
            await refused
    await chats.end(answer, "Hi")
    await chats.begin_turn(made.conversation_id, "And?")


async def test_partial_saves_are_kept_and_the_end_stores_every_field(chats: Chats) -> None:
    made = await chats.create()
    _, answer = await chats.begin_turn(made.conversation_id, "Count")
    await chats.save_partial(answer.message_id, "one", "I count")
    (_, partial) = await chats.messages(made.conversation_id)
    assert (partial.content, partial.thinking) == ("one", "I count")
    assert partial.state is MessageState.STREAMING
    ended = replace(
        partial,
        content="one two",
        thinking="I count on",
        state=MessageState.FAILED,
        finish_reason="length",
        notice="The machine was tired.",
        model="small",
        token_ids=(0, 1, 2**31 - 1, -1),
        timings={"ttft_ms": 1.5, "finish": "length", "nested": {"more": [1, None]}},
    )
    await chats.finish_answer(ended)
    assert (await chats.messages(made.conversation_id))[1] == ended


async def test_an_answer_that_ended_never_changes(chats: Chats) -> None:
    made = await chats.create()
    ended = await chats.say(made.conversation_id, "Hello", "Hi")
    with pytest.raises(HistoryError, match="has ended"):
        await chats.save_partial(ended.message_id, "late", "")
    with pytest.raises(HistoryError, match="has ended"):
        await chats.finish_answer(replace(ended, content="later"))
    assert (await chats.messages(made.conversation_id))[1] == ended


async def test_an_end_needs_a_state_that_is_an_end(chats: Chats) -> None:
    made = await chats.create()
    _, answer = await chats.begin_turn(made.conversation_id, "Hello")
    with pytest.raises(ValueError):
        await chats.finish_answer(answer)


async def test_the_database_itself_refuses_to_change_what_was_said(
    chats: Chats, database: Database
) -> None:
    made = await chats.create()
    await chats.say(made.conversation_id, "Hello", "Hi")
    with pytest.raises(HistoryError, match="never changed"):
        await database.run(lambda tables: tables.execute("update message set content = 'forged'"))


async def test_regenerating_adds_a_sibling_and_keeps_the_first(chats: Chats) -> None:
    made = await chats.create()
    first = await chats.say(made.conversation_id, "Rhyme", "Time")
    assert first.parent_id is not None
    second = await chats.begin_answer(made.conversation_id, first.parent_id)
    await chats.end(second, "Lime")
    assert await chats.siblings(first.message_id) == [first.message_id, second.message_id]
    assert contents(await chats.messages(made.conversation_id)) == ["Rhyme", "Lime"]
    await chats.set_active(made.conversation_id, first.message_id)
    assert contents(await chats.messages(made.conversation_id)) == ["Rhyme", "Time"]


async def test_only_a_users_message_is_answered(chats: Chats) -> None:
    made = await chats.create()
    answer = await chats.say(made.conversation_id, "Hello", "Hi")
    with pytest.raises(HistoryError, match="Only a message of yours"):
        await chats.begin_answer(made.conversation_id, answer.message_id)


async def test_editing_a_message_is_a_branch(chats: Chats) -> None:
    made = await chats.create()
    first = await chats.say(made.conversation_id, "One?", "One.")
    second = await chats.say(made.conversation_id, "Two?", "Two.")
    turn = await chats.begin_turn(made.conversation_id, "Three?", parent_id=first.message_id)
    await chats.end(turn.answer, "Three.")
    branch = ["One?", "One.", "Three?", "Three."]
    assert contents(await chats.messages(made.conversation_id)) == branch
    assert second.parent_id is not None
    assert await chats.siblings(turn.user.message_id) == [
        second.parent_id,
        turn.user.message_id,
    ]


async def test_editing_the_first_message_makes_another_root(chats: Chats) -> None:
    made = await chats.create()
    await chats.say(made.conversation_id, "One?", "One.")
    turn = await chats.begin_turn(made.conversation_id, "Uno?", parent_id=None)
    assert len(await chats.siblings(turn.user.message_id)) == 2
    assert contents(await chats.messages(made.conversation_id)) == ["Uno?", ""]


async def test_switching_to_a_version_shows_the_newest_branch_below_it(chats: Chats) -> None:
    made = await chats.create()
    first = await chats.say(made.conversation_id, "One?", "One.")
    await chats.say(made.conversation_id, "Two?", "Two.")
    await chats.begin_turn(made.conversation_id, "Uno?", parent_id=None)
    assert first.parent_id is not None
    await chats.set_active(made.conversation_id, first.parent_id)
    assert contents(await chats.messages(made.conversation_id)) == ["One?", "One.", "Two?", "Two."]


async def test_a_message_of_another_conversation_is_not_found_here(chats: Chats) -> None:
    here, there = await chats.create(), await chats.create()
    answer = await chats.say(there.conversation_id, "Hello", "Hi")
    for call in (chats.set_active, chats.begin_answer):
        with pytest.raises(NotFound):
            await call(here.conversation_id, answer.message_id)
    with pytest.raises(NotFound):
        await chats.begin_turn(here.conversation_id, "Hello", parent_id=answer.message_id)


async def test_the_last_messages_of_a_long_branch_are_read_alone(chats: Chats) -> None:
    made = await chats.create()
    for number in range(5):
        await chats.say(made.conversation_id, f"{number}?", f"{number}.")
    last = await chats.messages(made.conversation_id, limit=3)
    assert contents(last) == ["3.", "4?", "4."]
    assert await chats.messages(made.conversation_id, limit=0) == []
    assert len(await chats.messages(made.conversation_id, limit=99)) == 10
    assert await chats.num_messages(made.conversation_id) == 10


async def test_reading_the_end_of_a_long_branch_takes_no_longer_walk(
    chats: Chats, database: Database
) -> None:
    """Counted in steps of SQLite's machine, which do not depend on the machine below it."""
    made = await chats.create()

    async def steps() -> int:
        counted = []
        await database.run(
            lambda tables: tables.conn.set_progress_handler(lambda: counted.append(1), 10)
        )
        await chats.messages(made.conversation_id, limit=4)
        await chats.num_messages(made.conversation_id)
        await database.run(lambda tables: tables.conn.set_progress_handler(None, 0))
        return len(counted)

    for number in range(3):
        await chats.say(made.conversation_id, f"{number}?", f"{number}.")
    short = await steps()
    for number in range(40):
        await chats.say(made.conversation_id, f"{number}?", f"{number}.")
    assert await steps() <= short * 1.2


async def test_an_empty_conversation_has_no_messages(chats: Chats) -> None:
    made = await chats.create()
    assert await chats.messages(made.conversation_id) == []
    assert await chats.num_messages(made.conversation_id) == 0


async def test_a_path_leads_from_the_root_to_its_message(chats: Chats) -> None:
    made = await chats.create()
    first = await chats.say(made.conversation_id, "One?", "One.")
    await chats.say(made.conversation_id, "Two?", "Two.")
    assert contents(await chats.path(first.message_id)) == ["One?", "One."]


async def test_the_list_shows_what_was_used_last_first(chats: Chats) -> None:
    one, two, three = [await chats.create(name) for name in ("one", "two", "three")]
    await chats.say(one.conversation_id, "Hello", "Hi")
    await chats.delete(two.conversation_id)
    assert [each.title for each in await chats.list()] == ["one", "three"]
    assert [each.title for each in await chats.list(limit=1, offset=1)] == ["three"]
    assert three in await chats.list()


async def test_a_deleted_conversation_is_hidden_until_it_is_restored(chats: Chats) -> None:
    made = await chats.create("Tea")
    await chats.say(made.conversation_id, "Hello", "Hi")
    before = await chats.get(made.conversation_id)
    await chats.delete(made.conversation_id)
    assert await chats.list() == []
    for call in (chats.get, chats.messages, chats.num_messages, chats.delete):
        with pytest.raises(NotFound):
            await call(made.conversation_id)
    with pytest.raises(NotFound):
        await chats.begin_turn(made.conversation_id, "Hello")
    await chats.restore(made.conversation_id)
    assert await chats.get(made.conversation_id) == before
    assert contents(await chats.messages(made.conversation_id)) == ["Hello", "Hi"]


async def test_an_answer_of_a_deleted_conversation_is_still_stored(chats: Chats) -> None:
    made = await chats.create()
    _, answer = await chats.begin_turn(made.conversation_id, "Hello")
    await chats.delete(made.conversation_id)
    await chats.end(answer, "Hi")
    await chats.restore(made.conversation_id)
    assert contents(await chats.messages(made.conversation_id)) == ["Hello", "Hi"]


async def test_a_purged_conversation_is_gone_and_its_answer_is_not_found(chats: Chats) -> None:
    made = await chats.create()
    _, answer = await chats.begin_turn(made.conversation_id, "Hello")
    await chats.purge(made.conversation_id)
    with pytest.raises(NotFound):
        await chats.restore(made.conversation_id)
    with pytest.raises(NotFound):
        await chats.save_partial(answer.message_id, "Hi", "")


async def test_only_what_is_deleted_and_was_not_restored_is_purged(chats: Chats) -> None:
    kept, restored, deleted = [await chats.create(name) for name in ("kept", "restored", "gone")]
    await chats.delete(restored.conversation_id)
    await chats.delete(deleted.conversation_id)
    await chats.restore(restored.conversation_id)
    assert await chats.purge_deleted() == 1
    with pytest.raises(NotFound):
        await chats.restore(deleted.conversation_id)
    assert await chats.purge_deleted() == 0
    assert await chats.list() == [restored, kept]


SECRET = "".join(map(chr, range(0x9000, 0x9030)))
OPEN = "".join(map(chr, range(0x4E00, 0x4F00)))


def found_in_files(folder: Path, letters: str) -> str:
    whole = b"".join(file.read_bytes() for file in folder.iterdir())
    return "".join(letter for letter in letters if letter.encode() in whole)


@pytest.mark.parametrize("seed", range(2))
async def test_after_a_purge_no_letter_of_the_chat_is_in_any_file(
    chats: Chats, database: Database, path: Path, seed: int
) -> None:
    """The secret chats have an alphabet of their own, so that a single letter tells on them."""
    dice = random.Random(seed)

    def text(letters: str) -> str:
        return "".join(dice.choices(letters, k=int(10 ** dice.uniform(0, 3.5))))

    made = [
        (await chats.create(text(letters)[:30], text(letters), {"stop": [text(letters)]}), letters)
        for letters in (OPEN, SECRET, OPEN, SECRET)
    ]
    for _ in range(25):
        conversation, letters = dice.choice(made)
        conversation_id = conversation.conversation_id
        _, answer = await chats.begin_turn(conversation_id, text(letters))
        await chats.save_partial(answer.message_id, text(letters), text(letters))
        ended = replace(answer, thinking=text(letters), notice=text(letters)[:50])
        await chats.end(ended, text(letters))
        await chats.rename(conversation_id, text(letters)[:30])
    open_ids, secret_ids = (
        [each.conversation_id for each, of in made if of is letters] for letters in (OPEN, SECRET)
    )
    with closing(sqlite3.connect(path)) as connection:
        database.backups.make(connection, 0)
    assert found_in_files(path.parent, SECRET) == SECRET

    await chats.purge(secret_ids[0])
    await chats.delete(secret_ids[1])
    await chats.purge_deleted()
    assert found_in_files(path.parent, SECRET) == ""
    assert sum([await chats.num_messages(each) for each in open_ids]) > 0
    database.close()
    assert found_in_files(path.parent, SECRET) == ""


async def test_a_purge_beside_a_reader_says_what_is_left_to_do(
    chats: Chats, database: Database, path: Path
) -> None:
    made = await chats.create("x")
    await chats.say(made.conversation_id, SECRET, SECRET)
    await database.run(lambda tables: tables.execute("pragma busy_timeout = 1").fetchall())
    with closing(sqlite3.connect(path, isolation_level=None)) as reader:
        reader.execute("begin")
        reader.execute("select * from message").fetchall()
        with pytest.raises(HistoryError, match="at the next start"):
            await chats.purge(made.conversation_id)
        database.close()
    with Database(path):
        assert found_in_files(path.parent, SECRET) == ""


@pytest.mark.parametrize("seed", range(4))
async def test_whatever_the_user_does_no_message_is_lost(
    chats: Chats, database: Database, seed: int
) -> None:
    """A random history of sending, regenerating, editing, switching, deleting and restoring."""
    dice = random.Random(seed)
    shown = {(await chats.create()).conversation_id: True for _ in range(2)}
    said: dict[str, Message] = {}

    def remember(*messages: Message) -> None:
        said.update((message.message_id, message) for message in messages)

    async def end(answer: Message) -> None:
        remember(await chats.end(answer, f"answer {len(said)}"))

    for number in range(60):
        conversation_id = dice.choice(list(shown))
        mine = [each for each in said.values() if each.conversation_id == conversation_id]
        move = dice.choice(["send", "send", "edit", "regenerate", "switch", "delete", "crash"])
        if not shown[conversation_id]:
            await chats.restore(conversation_id)
            shown[conversation_id] = True
        elif move == "delete":
            await chats.delete(conversation_id)
            shown[conversation_id] = False
            continue
        elif move == "send" or not mine:
            turn = await chats.begin_turn(conversation_id, f"message {number}")
            remember(*turn)
            await end(turn.answer)
        elif move == "edit":
            edited = dice.choice(mine)
            turn = await chats.begin_turn(
                conversation_id, f"message {number}", parent_id=edited.parent_id
            )
            remember(*turn)
            await end(turn.answer)
        elif move == "regenerate":
            user = dice.choice([each for each in mine if each.role is Role.USER])
            await end(await chats.begin_answer(conversation_id, user.message_id))
        elif move == "switch":
            await chats.set_active(conversation_id, dice.choice(mine).message_id)
        elif move == "crash":
            turn = await chats.begin_turn(conversation_id, f"message {number}")
            await chats.save_partial(turn.answer.message_id, "as far as it came", "")
            assert await chats.interrupt_stale() == 1
            remember(
                turn.user,
                replace(turn.answer, content="as far as it came", state=MessageState.INTERRUPTED),
            )

        active = await chats.messages(conversation_id)
        parents = [message.parent_id for message in active]
        assert parents == [None, *[message.message_id for message in active]][: len(active)]
        leaf = (await chats.get(conversation_id)).active_leaf_id
        assert leaf == (active[-1].message_id if active else None)
        assert not any(message.parent_id == leaf for message in said.values())
        assert await chats.num_messages(conversation_id) == len(active)

    for message in said.values():
        (*_, stored) = await chats.path(message.message_id)
        assert stored == message
    num_stored = await database.run(lambda tables: tables.table("message").count)
    assert num_stored == len(said)
    # Raises if an index does not hold exactly what the tables hold.
    for index in ("conversation_fts", "message_fts"):
        check = f"insert into {index}({index}, rank) values ('integrity-check', 1)"
        await database.run(lambda tables, check=check: tables.execute(check))
