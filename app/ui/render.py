"""From messages to the rows of the chatbot: a user's text as typed, an answer as safe markdown."""

from collections.abc import Iterator, Sequence
from dataclasses import fields
from html import escape
from typing import Any

from app.amounts import milliseconds
from app.chat.message import Message, MessageState, Role, Seen
from app.ui.attached import shown_with
from app.ui.cited import cited, looked_at
from app.ui.formed import formed, forming
from app.ui.markdown import closed, show_answer
from app.ui.room import Answer
from app.ui.verbatim import show_verbatim
from engine.metrics import Timings

Row = dict[str, Any]

NOTHING_LEFT_OUT = Seen()
SAW, SURE = "#saw-", "#sure-"
"""Before the id of an answer, they make the addresses that the page's scripts know."""

DOT = "\u00a0· "
"""Between figures; where the line breaks, it stays with the one before."""

NOTES = {
    MessageState.STOPPED: "Stopped",
    MessageState.INTERRUPTED: "Interrupted: the app closed while this was written",
}


def rows(messages: Sequence[Message], held: Seen = NOTHING_LEFT_OUT) -> list[Row]:
    """What the chatbot shows for finished messages, oldest first; with a mark where the model
    begins to see, if it does not see all of them."""
    shown: list[Row] = []
    for message in messages:
        if message.message_id == held.first_id:
            shown.append(_row("assistant", cut_mark(held.summary)))
        shown += _rows_of(message)
    return shown


def cut_mark(summary: str) -> str:
    """The line between what the model no longer sees and what it does."""
    if not summary:
        return '<p class="cut">The model no longer sees what is above</p>'
    return (
        '<p class="cut">The model no longer sees what is above, only this summary of it</p>'
        f'<p class="summary">{show_verbatim(summary)}</p>'
    )


def _rows_of(message: Message) -> list[Row]:
    match message.role:
        case Role.SYSTEM:
            return []
        case Role.USER:
            return [_row("user", shown_with(message) + show_verbatim(message.content))]
        case Role.ASSISTANT:
            text = _text_of(message)
            thoughts = [_thoughts(message, "done")] if message.thinking else []
            return [*thoughts, _row("assistant", f"{text}\n\n{_small_print(message)}".strip())]


def _text_of(message: Message) -> str:
    if message.made_in is not None:
        shown = _in_form(message)
    elif message.grounds is not None:
        shown = closed(cited(message, message.grounds))
    else:
        shown = closed(show_answer(message.content))
    looked = looked_at(message, message.grounds) if message.grounds is not None else ""
    return f"{shown}\n\n{looked}" if looked else shown


def _in_form(message: Message) -> str:
    # One that is being written may be seen before its job is.
    return forming(message) if message.outcome is None else formed(message)


def live_rows(answer: Answer) -> list[Row]:
    """What the chatbot shows for the answer that is being written."""
    message = answer.message
    if message.state is not MessageState.STREAMING:
        return _rows_of(message)
    note = f'<p class="note">{show_verbatim(message.notice)}</p>' if message.notice else ""
    if message.content:
        thoughts = [_thoughts(message, "done")] if message.thinking else []
        if message.made_in is None:
            text = show_answer(message.content, has_links=message.grounds is None)
        else:
            text = forming(message)
        # What stands in the note must not become part of an unfinished table or list.
        body = closed(text) if note and message.made_in is None else text
        return [*thoughts, _row("assistant", f"{body}\n\n{note}" if note else text)]
    if message.thinking:
        return [_thoughts(message, "pending"), *([_row("assistant", note)] if note else [])]
    return [_row("assistant", f'<span class="waiting">{waiting_for(answer)}</span>')]


def waiting_for(answer: Answer) -> str:
    """Why there is no text yet."""
    if answer.doing:
        return show_verbatim(answer.doing)
    if not answer.num_prompt_tokens_read:
        return "Waiting for the model…"
    if answer.num_prompt_tokens_read >= answer.num_prompt_tokens:
        return "Writing…"
    return (
        f"Reading your message… {answer.num_prompt_tokens_read:,}"
        f" of {answer.num_prompt_tokens:,} tokens"
    )


def timings_of(message: Message) -> Timings:
    """What was measured; a figure that is not there is 0."""
    known = {field.name for field in fields(Timings)} & set(message.timings)
    return Timings(**{name: message.timings[name] for name in known})


def figures(message: Message) -> str:
    """Speed, what was read and the time to the first token, as far as they were measured."""
    timings = timings_of(message)
    parts = []
    if timings.tokens_per_second:
        parts.append(f"{timings.tokens_per_second:.1f} tokens/s")
    if timings.prompt_tokens:
        whole = timings.prompt_tokens
        part = "" if timings.prefilled_tokens == whole else f"{timings.prefilled_tokens:,} of "
        parts.append(", ".join((f"{part}{whole:,} tokens read", *_kept(timings))))
    if timings.ttft_ms:
        parts.append(f"first token {timings.ttft_ms / 1000:.1f} s")
    if timings.is_reproducible:
        parts.append("reproducible")
    return DOT.join(parts)


def _kept(timings: Timings) -> Iterator[str]:
    """Where the rest of the prompt was."""
    if timings.cached_tokens:
        yield f"{timings.cached_tokens:,} still in memory"
    if timings.restored_tokens:
        where = "disk" if timings.restored_from == "disk" else "RAM"
        took = milliseconds(timings.restore_ms)
        yield f"{timings.restored_tokens:,} restored from {where} in {took}"


def _small_print(message: Message) -> str:
    notes = [NOTES[message.state]] if message.state in NOTES else []
    is_cut = timings_of(message).finish == "max_tokens"
    if is_cut and message.state is MessageState.DONE:
        notes.append("Ended at the longest answer allowed; the settings can raise it")
    if message.notice:
        notes.append(message.notice)
    lines = []
    if notes:
        kind = "note failed" if message.state is MessageState.FAILED else "note"
        lines.append(f'<p class="{kind}">{show_verbatim(" · ".join(notes))}</p>')
    if measured := figures(message):
        message_id = escape(message.message_id)
        links = [f'<a class="saw" href="{SAW}{message_id}">What the model saw</a>']
        if message.likelihoods is not None:
            links.append(f'<a class="saw" href="{SURE}{message_id}">How sure it was</a>')
        lines.append(f'<p class="figures">{DOT.join((measured, *links))}</p>')
    return "".join(lines)


def _thoughts(message: Message, status: str) -> Row:
    shown = show_answer(message.thinking, has_links=message.grounds is None)
    return _row("assistant", shown) | {"metadata": {"title": "Thinking", "status": status}}


def _row(role: str, markdown: str) -> Row:
    # As a list of parts: a plain string would lose its indentation on the way.
    return {"role": role, "content": [{"type": "text", "text": markdown}]}
