import pytest

from app.history.database import Database
from app.history.search import Hit, search
from tests.app.history.chats import Chats


def matched(hit: Hit) -> str:
    return hit.snippet[hit.match_start : hit.match_end]


async def found(database: Database, query: str) -> list[str]:
    return [hit.snippet for hit in await search(database, query)]


async def test_a_part_of_a_word_is_found_in_either_case(chats: Chats, database: Database) -> None:
    made = await chats.create("Heating")
    answer = await chats.say(made.conversation_id, "What is it?", "An INGLENOOK is a corner.")
    (hit,) = await search(database, "glenoo")
    assert hit.message_id == answer.message_id
    assert hit.conversation == await chats.get(made.conversation_id)
    assert matched(hit) == "GLENOO"


async def test_titles_come_first_then_the_newest(chats: Chats, database: Database) -> None:
    old = await chats.create("nothing")
    await chats.say(old.conversation_id, "about cats", "first")
    named = await chats.create("Cats")
    await chats.say(old.conversation_id, "again about cats", "second")
    newest = await chats.create("nothing either")
    await chats.say(newest.conversation_id, "newest about cats", "third")
    hits = await search(database, "cats")
    assert [hit.snippet for hit in hits] == ["Cats", "newest about cats", "again about cats"]
    assert [hit.conversation.conversation_id for hit in hits] == [
        each.conversation_id for each in (named, newest, old)
    ]
    assert [hit.message_id is None for hit in hits] == [True, False, False]
    assert len(await search(database, "cats", limit=2)) == 2
    assert len(await search(database, "cats", limit=1)) == 1
    assert await search(database, "cats", limit=0) == []


@pytest.mark.parametrize("query", ["fire", "fi"], ids=["by index", "by reading"])
async def test_a_conversation_that_holds_it_many_times_is_found_once_and_hides_no_other(
    chats: Chats, database: Database, query: str
) -> None:
    other = await chats.create("x")
    await chats.say(other.conversation_id, "An old fire", "Yes.")
    titled = await chats.create("My fire")
    untitled = await chats.create("y")
    for made in (titled, untitled):
        for number in range(3):
            await chats.say(made.conversation_id, f"fire {number}?", f"fire {number}.")
    assert await found(database, query) == ["My fire", "fire 2.", "An old fire"]
    hits = await search(database, query, limit=2)
    assert [hit.snippet for hit in hits] == ["My fire", "fire 2."]


@pytest.mark.parametrize("query", ["fire", "fi"], ids=["by index", "by reading"])
async def test_deleted_conversations_are_not_found(
    chats: Chats, database: Database, query: str
) -> None:
    made = await chats.create("fireplace")
    await chats.say(made.conversation_id, "fire?", "fire.")
    assert len(await search(database, query)) == 1
    await chats.delete(made.conversation_id)
    assert await search(database, query) == []
    await chats.restore(made.conversation_id)
    assert len(await search(database, query)) == 1
    await chats.purge(made.conversation_id)
    assert await search(database, query) == []


@pytest.mark.parametrize("query", ["early", "ea"], ids=["by index", "by reading"])
async def test_an_answer_is_found_when_it_has_ended(
    chats: Chats, database: Database, query: str
) -> None:
    made = await chats.create("x")
    _, answer = await chats.begin_turn(made.conversation_id, "?")
    await chats.save_partial(answer.message_id, "early", "")
    assert await search(database, query) == []
    await chats.interrupt_stale()
    assert await found(database, query) == ["early"]


async def test_a_renamed_conversation_is_found_by_its_new_name(
    chats: Chats, database: Database
) -> None:
    made = await chats.create("kettle")
    await chats.rename(made.conversation_id, "teapot")
    assert await found(database, "kettle") == []
    assert await found(database, "teapot") == ["teapot"]


HOSTILE = [
    '"',
    '""',
    '"quoted"',
    "it's",
    "a*",
    "abc*",
    "cats AND dogs",
    "NOT",
    "NEAR(a b)",
    "title:cats",
    "content : x",
    "-minus",
    "^first",
    "(",
    "{a b}",
    "a + b",
    "100%",
    "snake_case",
    "_",
    "%",
    "\\",
    "\\%",
    "?1",
    ":limit",
    "';drop table message;--",
]


@pytest.mark.parametrize("query", HOSTILE)
async def test_a_query_is_literal_text_and_never_an_expression(
    chats: Chats, database: Database, query: str
) -> None:
    made = await chats.create("x")
    others = "cats dogs quoted abc a b first minus snakeXcase 100 x NEAR"
    await chats.say(made.conversation_id, others, f"before {query} after")
    (hit,) = await search(database, query)
    assert hit.snippet == f"before {query} after"
    assert matched(hit) == query


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("我喜欢喝绿茶和咖啡", "绿茶"),
        ("我喜欢喝绿茶和咖啡", "茶"),
        ("我喜欢喝绿茶和咖啡", "喝绿茶和"),
        ("한국어 문장입니다", "문장입"),
        ("Party 🎉 now", "🎉"),
        ("family 👩‍👩‍👧 here", "👩‍👩‍👧"),
        ("ÄRGER MIT ÖL", "ärger"),
        ("ÄRGER MIT ÖL", "öl"),
        ("ПРИВЕТ", "привет"),
        ("ПРИВЕТ", "ив"),
        ("cafe\u0301", "e\u0301"),
    ],
)
async def test_every_script_is_searched(
    chats: Chats, database: Database, text: str, query: str
) -> None:
    made = await chats.create("x")
    await chats.say(made.conversation_id, "?", text)
    (hit,) = await search(database, query)
    assert matched(hit).casefold() == query.casefold()


@pytest.mark.parametrize("query", ["", "  ", "\n", "\0"])
async def test_an_empty_query_finds_nothing(chats: Chats, database: Database, query: str) -> None:
    await chats.create("something")
    assert await search(database, query) == []


async def test_a_zero_character_or_half_a_character_does_no_harm(
    chats: Chats, database: Database
) -> None:
    await chats.create("something")
    assert await found(database, "some\0") == ["something"]
    assert await found(database, "\ud83d something") == []


async def test_a_snippet_shows_the_surroundings_on_one_line(
    chats: Chats, database: Database
) -> None:
    made = await chats.create("x")
    text = "start " + "before " * 50 + "\n\tneedle\n " + "after " * 50 + "end"
    await chats.say(made.conversation_id, "?", text)
    (hit,) = await search(database, "NEEDLE")
    assert matched(hit) == "needle"
    assert hit.snippet.startswith("…") and hit.snippet.endswith("…")
    assert "before needle after" in hit.snippet
    assert len(hit.snippet) < 140
