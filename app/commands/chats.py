"""`inglenook chats`: the history from a terminal."""

import asyncio
import json
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from app.amounts import counted
from app.chat.message import Conversation, Message, Role
from app.commands.console import Console, write_json
from app.commands.options import Options
from app.documents.grounds import with_marks
from app.history.search import search
from app.history.transfer import export, import_
from app.history.tree import message_as_json
from app.private_file import write_private
from app.services import Services
from app.visible import visible
from engine.errors import HistoryError, UsageError

LISTED_AT_ONCE = 500
SHORT_ID = 8
"""So much of an id is shown, if that tells them apart."""
SHORTEST_ID = 4
"""So much must be given: one letter that happens to be the only one is no choice."""


async def chats(services: Services, options: Options, console: Console) -> None:
    actions = {
        "list": list_chats,
        "search": search_chats,
        "show": show_chat,
        "export": export_chats,
        "import": import_chats,
        "delete": delete_chats,
    }
    await actions[options.action](services, options, console)


async def list_chats(services: Services, options: Options, console: Console) -> None:
    found: list[Conversation] = []
    while True:
        more = await services.conversations.list(limit=LISTED_AT_ONCE, offset=len(found))
        found += more
        if len(more) < LISTED_AT_ONCE:
            break
    if options.json:
        write_json(console, {"chats": [_chat(conversation) for conversation in found]})
        return
    shown = shown_length([conversation.conversation_id for conversation in found])
    for conversation in found:
        console.write(_line(conversation, shown))
    if not found:
        console.note("There are no conversations yet.")


async def search_chats(services: Services, options: Options, console: Console) -> None:
    hits = await search(services.database, options.text)
    if options.json:
        rows = [
            {**_chat(hit.conversation), "message_id": hit.message_id, "snippet": hit.snippet}
            for hit in hits
        ]
        write_json(console, {"chats": rows})
        return
    shown = shown_length(await services.conversations.ids())
    for hit in hits:
        console.write(_line(hit.conversation, shown))
        if hit.message_id is not None:
            console.write(f"{'':{shown}}  {hit.snippet}\n")
    if not hits:
        console.note(f"Nothing was found for {options.text!r}.")


async def show_chat(services: Services, options: Options, console: Console) -> None:
    (conversation_id,) = await whole_ids(services, options)
    conversation = await services.conversations.get(conversation_id)
    messages = await services.conversations.messages(conversation_id)
    if options.json:
        write_json(
            console,
            {**_chat(conversation), "messages": [_message(message) for message in messages]},
        )
        return
    console.write(f"# {conversation.title}\n")
    for message in messages:
        name = "You" if message.role is Role.USER else "Inglenook"
        state = "" if message.state.value == "done" else f" ({message.state.value})"
        console.write(f"\n## {name}{state}\n")
        for each in message.attachments:
            console.write(f"[{each.kind.value}: {visible(each.name)}]\n")
        grounds = message.grounds
        text = message.content if grounds is None else with_marks(message.content, grounds)
        console.write(f"{text}\n")
        if grounds is not None:
            for number in grounds.cited:
                quotation = grounds.quotation(number)
                assert quotation is not None
                place = visible(f"{quotation.name}, page {quotation.page}")
                console.write(f"[{number}: {place}]\n")
        if message.notice:
            console.write(f"[{message.notice}]\n")


async def export_chats(services: Services, options: Options, console: Console) -> None:
    document = await export(services.database, await whole_ids(services, options) or None)
    if not options.file:
        write_json(console, document)
        return
    path = ordinary(Path(options.file))
    text = json.dumps(document, ensure_ascii=False, indent=2) + "\n"
    try:
        await asyncio.to_thread(write_private, path, text)
    except OSError as error:
        raise HistoryError(
            f"{path} could not be written ({error.strerror}): choose another place."
        ) from error
    console.note(f"{path} holds {counted(len(document['conversations']), 'conversation')}.")


async def import_chats(services: Services, options: Options, console: Console) -> None:
    path = ordinary(Path(options.file))
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise HistoryError(
            f"{path} cannot be read ({error.strerror}): name a file that `chats export` wrote."
        ) from error
    except (ValueError, RecursionError) as error:
        raise HistoryError(
            f"{path} is not an export of Inglenook ({error}): name a file that `chats export`"
            " wrote."
        ) from error
    report = await import_(services.database, document)
    console.note(
        f"Taken in: {counted(len(report.imported), 'conversation')}, under new names:"
        f" {len(report.copied):,}, here already: {len(report.skipped):,}."
    )


async def delete_chats(services: Services, options: Options, console: Console) -> None:
    """For good: nothing of them stays in any file."""
    if not options.yes:
        raise UsageError("This deletes for good: say it again with --yes.")
    ids = await whole_ids(services, options)
    for conversation_id in ids:
        await services.conversations.get(conversation_id)
    for conversation_id in ids:
        # An answer that is being written ends with it.
        await services.conversations.purge(conversation_id)
    console.note(f"{counted(len(ids), 'conversation')} deleted.")


async def whole_ids(services: Services, options: Options) -> list[str]:
    """Each conversation once that was named by its id or by the beginning of it."""
    known = await services.conversations.ids() if options.ids else []
    return list(dict.fromkeys(whole_id(given, known) for given in options.ids))


def whole_id(given: str, known: Sequence[str]) -> str:
    """What begins so; itself when nothing does, since whoever looks for it says that best."""
    if given in known or len(given) < SHORTEST_ID:
        return given
    found = [each for each in known if each.startswith(given)]
    if len(found) > 1:
        raise HistoryError(
            f"{len(found):,} conversations have an id that begins with {given}: give more of it."
        )
    return found[0] if found else given


def shown_length(ids: Sequence[str]) -> int:
    """How many letters of these ids tell all of them apart."""
    length = SHORT_ID
    while len({each[:length] for each in ids}) < len(ids):
        length += 1
    return length


def ordinary(path: Path) -> Path:
    """The path, unless a pipe or a device stands there: those belong to another process."""
    if path.exists() and not path.is_file() and not path.is_dir():
        raise UsageError(f"{path} is a pipe or a device: name an ordinary file.")
    return path


def _line(conversation: Conversation, shown: int) -> str:
    when = datetime.fromtimestamp(conversation.updated_at).strftime("%Y-%m-%d %H:%M")
    return f"{conversation.conversation_id[:shown]:{shown}}  {when}  {conversation.title}\n"


def _chat(conversation: Conversation) -> dict[str, Any]:
    return {
        "id": conversation.conversation_id,
        "title": conversation.title,
        "created_at": conversation.created_at,
        "updated_at": conversation.updated_at,
        "system_prompt": conversation.system_prompt,
    }


def _message(message: Message) -> dict[str, Any]:
    """As in an export, without the ids that only its model understands."""
    shown = message_as_json(message)
    del shown["token_ids"]
    return shown
