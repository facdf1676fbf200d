"""From messages to the rows of the chatbot: a user's text as typed, an answer as safe markdown.

Characters that markdown or HTML would act on are spelled `&#x0003C;`: five digits, a form nobody
types. The page's script spells them back when a row is copied, so a copy is the text itself.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import fields
from typing import Any
from urllib.parse import urlsplit

from app.amounts import milliseconds
from app.chat.message import Message, MessageState, Role, Seen
from app.ui.fences import parts
from app.ui.room import Answer
from engine.metrics import Timings

Row = dict[str, Any]

# A lone space between two words stays a space, so that long lines can break. U+0085 stays too:
# its entity means another character.
ACTIVE = re.compile(r"[!-/:-@\[-`{-~]|[^\S \x85]|(?<!\S) | (?!\S)")

SPECIAL = re.compile(
    r"""
      (?P<escaped>\\[\\`])
    | (?P<escaped_angle>\\<)
    | (?P<definition>\[(?=(?:\\[\s\S]|[^\[\]\\])+(?:\]:|\Z)))
    | (?P<code>(?<!`)(?P<ticks>`+)(?!`)[^\n]+?(?<!`)(?P=ticks)(?!`))
    | (?P<maths>\$\$[\s\S]+?\$\$|\\\([\s\S]+?\\\)|\\\[[\s\S]+?\\\])
    | (?P<link><https?://[^\s<>]+>)
    | (?P<image>!\[[^\]\n]*\]\([ \t]*<?(?P<url>[^\s<>)]*)[^)\n]*\))
    | (?P<bang>!(?=\[))
    | (?P<angle><)
    """,
    re.VERBOSE | re.MULTILINE,
)

SPAN = re.compile(r"(?<![`\\])(?P<ticks>`+)(?!`)[^\n]+?(?<!`)(?P=ticks)(?!`)")
NO_SPAN_AFTER = re.compile(r"(?:(?:://|www\.)\S*|~)\Z", re.IGNORECASE)
FORMULA_EDGE = re.compile(r"\$\$|\\[()\[\]]")
TABLE = re.compile(r"^[ \t>|:]*-[ \t|:-]*$", re.MULTILINE)

NOTHING_LEFT_OUT = Seen()
SAW = "#saw-"
"""Before the id of an answer, it makes the address that the page's script knows."""

DOT = "\u00a0· "
"""Between figures; where the line breaks, it stays with the one before."""

NOTES = {
    MessageState.STOPPED: "Stopped",
    MessageState.INTERRUPTED: "Interrupted: the app closed while this was written",
}


def protect(text: str) -> str:
    """Every character of `text` as an entity that neither markdown nor HTML acts on."""
    return "".join(f"&#x{ord(char):05X};" for char in text)


def show_verbatim(text: str) -> str:
    """Markdown that shows exactly `text`; with `white-space: pre-wrap` it also looks like it."""
    return ACTIVE.sub(lambda match: protect(match[0]), text)


def show_answer(text: str) -> str:
    """Markdown with nothing in it that loads, asks or hides: tags are shown, images are named."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return "".join(
        part.text if part.is_code else SPECIAL.sub(_defuse, part.text) for part in parts(text)
    )


def _defuse(match: re.Match[str]) -> str:
    match match.lastgroup:
        case "code" if _is_doubtful(match):
            return match[0].replace("<", protect("<")).replace("![", protect("!") + "[")
        case "escaped_angle":
            return protect("<")
        case "maths":
            return match[0].replace("<", r"\lt ")
        case "image":
            return show_verbatim(f"[image blocked: {_host(match['url'])}]")
        case "bang" | "angle" | "definition":
            return protect(match[0])
        case _:
            return match[0]


def _is_doubtful(code: re.Match[str]) -> bool:
    """Whether a tick or bar elsewhere in the paragraph may make this something else than code."""
    text, start = code.string, code.start()
    if "<" not in code[0] and "![" not in code[0]:
        return False
    begun = text.rfind("\n\n", 0, start) + 1
    before = text[begun:start]
    if "](" in before or "`" in SPAN.sub("", before) or NO_SPAN_AFTER.search(before):
        return True
    if FORMULA_EDGE.search(code[0]):
        return True
    ended = text.find("\n\n", start)
    paragraph = text[begun : ended if ended >= 0 else len(text)]
    return "|" in code[0] and TABLE.search(paragraph) is not None


def _host(url: str) -> str:
    try:
        return urlsplit(url).hostname or "no address"
    except ValueError:
        return "no address"


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
            return [_row("user", show_verbatim(message.content))]
        case Role.ASSISTANT:
            text = _closed(show_answer(message.content))
            thoughts = [_thoughts(message, "done")] if message.thinking else []
            return [*thoughts, _row("assistant", f"{text}\n\n{_small_print(message)}".strip())]


def live_rows(answer: Answer) -> list[Row]:
    """What the chatbot shows for the answer that is being written."""
    message = answer.message
    if message.state is not MessageState.STREAMING:
        return _rows_of(message)
    if message.content:
        thoughts = [_thoughts(message, "done")] if message.thinking else []
        return [*thoughts, _row("assistant", show_answer(message.content))]
    if message.thinking:
        return [_thoughts(message, "pending")]
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
    if message.finish_reason == "length" and message.state is MessageState.DONE:
        notes.append("Ended at the longest answer allowed; the settings can raise it")
    if message.notice:
        notes.append(message.notice)
    lines = []
    if notes:
        kind = "note failed" if message.state is MessageState.FAILED else "note"
        lines.append(f'<p class="{kind}">{show_verbatim(" · ".join(notes))}</p>')
    if measured := figures(message):
        saw = f'<a class="saw" href="{SAW}{message.message_id}">What the model saw</a>'
        lines.append(f'<p class="figures">{measured}{DOT}{saw}</p>')
    return "".join(lines)


def _closed(markdown: str) -> str:
    """`markdown` with its last fence closed, so that what follows is not code."""
    return markdown + "".join(part.to_close for part in parts(markdown))


def _thoughts(message: Message, status: str) -> Row:
    return _row("assistant", show_answer(message.thinking)) | {
        "metadata": {"title": "Thinking", "status": status}
    }


def _row(role: str, markdown: str) -> Row:
    # As a list of parts: a plain string would lose its indentation on the way.
    return {"role": role, "content": [{"type": "text", "text": markdown}]}
