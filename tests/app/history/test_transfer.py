import json
import math
import uuid
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.chat.example import Example
from app.chat.likelihoods import Chosen, Likelihoods
from app.chat.message import MessageState, Overflow, Role
from app.history.database import Database
from app.history.search import search
from app.history.transfer import ImportReport, export, import_
from engine.errors import HistoryError, NotFound
from engine.guided.grammar import GrammarKind
from tests.app.history.chats import Chats


async def a_chat(chats: Chats, title: str = "Tea") -> str:
    """A conversation with a branch, a regenerated answer and an interrupted one."""
    examples = (Example("2+2?", "Vier."),)
    made = await chats.create(title, "Be brief.", {"temperature": 0.5}, examples=examples)
    first = await chats.say(made.conversation_id, "Green?", "Green.")
    assert first.parent_id is not None
    again = await chats.begin_answer(made.conversation_id, first.parent_id)
    await chats.finish_answer(
        replace(
            again,
            content="Greener.",
            thinking="How green?",
            state=MessageState.STOPPED,
            model="small",
            token_ids=(1, 2, 3),
            timings={"ttft_ms": 3.5},
            likelihoods=Likelihoods.of([Chosen(each, -0.5) for each in "ab<"]),
        )
    )
    await chats.begin_turn(made.conversation_id, "Black?", parent_id=None)
    await chats.interrupt_stale()
    return made.conversation_id


async def everything(database: Database) -> list[dict[str, Any]]:
    conversations: list[dict[str, Any]] = (await export(database))["conversations"]
    return conversations


async def test_an_export_is_plain_json_with_the_whole_tree(
    chats: Chats, database: Database
) -> None:
    conversation_id = await a_chat(chats)
    document = await export(database)
    assert json.loads(json.dumps(document, allow_nan=False)) == document
    assert document["inglenook"] == 1
    (conversation,) = document["conversations"]
    assert conversation["id"] == conversation_id
    assert [each["content"] for each in conversation["messages"]] == [
        "Green?",
        "Green.",
        "Greener.",
        "Black?",
        "",
    ]
    assert conversation["messages"][2]["token_ids"] == [1, 2, 3]


async def test_an_export_of_chosen_conversations_holds_only_these(
    chats: Chats, database: Database
) -> None:
    first, second = await a_chat(chats, "one"), await a_chat(chats, "two")
    document = await export(database, [second])
    assert [each["title"] for each in document["conversations"]] == ["two"]
    await chats.delete(first)
    assert [each["title"] for each in await everything(database)] == ["two"]
    with pytest.raises(NotFound):
        await export(database, [first])


async def test_an_import_after_a_purge_brings_everything_back(
    chats: Chats, database: Database
) -> None:
    conversation_id = await a_chat(chats)
    document = await export(database)
    shown = await chats.messages(conversation_id)
    await chats.purge(conversation_id)
    assert await import_(database, document) == ImportReport(imported=(conversation_id,))
    assert await everything(database) == document["conversations"]
    assert await chats.messages(conversation_id) == shown
    assert len(await search(database, "Greener")) == 1


async def test_what_is_here_already_is_skipped(chats: Chats, database: Database) -> None:
    conversation_id = await a_chat(chats)
    document = await export(database)
    assert await import_(database, document) == ImportReport(skipped=(conversation_id,))
    assert await everything(database) == document["conversations"]


async def test_what_was_deleted_comes_back_with_its_import(
    chats: Chats, database: Database
) -> None:
    conversation_id = await a_chat(chats)
    document = await export(database)
    await chats.delete(conversation_id)
    await import_(database, document)
    assert await everything(database) == document["conversations"]


async def test_what_went_on_since_is_not_overwritten(chats: Chats, database: Database) -> None:
    conversation_id = await a_chat(chats)
    document = await export(database)
    await chats.say(conversation_id, "White?", "White.")
    (before,) = await everything(database)
    report = await import_(database, document)
    (new_id,) = report.copied
    assert (report.imported, report.skipped) == ((), ())
    kept, added = await everything(database)
    assert kept == before
    assert added["id"] == new_id
    (original,) = document["conversations"]
    assert [(each["content"], each["token_ids"]) for each in added["messages"]] == [
        (each["content"], each["token_ids"]) for each in original["messages"]
    ]
    assert not {each["id"] for each in added["messages"]} & {
        each["id"] for each in before["messages"]
    }
    assert added["active_leaf_id"] == added["messages"][-1]["id"]


async def test_message_ids_that_are_taken_make_a_copy(chats: Chats, database: Database) -> None:
    await a_chat(chats)
    document = await export(database)
    document["conversations"][0]["id"] = "another"
    assert len((await import_(database, document)).copied) == 1
    assert len(await everything(database)) == 2


async def test_a_running_answer_is_exported_as_interrupted(
    chats: Chats, database: Database
) -> None:
    made = await chats.create()
    await chats.begin_turn(made.conversation_id, "Hello")
    document = await export(database)
    assert document["conversations"][0]["messages"][1]["state"] == "interrupted"
    assert (await import_(database, document)).skipped == (made.conversation_id,)


async def test_unknown_fields_and_missing_ones_hide_no_chat(
    chats: Chats, database: Database
) -> None:
    document = {
        "inglenook": 1,
        "from": "elsewhere",
        "conversations": [
            {"id": "c", "colour": "red", "messages": [{"id": "m", "role": "user", "mood": 1}]},
            {"id": "d", "sampling": {"temperature": 1, "mood": 2}},
        ],
    }
    assert (await import_(database, document)).imported == ("c", "d")
    # An unknown control would make each answer fail.
    assert (await chats.get("d")).sampling == {"temperature": 1}
    assert {each.conversation_id for each in await chats.list()} == {"c", "d"}


async def test_an_import_can_be_spoken_on(chats: Chats, database: Database) -> None:
    conversation_id = await a_chat(chats)
    document = await export(database)
    await chats.purge(conversation_id)
    await import_(database, document)
    await chats.say(conversation_id, "White?", "White.")
    assert await chats.num_messages(conversation_id) == 4


def changed(change: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    document: dict[str, Any] = {
        "inglenook": 1,
        "conversations": [
            {"id": "fine", "messages": []},
            {
                "id": "c",
                "active_leaf_id": "b",
                "messages": [
                    {"id": "a", "role": "user", "content": "Hello"},
                    {"id": "b", "parent_id": "a", "role": "assistant", "content": "Hi"},
                ],
            },
        ],
    }
    change(document)
    return document


def in_conversation(**fields: Any) -> dict[str, Any]:
    return changed(lambda document: document["conversations"][1].update(fields))


def in_message(**fields: Any) -> dict[str, Any]:
    return changed(lambda document: document["conversations"][1]["messages"][1].update(fields))


FORM = {"kind": "regex", "source": "a"}
MALFORMED: dict[str, tuple[Any, str]] = {
    "no object": ([1, 2], "no export"),
    "another program's": ({"chats": []}, "no export"),
    "newer": ({"inglenook": 2, "conversations": []}, "newer version"),
    "version is a word": ({"inglenook": "one", "conversations": []}, "version"),
    "version is true": ({"inglenook": True, "conversations": []}, "version"),
    "no list": ({"inglenook": 1}, "no list"),
    "no conversation": ({"inglenook": 1, "conversations": ["c"]}, "conversation 1 is not"),
    "no id": (in_conversation(id=""), "`id` of conversation 2 is missing"),
    "no messages": (in_conversation(messages={}), "`messages` of conversation 2"),
    "unknown leaf": (in_conversation(active_leaf_id="z"), "active message of conversation 2"),
    "title is a number": (in_conversation(title=7), "`title` of conversation 2"),
    "endless time": (in_conversation(created_at=math.inf), "`created_at`"),
    "huge time": (in_conversation(created_at=10**400), "`created_at`"),
    "true time": (in_conversation(updated_at=True), "`updated_at`"),
    "sampling is a list": (in_conversation(sampling=[]), "`sampling`"),
    "sampling is no JSON": (in_conversation(sampling={"x": math.nan}), "`sampling`"),
    "same id twice": (in_message(id="a", parent_id=None), "two messages"),
    "parent of itself": (in_message(parent_id="b"), "does not stand before"),
    "unknown parent": (in_message(parent_id="z"), "does not stand before"),
    "unknown role": (in_message(role="poet"), "`role` of message 2 of conversation 2"),
    "role is a list": (in_message(role=[]), "`role`"),
    "unknown state": (in_message(state="asleep"), "`state`"),
    "content is none": (in_message(content=None), "`content`"),
    "token is a word": (in_message(token_ids=["x"]), "`token_ids`"),
    "token is true": (in_message(token_ids=[True]), "`token_ids`"),
    "token too large": (in_message(token_ids=[2**31]), "`token_ids`"),
    "timings is a text": (in_message(timings="fast"), "`timings`"),
    "a switch is a word": (in_message(timings={"is_reproducible": "no"}), "is_reproducible"),
    "what was seen is a list": (in_message(seen=[]), "`seen` of message 2"),
    "a prompt has no size": (in_message(seen={"num_tokens": "many"}), "`num_tokens`"),
    "a summary is a number": (in_message(seen={"summary": 3}), "`summary` of `seen`"),
    "an overflow nobody knows": (in_conversation(overflow="panic"), "`overflow`"),
    "a figure is a word": (in_message(timings={"ttft_ms": "soon"}), "ttft_ms is no figure"),
    "a figure is huge": (in_message(timings={"tpot_ms": 10**400}), "tpot_ms is no figure"),
    "a control is a word": (in_conversation(sampling={"temperature": "hot"}), "`sampling`"),
    "a control is too low": (in_conversation(sampling={"temperature": -3}), "between 0 and 5"),
    "a control is broken": (in_conversation(sampling={"seed": 1.5}), "whole number"),
    "a control is no list": (in_conversation(sampling={"stop": 5}), "list of texts"),
    "a form is a text": (in_conversation(answer_form="csv"), "`answer_form` of conversation 2"),
    "a form of no kind": (in_conversation(answer_form={"kind": "magic"}), "`answer_form`"),
    "made in no form": (in_message(made_in={"fault": "x"}), "`made_in` of message 2"),
    "choices are words": (
        in_conversation(answer_form={"kind": "choice", "source": "yes or no"}),
        "JSON list of texts",
    ),
    "half checked": (in_message(made_in={"form": FORM, "is_checked": 1}), "true or false"),
}


@pytest.mark.parametrize(("document", "reason"), MALFORMED.values(), ids=MALFORMED)
async def test_a_malformed_document_is_refused_before_anything_is_written(
    database: Database, document: Any, reason: str
) -> None:
    with pytest.raises(HistoryError, match=reason):
        await import_(database, document)
    assert await everything(database) == []


figures = st.fixed_dictionaries(
    {},
    optional={
        "ttft_ms": st.floats(0, 1e9),
        "finish": st.text(),
        "restored_from": st.sampled_from(["ram", "disk"]),
        "is_reproducible": st.booleans(),
    },
)
samplings = st.fixed_dictionaries(
    {}, optional={"temperature": st.floats(0, 5), "seed": st.integers(0, 2**64 - 1)}
)
times = st.floats(min_value=0, max_value=2e9)
texts = st.text(max_size=40)
sights = st.fixed_dictionaries(
    {},
    optional={
        "num_tokens": st.integers(1, 10**6),
        **dict.fromkeys(("digest", "first_id", "summary"), st.text(min_size=1, max_size=40)),
    },
)
CHOICE = GrammarKind.CHOICE
some_text = st.text(min_size=1, max_size=40)
sources = st.fixed_dictionaries(
    {
        "kind": st.sampled_from([each.value for each in GrammarKind if each is not CHOICE]),
        "source": texts,
    }
)
choices = st.fixed_dictionaries(
    {"kind": st.just(CHOICE.value), "source": st.lists(some_text).map(json.dumps)}
)
qualities = st.fixed_dictionaries(
    {},
    optional={
        "is_approximate": st.just(True),
        "examples": st.lists(texts, min_size=1, max_size=3),
        "title": some_text,
        "description": some_text,
        "medium": st.sampled_from(["json", "csv", "markdown"]),
    },
)
forms = st.builds(lambda written, other: {**written, **other}, sources | choices, qualities)
made_in = st.one_of(
    st.fixed_dictionaries({"form": forms}),
    st.fixed_dictionaries({"form": forms, "is_checked": st.just(True), "fault": texts}),
)
may_have_a_form = st.fixed_dictionaries({}, optional={"answer_form": forms})
may_be_made_in_one = st.fixed_dictionaries({}, optional={"made_in": made_in})


@st.composite
def conversations(draw: st.DrawFn) -> dict[str, Any]:
    messages: list[dict[str, Any]] = []
    for _ in range(draw(st.integers(0, 8))):
        parents = [None, *(message["id"] for message in messages)]
        messages.append(
            {
                "id": uuid.uuid4().hex,
                "parent_id": draw(st.sampled_from(parents)),
                "role": draw(st.sampled_from([role.value for role in Role])),
                "content": draw(texts),
                "thinking": draw(texts),
                "state": draw(st.sampled_from(["done", "stopped", "interrupted", "failed"])),
                "finish_reason": draw(texts),
                "notice": draw(texts),
                "model": draw(texts),
                "token_ids": draw(st.lists(st.integers(-(2**31), 2**31 - 1), max_size=9)),
                "timings": draw(figures),
                "seen": draw(sights),
                "created_at": draw(times),
                **draw(may_be_made_in_one),
            }
        )
    return {
        "id": uuid.uuid4().hex,
        "title": draw(texts),
        "created_at": draw(times),
        "updated_at": draw(times),
        "system_prompt": draw(texts),
        "sampling": draw(samplings),
        "active_leaf_id": draw(st.sampled_from([each["id"] for each in messages] or [None])),
        "overflow": draw(st.sampled_from([choice.value for choice in Overflow])),
        "messages": messages,
        **draw(may_have_a_form),
    }


@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(conversations(), max_size=3))
async def test_every_tree_comes_back_as_it_went(
    database: Database, trees: list[dict[str, Any]]
) -> None:
    ids = [tree["id"] for tree in trees]
    document = json.loads(json.dumps({"inglenook": 1, "conversations": trees}))
    assert (await import_(database, document)).imported == tuple(ids)
    exported = json.loads(json.dumps(await export(database, ids)))
    assert exported["conversations"] == trees
    assert (await import_(database, exported)).skipped == tuple(ids)


async def test_messages_without_an_active_one_are_shown_to_the_newest(
    database: Database, chats: Chats
) -> None:
    await import_(database, in_conversation(active_leaf_id=None))
    assert [each.content for each in await chats.messages("c")] == ["Hello", "Hi"]


@pytest.mark.parametrize("strange", ['"><img src=x>', "a b", "é", "x" * 65])
async def test_ids_that_no_page_could_hold_are_replaced_and_their_links_kept(
    database: Database, chats: Chats, strange: str
) -> None:
    document = in_message(parent_id=strange, seen={"first_id": strange})
    conversation = document["conversations"][-1]
    conversation["messages"][0]["id"] = strange
    (new_id,) = (await import_(database, document)).copied
    question, answer = await chats.messages(new_id)
    assert question.message_id != strange
    assert answer.parent_id == answer.seen.first_id == question.message_id
