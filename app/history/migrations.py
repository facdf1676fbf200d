"""The schema of the history, as numbered steps; the number reached stands in the file itself."""

from collections.abc import Callable, Sequence

from sqlite_utils import Database as Tables

Step = Callable[[Tables], None]


def m001_conversations(db: Tables) -> None:
    """Conversations, their trees of messages, and the text index over both."""
    db.table("conversation").create(
        {
            "seq": int,
            "id": str,
            "title": str,
            "created_at": float,
            "updated_at": float,
            "system_prompt": str,
            "sampling": str,
            "active_leaf_id": str,
            "deleted_at": float,
        },
        pk="seq",
        not_null={"id", "title", "created_at", "updated_at", "system_prompt", "sampling"},
    )
    db.table("conversation").create_index(["id"], unique=True)
    db.table("conversation").create_index(["deleted_at", "updated_at"])

    # `seq` is the order of creation. `depth` counts the messages from the root, so that the
    # length of a branch is known without walking it; neither ever changes.
    db.table("message").create(
        {
            "seq": int,
            "id": str,
            "conversation_id": str,
            "parent_id": str,
            "depth": int,
            "role": str,
            "state": str,
            "created_at": float,
            "finish_reason": str,
            "notice": str,
            "model": str,
            "timings": str,
            "content": str,
            "thinking": str,
            "token_ids": bytes,
        },
        pk="seq",
        not_null={"id", "conversation_id", "depth", "role", "state", "created_at", "content"},
        foreign_keys=[
            ("conversation_id", "conversation", "id"),
            ("parent_id", "message", "id"),
        ],
    )
    db.table("message").create_index(["id"], unique=True)
    db.table("message").create_index(["parent_id"])
    db.table("message").create_index(["conversation_id", "parent_id"])
    db.execute("create index streaming_message on message(id) where state = 'streaming'")

    # Trigrams find a substring in every script. The index holds no copy of the text, and a
    # running answer enters it when it ends, not with each partial save.
    db.executescript(
        """
        create virtual table conversation_fts using fts5(
            title, content='conversation', content_rowid='seq', tokenize='trigram');
        create trigger conversation_insert after insert on conversation begin
            insert into conversation_fts(rowid, title) values (new.seq, new.title);
        end;
        create trigger conversation_delete after delete on conversation begin
            insert into conversation_fts(conversation_fts, rowid, title)
                values ('delete', old.seq, old.title);
        end;
        create trigger conversation_rename after update of title on conversation begin
            insert into conversation_fts(conversation_fts, rowid, title)
                values ('delete', old.seq, old.title);
            insert into conversation_fts(rowid, title) values (new.seq, new.title);
        end;

        create view written_message as select * from message where state <> 'streaming';
        create virtual table message_fts using fts5(
            content, content='written_message', content_rowid='seq', tokenize='trigram');
        create trigger message_insert after insert on message
        when new.state <> 'streaming' begin
            insert into message_fts(rowid, content) values (new.seq, new.content);
        end;
        create trigger message_delete after delete on message
        when old.state <> 'streaming' begin
            insert into message_fts(message_fts, rowid, content)
                values ('delete', old.seq, old.content);
        end;
        create trigger message_end after update of state on message
        when old.state = 'streaming' and new.state <> 'streaming' begin
            insert into message_fts(rowid, content) values (new.seq, new.content);
        end;
        create trigger message_is_final before update on message
        when old.state <> 'streaming' begin
            select raise(abort, 'a finished message is never changed');
        end;
        """
    )


def m002_program_users(db: Tables) -> None:
    """Whose KV may lie on the disk beside that of the conversations."""
    db.table("program_user").create(
        {"owner": str, "last_used": float}, pk="owner", not_null={"last_used"}
    )


def m003_context(db: Tables) -> None:
    """What each answer's prompt was made of, and what a conversation does when it overflows."""
    db.execute("alter table message add column seen text not null default '{}'")
    db.execute("alter table conversation add column overflow text not null default 'ask'")


def m004_answer_forms(db: Tables) -> None:
    """The form of a conversation's next answers, and the one that each answer was made in."""
    db.execute("alter table conversation add column answer_form text not null default '{}'")
    db.execute("alter table message add column made_in text not null default '{}'")


def m005_examples(db: Tables) -> None:
    """What stands before a conversation, to show the model how its answers should be."""
    db.execute("alter table conversation add column examples text not null default '[]'")


def m006_likelihoods(db: Tables) -> None:
    """How sure the model was of each token of an answer, where that was asked for."""
    db.execute("alter table message add column likelihoods text not null default ''")


def m007_attachments(db: Tables) -> None:
    """Pictures and sounds, which go with the message that they were sent with."""
    db.execute(
        """
        create table attachment(
            seq integer primary key,
            message_id text not null references message(id) on delete cascade,
            kind text not null,
            name text not null,
            media_type text not null,
            width integer not null,
            height integer not null,
            digest text not null,
            preview blob not null,
            content blob not null)
        """
    )
    db.execute("create index attachment_of_message on attachment(message_id)")


def m008_documents(db: Tables) -> None:
    """Of which files a conversation asks, and which passages each answer stands on."""
    db.execute("alter table conversation add column documents text not null default '{}'")
    db.execute("alter table message add column grounds text not null default '{}'")


MIGRATIONS: tuple[Step, ...] = (
    m001_conversations,
    m002_program_users,
    m003_context,
    m004_answer_forms,
    m005_examples,
    m006_likelihoods,
    m007_attachments,
    m008_documents,
)
"""A step that was shipped is never edited; a change is a new step at the end."""


def version(db: Tables) -> int:
    """The number of steps this file has gone through."""
    (number,) = db.execute("pragma user_version").fetchone()
    return int(number)


def migrate(db: Tables, steps: Sequence[Step] = MIGRATIONS) -> None:
    """Take the file to the newest schema, all steps or none of them."""
    db.execute("begin immediate")
    try:
        for step in steps[version(db) :]:
            step(db)
        db.execute(f"pragma user_version = {len(steps)}")
        db.commit()
    finally:
        # Does nothing after the commit.
        db.rollback()
