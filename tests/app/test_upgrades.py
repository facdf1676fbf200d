"""What past versions left in a home is opened by this one: settings, history, and KV.

Whatever was shipped stays as it was: the steps of the history's schema have digests here, and the
settings files are those that each version wrote.
"""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path

import numpy as np
import pytest
from sqlite_utils import Database as Tables

from app.chat.message import MessageState, Overflow, Role
from app.commands.carry_out import carry_out
from app.commands.options import Options
from app.history.conversations import Conversations
from app.history.database import Database
from app.history.migrations import MIGRATIONS, migrate
from app.history.search import search
from app.paths import Paths
from app.settings import Settings, load_settings, save_settings
from engine.errors import DatabaseNewer
from engine.kv import segment_file, segment_index
from engine.kv.disk_check import check_disk
from engine.kv.disk_folder import DiskFolder
from tests.app.commands.console import Recorder
from tests.engine.kv.stored import (
    NAMESPACE,
    blob_of,
    files_in,
    key_of,
    number_of,
    settle,
    write,
)
from tests.fakes_model import FakeEngine, FakeModelServices

DIGESTS = (
    "fd0394e9d18be651",
    "4605a5179278a67d",
    "e72c048b26a82ee1",
    "b1138d8d90b385bf",
    "d223c4aafc41e385",
    "7321f3a8fe14d01a",
    "41c30c5eb6546a9e",
    "503e391ea9fa73c4",
)
PAST = range(1, len(MIGRATIONS))

# Each as that version wrote it, with every choice another one than its default.
FIRST = {
    "model": "/models/a.gguf",
    "context_tokens": 4096,
    "default_system_prompt": "Be brief.",
    "default_sampling": {"temperature": 0.2},
}
WITH_SWITCHES = FIRST | {"reproducible": True, "automatic_titles": False}
WITH_MEMORY = WITH_SWITCHES | {
    "threads": 3,
    "max_batch_tokens": 256,
    "kv_type": "q8_0",
    "kv_ram_bytes": 10**9,
    "kv_disk_bytes": 2 * 10**9,
}
WITH_EXAMPLES = WITH_MEMORY | {
    "default_examples": [{"user": "2+2?", "assistant": "4"}],
    "show_likelihoods": True,
}
SETTINGS = [FIRST, WITH_SWITCHES, WITH_MEMORY, WITH_EXAMPLES]


def schema_of(number: int) -> str:
    """Tables with their columns, and what stands beside them; not the words that made them."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        migrate(Tables(connection), MIGRATIONS[:number])
        parts = connection.execute("select type, name from sqlite_master order by name").fetchall()
        columns = {
            name: connection.execute(f"pragma table_info({name})").fetchall()
            for kind, name in parts
            if kind == "table"
        }
        return repr((parts, columns))


def digest_of(number: int) -> str:
    return blake2b(schema_of(number).encode(), digest_size=8).hexdigest()


def test_no_step_that_was_shipped_was_edited() -> None:
    """Who adds a step adds its digest; those before it stay as they are for ever."""
    assert tuple(digest_of(number) for number in range(1, len(MIGRATIONS) + 1)) == DIGESTS


@pytest.fixture(params=PAST, ids=lambda number: f"v{number}")
def old(request: pytest.FixtureRequest, paths: Paths) -> Iterator[int]:
    """The number of a past schema; a history of it lies in the home, with a tree of messages."""
    number: int = request.param
    with closing(sqlite3.connect(paths.database, isolation_level=None)) as connection:
        migrate(Tables(connection), MIGRATIONS[:number])
        connection.execute(
            "insert into conversation(id, title, created_at, updated_at, system_prompt, sampling,"
            " active_leaf_id) values ('c', 'Über Öfen', 1, 9, 'Be brief.', '{\"top_k\": 5}', 'm4')"
        )
        connection.execute(
            "insert into conversation(id, title, created_at, updated_at, system_prompt, sampling,"
            " deleted_at) values ('gone', 'Deleted', 1, 2, '', '{}', 3)"
        )
        for name, parent, depth, role, state, content in (
            ("m1", None, 1, "user", "done", "What is a hearth?"),
            ("m2", "m1", 2, "assistant", "done", "A place for fire."),
            ("m3", "m1", 2, "assistant", "stopped", "The floor of"),
            ("m4", "m2", 3, "user", "done", "And an inglenook? 🙂"),
            ("m5", "m4", 4, "assistant", "streaming", "A recess"),
        ):
            connection.execute(
                "insert into message(id, conversation_id, parent_id, depth, role, state,"
                " created_at, content, thinking, finish_reason, notice, model, timings, token_ids)"
                " values (?, 'c', ?, ?, ?, ?, 5, ?, '', '', '', 'm', '{}', x'')",
                (name, parent, depth, role, state, content),
            )
    yield number


async def test_a_history_of_every_past_version_is_opened_whole(old: int, paths: Paths) -> None:
    with Database(paths.database) as database:
        conversations = Conversations(database)
        (conversation,) = await conversations.list()
        assert (conversation.title, conversation.system_prompt) == ("Über Öfen", "Be brief.")
        assert dict(conversation.sampling) == {"top_k": 5}
        assert conversation.overflow is Overflow.ASK
        assert (conversation.answer_form, conversation.examples) == (None, ())
        said = await conversations.messages("c")
        assert [each.content for each in said] == [
            "What is a hearth?",
            "A place for fire.",
            "And an inglenook? 🙂",
        ]
        assert [each.role for each in said] == [Role.USER, Role.ASSISTANT, Role.USER]
        assert set(await conversations.siblings("m2")) == {"m2", "m3"}
        (stopped,) = [each for each in await conversations.path("m3") if each.message_id == "m3"]
        assert stopped.state is MessageState.STOPPED and stopped.likelihoods is None


async def test_it_is_searched_written_and_tidied_as_a_new_one(old: int, paths: Paths) -> None:
    with Database(paths.database) as database:
        conversations = Conversations(database)
        assert await conversations.interrupt_stale() == 1
        turn = await conversations.begin_turn("c", "One more question")
        await conversations.finish_answer(
            replace(turn.answer, content="One more answer", state=MessageState.DONE)
        )
        for words in ("inglenook", "One more answer", "Über Öfen"):
            assert await search(database, words), words
        assert await conversations.purge_deleted() == 1


async def test_a_backup_of_it_is_made_before_and_still_works(old: int, paths: Paths) -> None:
    with closing(sqlite3.connect(paths.database)) as before:
        rows = before.execute("select id, content from message order by seq").fetchall()
    Database(paths.database).close()
    backup = paths.data / f"history.backup-v{old}.sqlite3"
    with closing(sqlite3.connect(backup)) as copy:
        assert copy.execute("pragma user_version").fetchone() == (old,)
        assert copy.execute("select id, content from message order by seq").fetchall() == rows
    backup.replace(paths.database)
    for left in paths.data.glob("history.sqlite3-*"):
        left.unlink()
    with Database(paths.database) as database:
        assert [each.title for each in await Conversations(database).list()] == ["Über Öfen"]


def test_a_history_of_a_newer_version_is_refused_with_both_numbers(paths: Paths) -> None:
    with closing(sqlite3.connect(paths.database)) as newer:
        newer.execute(f"pragma user_version = {len(MIGRATIONS) + 1}")
    before = paths.database.read_bytes()
    with pytest.raises(DatabaseNewer) as raised:
        Database(paths.database)
    sentence = str(raised.value)
    assert f"format {len(MIGRATIONS) + 1};" in sentence and f"up to {len(MIGRATIONS)}" in sentence
    assert paths.database.read_bytes() == before
    assert not list(paths.data.glob("*backup*"))


@pytest.mark.parametrize("written", SETTINGS, ids=lambda written: f"{len(written)} choices")
def test_settings_of_every_past_version_keep_their_choices(
    paths: Paths, written: dict[str, object]
) -> None:
    paths.settings.write_text(json.dumps(written, indent=2))
    settings = load_settings(paths.settings)
    for name, value in written.items():
        if name != "default_examples":
            assert getattr(settings, name) == value, name
    assert settings.sampling.temperature == 0.2
    untouched = [name for name in Settings.__dataclass_fields__ if name not in written]
    assert all(getattr(settings, name) == getattr(Settings(), name) for name in untouched)
    # And what is written now can be read again.
    save_settings(paths.settings, settings)
    assert load_settings(paths.settings) == settings


@pytest.fixture(params=["files", "index", "both"])
def old_kv(request: pytest.FixtureRequest, paths: Paths, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A KV folder whose files, or index, or both are of another format than ours."""
    with monkeypatch.context() as then:
        if request.param in ("files", "both"):
            then.setattr(segment_file, "VERSION", segment_file.VERSION + 1)
        if request.param in ("index", "both"):
            then.setattr(segment_index, "SCHEMA_VERSION", segment_index.SCHEMA_VERSION + 1)
        disk = DiskFolder(paths.kv, NAMESPACE)
        disk.open()
        write(disk, 1, 2, 3)
        disk.close(5)
    return paths.kv


def test_kv_of_another_format_is_taken_in_or_removed_and_never_believed(old_kv: Path) -> None:
    disk = DiskFolder(old_kv, NAMESPACE)
    found = [number_of(segment.key) for segment in disk.open()]
    # An index is believed until its file is opened; what is no file of ours is nothing then.
    read = {number: disk.read(key_of(number)) for number in found}
    assert all(
        blob is None or np.array_equal(blob, blob_of(number)) for number, blob in read.items()
    )
    settle(disk)
    disk.close(5)
    report = check_disk(old_kv)
    num_right = sum(blob is not None for blob in read.values())
    assert report.is_sound and report.num_segments == num_right + 1


async def test_doctor_says_what_is_to_be_done_with_it_and_does_it(
    old_kv: Path, paths: Paths
) -> None:
    services = FakeModelServices(paths, FakeEngine(script="Good day"))

    async def cache(**options: bool) -> dict[str, object]:
        console = Recorder()
        await carry_out(services, Options(command="doctor", json=True, **options), console)
        (found,) = [each for each in console.json()["checks"] if each["name"] == "cache"]
        return dict(found)

    before = await cache()
    assert not before["ok"] and "doctor --repair" in str(before["remedy"])
    assert (await cache(repair=True))["ok"]
    after = await cache()
    await services.close()
    assert after["ok"] and files_in(old_kv)
