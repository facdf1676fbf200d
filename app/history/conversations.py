"""Conversations in the database: trees of messages that only grow, until a purge."""

import asyncio
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from sqlite_utils import Database as Tables

from app.chat.answer_form import AnswerForm
from app.chat.belonging import TEMPORARY
from app.chat.example import Example
from app.chat.message import Conversation, Message, MessageState, Overflow, Role
from app.chat.title import first_words
from app.documents.grounds import Grounds
from app.documents.scope import Scope
from app.history.attachments import insert_attachments, with_attachments
from app.history.database import Database
from app.history.rows import (
    conversation_from_row,
    documents_as_text,
    examples_as_text,
    form_as_text,
    json_text,
    message_from_row,
    row_from_conversation,
    storable,
    writing_from_message,
)
from app.history.statements import (
    ACTIVE_LEAF,
    Exchange,
    Place,
    branch,
    conversation_at_rest,
    conversation_of,
    insert_answer,
    insert_message,
    message_row,
    message_row_in,
    newest_below,
    remove_conversations,
    unknown_conversation,
    write_answer,
)
from app.history.stores import Stores
from app.media.attachment import Attachment
from engine.errors import HistoryError

LISTED = "select * from conversation where deleted_at is null order by updated_at desc, seq desc"


class Conversations:
    """The conversations of one database, and the temporary ones, which are in memory only.

    A finished message is never changed; editing and regenerating add siblings. A deleted
    conversation is found by `restore` and `purge` only. `NotFound` names an unknown id.
    `on_deleted` is told each conversation that was deleted or purged, once that is stored.
    `num_turns` counts how often another message became the last one of a conversation.
    """

    def __init__(
        self,
        database: Database,
        clock: Callable[[], float] = time.time,
        on_deleted: Callable[[str], None] = lambda conversation_id: None,
    ) -> None:
        self._stores = Stores(database)
        self._clock = clock
        self._on_deleted = on_deleted
        self.num_turns = 0

    def close(self) -> None:
        """Let go what is temporary. The database is closed by its owner."""
        self._stores.close()

    async def create(
        self,
        title: str = "",
        system_prompt: str = "",
        sampling: Mapping[str, Any] | None = None,
        temporary: bool = False,
        answer_form: AnswerForm | None = None,
        examples: Sequence[Example] = (),
        documents: Scope | None = None,
    ) -> Conversation:
        """A new conversation; a temporary one ends with the process and never reaches the disk."""
        now = self._clock()
        conversation = Conversation(
            conversation_id=(TEMPORARY if temporary else "") + uuid.uuid4().hex,
            title=title,
            created_at=now,
            updated_at=now,
            system_prompt=system_prompt,
            sampling=dict(sampling or {}),
            answer_form=answer_form,
            examples=tuple(examples),
            documents=documents,
        )

        def store(tables: Tables) -> Conversation:
            tables.table("conversation").insert(row_from_conversation(conversation))
            return conversation_of(tables, conversation.conversation_id)

        return await self._of(conversation.conversation_id).run(store)

    async def get(self, conversation_id: str) -> Conversation:
        return await self._of(conversation_id).run(
            lambda tables: conversation_of(tables, conversation_id)
        )

    async def rename(self, conversation_id: str, title: str) -> None:
        await self._set(conversation_id, "title", storable(title))

    async def replace_title(self, conversation_id: str, old: str, new: str) -> bool:
        """Rename it unless its title is another one by now. False: nothing was changed."""

        def replace(tables: Tables) -> bool:
            cursor = tables.execute(
                "update conversation set title = ?"
                " where id = ? and title = ? and deleted_at is null",
                [storable(new), conversation_id, storable(old)],
            )
            return cursor.rowcount > 0

        return await self._of(conversation_id).run(replace)

    async def set_system_prompt(self, conversation_id: str, text: str) -> None:
        await self._set(conversation_id, "system_prompt", storable(text))

    async def set_sampling(self, conversation_id: str, sampling: Mapping[str, Any]) -> None:
        await self._set(conversation_id, "sampling", json_text(sampling))

    async def set_overflow(self, conversation_id: str, choice: Overflow) -> None:
        await self._set(conversation_id, "overflow", choice.value)

    async def set_answer_form(self, conversation_id: str, form: AnswerForm | None) -> None:
        """For the answers from the next one on; None: they are text."""
        await self._set(conversation_id, "answer_form", form_as_text(form))

    async def set_examples(self, conversation_id: str, examples: Sequence[Example]) -> None:
        await self._set(conversation_id, "examples", examples_as_text(examples))

    async def set_documents(self, conversation_id: str, documents: Scope | None) -> None:
        """What the next questions are asked of; None: of no files."""
        await self._set(conversation_id, "documents", documents_as_text(documents))

    async def delete(self, conversation_id: str) -> None:
        """Hide it; `restore` brings it back, `purge` removes it."""
        await self._set(conversation_id, "deleted_at", self._clock())
        self._on_deleted(conversation_id)

    async def restore(self, conversation_id: str) -> None:
        def undelete(tables: Tables) -> None:
            cursor = tables.execute(
                "update conversation set deleted_at = null where id = ?", [conversation_id]
            )
            if not cursor.rowcount:
                raise unknown_conversation(conversation_id)

        await self._of(conversation_id).run(undelete)

    async def purge(self, conversation_id: str) -> None:
        """Remove a conversation, deleted or not, from every file of the history.

        A running answer of it ends in `NotFound` when it is saved next.
        """

        def remove(tables: Tables) -> None:
            if not remove_conversations(tables, [conversation_id]):
                raise unknown_conversation(conversation_id)

        await self._of(conversation_id).erase([conversation_id], remove)
        self._on_deleted(conversation_id)

    async def purge_deleted(self) -> int:
        """Purge every deleted conversation; their number."""
        query = "select id from conversation where deleted_at is not null"
        ids: list[str] = await self._stores.lasting.run(
            lambda tables: [row["id"] for row in tables.query(query)]
        )
        if not ids:
            return 0

        def remove(tables: Tables) -> int:
            # Asked again: one may have been restored meanwhile.
            still = {row["id"] for row in tables.query(query)}
            return remove_conversations(tables, [each for each in ids if each in still])

        return await self._stores.lasting.erase(ids, remove)

    async def messages(self, conversation_id: str, limit: int | None = None) -> list[Message]:
        """The last `limit` messages of the active branch, oldest first."""

        def read(tables: Tables) -> list[Message]:
            leaf = conversation_of(tables, conversation_id).active_leaf_id
            found = branch(tables, leaf, -1 if limit is None else max(limit, 0))
            return with_attachments(tables, found, database)

        database = self._of(conversation_id)
        return await database.run(read)

    async def num_messages(self, conversation_id: str) -> int:
        """The length of the active branch."""

        def count(tables: Tables) -> int:
            leaf = conversation_of(tables, conversation_id).active_leaf_id
            return 0 if leaf is None else int(message_row(tables, leaf)["depth"])

        return await self._of(conversation_id).run(count)

    async def path(self, message_id: str) -> list[Message]:
        """From the root of its tree to this message."""

        def read(tables: Tables) -> list[Message]:
            message_row(tables, message_id)
            return with_attachments(tables, branch(tables, message_id), database)

        database = self._of(message_id)
        return await database.run(read)

    async def siblings(self, message_id: str) -> list[str]:
        """The ids of this message and of the others with its parent, in order of creation."""

        def read(tables: Tables) -> list[str]:
            row = message_row(tables, message_id)
            rows = tables.query(
                "select id from message where conversation_id = ? and parent_id is ? order by seq",
                [row["conversation_id"], row["parent_id"]],
            )
            return [each["id"] for each in rows]

        return await self._of(message_id).run(read)

    async def set_active(self, conversation_id: str, message_id: str) -> None:
        """Show the branch that runs through this message to the newest message below it."""

        def activate(tables: Tables) -> None:
            conversation_of(tables, conversation_id)
            message_row_in(tables, conversation_id, message_id)
            tables.execute(
                "update conversation set active_leaf_id = ? where id = ?",
                [newest_below(tables, message_id), conversation_id],
            )

        await self._of(conversation_id).run(activate)
        self.num_turns += 1

    async def begin_turn(
        self,
        conversation_id: str,
        text: str,
        parent_id: str | None | Literal[Place.ACTIVE_LEAF] = ACTIVE_LEAF,
        form: AnswerForm | None = None,
        attachments: Sequence[Attachment] = (),
        grounds: Grounds | None = None,
    ) -> Exchange:
        """Store what the user said, with its attachments, and an empty answer, which becomes the
        active leaf and is to be written in `form` and on `grounds`.

        Another `parent_id` makes a new branch there; None makes another first message.
        """

        # Before the store thread is busy with it: the content may have to be read by that thread.
        contents = [await asyncio.to_thread(each.read) for each in attachments]

        def store(tables: Tables) -> Exchange:
            conversation = conversation_at_rest(tables, conversation_id)
            parent = conversation.active_leaf_id if parent_id is ACTIVE_LEAF else parent_id
            now = self._clock()
            user = insert_message(tables, conversation_id, parent, Role.USER, storable(text), now)
            insert_attachments(tables, user.message_id, zip(attachments, contents, strict=True))
            answer = insert_answer(tables, user, now, form, grounds)
            if not conversation.title:
                names = ", ".join(each.name for each in attachments)
                tables.execute(
                    "update conversation set title = ? where id = ?",
                    [first_words(user.content or storable(names)), conversation_id],
                )
            return Exchange(user, answer)

        stored = await self._of(conversation_id).run(store)
        self.num_turns += 1
        return stored

    async def begin_answer(
        self,
        conversation_id: str,
        user_message_id: str,
        form: AnswerForm | None = None,
        grounds: Grounds | None = None,
    ) -> Message:
        """Another empty answer to the same message of the user, which becomes the active leaf."""

        def store(tables: Tables) -> Message:
            conversation_at_rest(tables, conversation_id)
            row = message_row_in(tables, conversation_id, user_message_id)
            if row["role"] != Role.USER.value:
                raise HistoryError(
                    "Only a message of yours can be answered again: choose the one above the"
                    " answer."
                )
            return insert_answer(tables, message_from_row(row), self._clock(), form, grounds)

        stored = await self._of(conversation_id).run(store)
        self.num_turns += 1
        return stored

    async def save_partial(self, answer_id: str, content: str, thinking: str) -> None:
        """Store how far a running answer has come."""
        columns = {"content": storable(content), "thinking": storable(thinking)}
        await self._of(answer_id).run(lambda tables: write_answer(tables, answer_id, columns))

    async def finish_answer(self, answer: Message) -> None:
        """Store a running answer as it ended; from then on it never changes."""
        if answer.state is MessageState.STREAMING:
            raise ValueError("an answer that ends needs a state that says how")

        def store(tables: Tables) -> None:
            write_answer(tables, answer.message_id, writing_from_message(answer))
            tables.execute(
                "update conversation set updated_at = ? where id ="
                " (select conversation_id from message where id = ?)",
                [self._clock(), answer.message_id],
            )

        await self._of(answer.message_id).run(store)

    async def interrupt_stale(self) -> int:
        """At the start: mark the answers that nobody writes any more; their number."""
        query = "update message set state = 'interrupted' where state = 'streaming'"
        return await self._stores.lasting.run(lambda tables: int(tables.execute(query).rowcount))

    async def list_temporary(self) -> list[Conversation]:
        """The temporary ones, in the same order."""
        return await self._listed(self._stores.temporary)

    async def ids(self) -> list[str]:
        """Of all lasting conversations that are not deleted."""
        query = "select id from conversation where deleted_at is null"
        return await self._stores.lasting.run(
            lambda tables: [row["id"] for row in tables.query(query)]
        )

    async def count(self) -> int:
        """How many lasting ones there are, without the deleted ones."""
        return len(await self.ids())

    async def _listed(
        self, database: Database, limit: int = -1, offset: int = 0
    ) -> list[Conversation]:
        query = f"{LISTED} limit ? offset ?"
        return await database.run(
            lambda tables: [
                conversation_from_row(row) for row in tables.query(query, [limit, offset])
            ]
        )

    async def list(self, limit: int = 200, offset: int = 0) -> list[Conversation]:
        """The lasting conversations in which something was said last, first."""
        return await self._listed(self._stores.lasting, limit, offset)

    def _of(self, some_id: str) -> Database:
        return self._stores.of(some_id)

    async def _set(self, conversation_id: str, column: str, value: str | float) -> None:
        def update(tables: Tables) -> None:
            conversation_of(tables, conversation_id)
            tables.execute(
                f"update conversation set {column} = ? where id = ?", [value, conversation_id]
            )

        await self._of(conversation_id).run(update)
