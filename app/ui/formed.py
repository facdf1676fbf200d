"""An answer in a form, as it is shown: its shape, its text as it was written, how it came out.

Everything of the model is spelled by `show_verbatim`, or goes through `show_answer`. The markup has
no empty line, which would end it for markdown. The buttons in it are known to the page's script,
which asks `app/web/answers.py` for what is too much to be sent with every update.
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from html import escape

from app.chat.answer_form import AnswerForm, Medium, Outcome
from app.chat.message import Message
from app.ui.json_text import laid_out
from app.ui.markdown import closed, show_answer
from app.ui.shape import Record, Shape, Table, is_json, shape_of
from app.ui.verbatim import show_verbatim
from engine.guided.grammar import GrammarKind

MOST_ROWS = 50
MOST_SHOWN = 8_000
"""Characters of an answer that are sent with the page; the rest is fetched when it is asked for."""
MOST_STREAMED = 60_000
"""A longer answer is not laid out anew with every piece of it."""

FORM_ID = "formed-"
"""Before the id of an answer, it makes the id of what is shown of it."""
FENCED = {Medium.MERMAID: "mermaid", Medium.SQL: "sql"}
ENDINGS = {
    Medium.TEXT: "txt",
    Medium.JSON: "json",
    Medium.CSV: "csv",
    Medium.MARKDOWN: "md",
    Medium.MERMAID: "mmd",
    Medium.SQL: "sql",
}
_NAMES = {
    GrammarKind.JSON_SCHEMA: "JSON Schema",
    GrammarKind.REGEX: "Pattern",
    GrammarKind.CHOICE: "One of a list",
    GrammarKind.GBNF: "GBNF grammar",
    GrammarKind.LARK: "Lark grammar",
}


def name_of(form: AnswerForm) -> str:
    """What people call it."""
    return form.title or _NAMES[form.grammar.kind]


def medium_of(message: Message) -> Medium:
    """What the answer is: also JSON that a grammar of the user's own has made."""
    assert message.made_in is not None
    medium = message.made_in.form.medium
    return Medium.JSON if medium is Medium.TEXT and is_json(message.content) else medium


def mark_of(message: Message) -> str:
    """How it came out, in words."""
    assert message.made_in is not None
    match message.outcome:
        case Outcome.WHOLE:
            return "Follows the form"
        case Outcome.VALID:
            return "Follows the form; this was checked afterwards"
        case Outcome.INVALID:
            return f"Does not follow the form: {message.made_in.fault}"
    return "Cut off before its end"


def formed(message: Message) -> str:
    """Markdown of a finished answer that was made in a form."""
    assert message.made_in is not None and message.outcome is not None
    if not message.content:
        return ""
    return _formed(
        message.message_id,
        message.content,
        medium_of(message),
        message.outcome,
        f"{mark_of(message)}\u00a0· {name_of(message.made_in.form)}",
        message.grounds is None,
    )


def forget_formed() -> None:
    """Keep nothing of any answer, as when one was deleted; what is still shown is made anew."""
    _formed.cache_clear()


def forming(message: Message) -> str:
    """Markdown of one that is being written: what can be shown of it."""
    assert message.made_in is not None
    medium = message.made_in.form.medium
    text = message.content
    if len(text) > MOST_STREAMED:
        return f'<pre class="plain">…{show_verbatim(text[-MOST_SHOWN:])}</pre>'
    if medium in FENCED:
        # A diagram is drawn when it is complete.
        return _fenced(text, "")
    if medium is Medium.MARKDOWN:
        return show_answer(text, has_links=message.grounds is None)
    shape = shape_of(text, medium)
    if shape is None or isinstance(shape, str):
        return f'<p class="plain">{show_verbatim(text if shape is None else shape)}</p>'
    return f'<div class="formed">{shape_html(shape)}</div>'


# The rows of a conversation are made anew with every piece of an answer that is written below.
@lru_cache(maxsize=64)
def _formed(
    message_id: str, text: str, medium: Medium, outcome: Outcome, mark: str, has_links: bool
) -> str:
    before, inside = _parts(text, medium, outcome is Outcome.WHOLE, has_links)
    takes = (
        '<span class="takes"><button type="button" class="copy_all">Copy</button>'
        f'<button type="button" class="download">Download .{ENDINGS[medium]}</button></span>'
    )
    return (
        f'{before}<div class="formed" id="{FORM_ID}{escape(message_id)}">{inside}'
        f'<div class="under"><span class="mark {outcome.value}">{show_verbatim(mark)}</span>'
        f"{takes}</div></div>"
    )


def _parts(text: str, medium: Medium, is_whole: bool, has_links: bool) -> tuple[str, str]:
    """The answer as markdown, or as HTML in which its shape can be exchanged for its text."""
    if medium is Medium.MARKDOWN:
        return f"{closed(show_answer(text, has_links=has_links))}\n\n", ""
    if medium in FENCED:
        return f"{_fenced(text, FENCED[medium] if is_whole else '')}\n\n", ""
    shape = shape_of(text, medium)
    if shape is None or isinstance(shape, str):
        return "", f'<p class="plain">{_cut(text)}</p>'
    raw = laid_out(text) if medium is Medium.JSON else text
    kind = "JSON" if medium is Medium.JSON else "text"
    return "", (
        f'<div class="shape">{shape_html(shape, can_fetch=True)}</div>'
        f'<details class="raw"><summary><span class="to_raw">Show as {kind}</span>'
        f'<span class="to_shape">Show as a {_word(shape)}</span></summary>'
        f'<pre class="plain" tabindex="0">{_cut(raw)}</pre></details>'
    )


def _fenced(text: str, language: str) -> str:
    """As code; its fence is longer than any that is in it."""
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return show_answer(f"{fence}{language}\n{text}\n{fence}")


def _word(shape: Shape) -> str:
    if isinstance(shape, Table):
        return "table" if shape.columns else "list"
    return "form"


def _cut(text: str) -> str:
    if len(text) <= MOST_SHOWN:
        return show_verbatim(text)
    return (
        f'{show_verbatim(text[:MOST_SHOWN])}…<button type="button" class="all_text">Show all'
        f" {len(text):,} characters</button>"
    )


def shape_html(shape: Shape, can_fetch: bool = False) -> str:
    """`can_fetch`: a button brings what there is not room for."""
    match shape:
        case Table(columns, rows):
            shown = _first(rows)
            return _table(columns, shown) + _more(len(shown), len(rows), can_fetch)
        case Record(entries):
            pairs = "".join(
                f"<dt>{show_verbatim(name)}</dt><dd>{shape_html(each)}</dd>"
                for name, each in entries[:MOST_ROWS]
            )
            return f"<dl>{pairs}</dl>" + _more(min(len(entries), MOST_ROWS), len(entries), False)
    return show_verbatim(shape) if shape else '<span class="nothing">empty</span>'


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    if not columns:
        return f"<ol>{''.join(f'<li>{show_verbatim(each)}</li>' for (each,) in rows)}</ol>"
    head = "".join(f'<th scope="col">{show_verbatim(each)}</th>' for each in columns)
    cells = ("".join(f"<td>{show_verbatim(cell)}</td>" for cell in row) for row in rows)
    body = "".join(f"<tr>{row}</tr>" for row in cells)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _first(rows: Sequence[Sequence[str]]) -> Sequence[Sequence[str]]:
    """As many as there is room for."""
    num_characters = 0
    for number, row in enumerate(rows[:MOST_ROWS]):
        num_characters += sum(map(len, row))
        if num_characters > MOST_SHOWN and number:
            return rows[:number]
    return rows[:MOST_ROWS]


def _more(num_shown: int, num_all: int, can_fetch: bool) -> str:
    if num_shown == num_all:
        return ""
    if can_fetch:
        return (
            f'<p class="more"><span>{num_shown:,} of {num_all:,} shown</span>'
            '<button type="button" class="more_rows">Show more</button></p>'
        )
    return f'<p class="more"><span>The first {num_shown:,} of {num_all:,}</span></p>'
