"""Files that give orders, from their bytes to the prompt of a model that repeats all it is given.

What the page makes of such an answer is in `tests/app/ui/test_injection_page.py`, and what other
families of templates make of such passages in `tests/app/chat/test_injection.py`.
"""

import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import NamedTuple

import pytest
import pytest_asyncio

from app.chat.message import Message
from app.documents.library import Library
from app.documents.reading import Reader
from app.documents.rows import roots
from app.documents.scope import Scope
from app.ui.render import rows
from app.visible import UNSEEN as UNSEEN_CHARACTERS
from tests.app.chat.room import Room
from tests.app.documents.injected import AFTER, CANARY, FACT, FILES, QUESTION, UNSEEN

pytestmark = pytest.mark.asyncio(loop_scope="module")
HARMLESS = "harmless.txt"
FENCED = re.compile(r"<<passage \d+ \| (.*?) \| (?:.*?) \| (\w{8})>>\n(.*?)\n<<end \2>>", re.DOTALL)


class Asked(NamedTuple):
    """The question of one file: the prompt in ids and in words, and what was stored."""

    prompt: list[int]
    said: str
    answer: Message


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def chat_room(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Room]:
    """With all of these files and a harmless one, read by the real process."""
    folder = tmp_path_factory.mktemp("home")
    papers = folder / "papers"
    papers.mkdir()
    for name, data in FILES.items():
        (papers / name).write_bytes(data)
    (papers / HARMLESS).write_text(f"{FACT} {AFTER}")
    made = Room(folder / "history.sqlite3", max_tokens=16_000)
    made.__dict__["library"] = Library(folder / "documents.sqlite3", Reader())
    await made.library.prepare()
    await made.library.add(papers)
    await made.library.settled()
    yield made
    await made.close()


async def ask(room: Room, name: str) -> Asked:
    (root,) = await room.library.ask(roots)
    place = str(Path(root.path) / name)
    conversation = await room.conversations.create(documents=Scope(paths=(place,)))
    count = len(room.engine.streams) + 1
    job = await room.jobs.send(conversation.conversation_id, QUESTION)
    stream = await room.stream(count=count)
    tokenizer = room.chat_model.loaded.tokenizer
    said = b"".join(map(tokenizer.token_bytes, stream.prompt)).decode()
    stream.end(said)
    return Asked(list(stream.prompt), said, (await job.finished()).message)


@pytest.mark.parametrize("name", FILES)
async def test_an_order_stays_a_quotation(name: str, chat_room: Room) -> None:
    asked = await ask(chat_room, name)
    found = FENCED.findall(asked.said)
    assert len(found) == 1, asked.said
    ((_, fence, inside),) = found
    # Between the only two signs of this answer is all of the file; the question comes after them.
    assert asked.said.count(fence) == 2
    assert FACT.split()[-1] in inside and "Danube at Passau" in inside
    before, after = asked.said.split(f"<<end {fence}>>")
    assert QUESTION in after and QUESTION not in before and CANARY not in after
    assert not UNSEEN_CHARACTERS.search(inside)
    if name in UNSEEN:
        assert CANARY not in asked.said
    # No id but the template's own stands for more than its letters.
    harmless = await ask(chat_room, HARMLESS)
    controls = {
        token.token_id for token in chat_room.chat_model.loaded.tokenizer.control_tokens.values()
    }
    assert [each for each in asked.prompt if each in controls] == [
        each for each in harmless.prompt if each in controls
    ]
    shown = "".join(str(row["content"]) for row in rows([asked.answer]))
    assert "![" not in shown and "<img" not in shown and "<script" not in shown
    for address in re.findall(r'href="([^"]*)"', shown):
        assert address.startswith("#")
