"""An answer from the user's files: its marks as chips that open a page, and what was looked at."""

import re
from dataclasses import replace
from html import escape

from app.amounts import counted
from app.chat.message import Message
from app.documents.citation import Citation, Span, Verdict
from app.documents.grounds import Grounds, marked
from app.documents.quotation import Quotation
from app.ui.documents import page_words
from app.ui.fences import parts
from app.ui.markdown import SPAN, show_answer
from app.ui.verbatim import show_verbatim
from app.visible import visible

PASSAGE = "#passage-"
"""Before the id of an answer, the number of a quotation and that of a citation, from 1, or 0."""
LONGEST_NAME = 36
UNFOUND = "Not found in the sources: none of the passages says this."
NOTES = {Verdict.CORRECTED: " · corrected", Verdict.ADDED: " · added"}
TITLES = {
    Verdict.KEPT: "",
    Verdict.CORRECTED: "The model named another passage; this one says it. ",
    Verdict.ADDED: "The model named no passage; this one says it. ",
}

# These signs stand for what is ours, until the text around it is made harmless. Where an answer has
# them itself, as the icons of a page that it copies, they are taken out of it before.
_MARK, _END, _UNFOUND, _FOUND = "\ue000", "\ue001", "\ue002", "\ue003"
_OURS = re.compile(f"[{_MARK}{_END}{_UNFOUND}{_FOUND}]")
_PLACED = re.compile(f"{_MARK}(\\d{{1,9}}){_END}|{_UNFOUND}|{_FOUND}")
_FORMULA = re.compile(r"\$\$[\s\S]+?\$\$|\\\([\s\S]+?\\\)|\\\[[\s\S]+?\\\]")
_LITERAL = re.compile(f"(?:{SPAN.pattern})|{_FORMULA.pattern}")
# What a line begins with for the sake of its form: a list, a quotation, a heading.
_BULLET = re.compile(r"[^\S\n]*(?:(?:[-*+>]|\d+[.)]|#{1,6})[^\S\n]+)*")


def cited(message: Message, grounds: Grounds) -> str:
    """The text of the answer, as safe as any, with chips in the place of its marks."""
    content = _OURS.sub("\ufffd", message.content)
    order = {citation: number for number, citation in enumerate(grounds.citations, start=1)}
    by_line = replace(grounds, unfound=_by_line(content, grounds.unfound))
    signs = marked(
        content,
        by_line,
        lambda citation: f"{_MARK}{order[citation]}{_END}",
        (_UNFOUND, _FOUND),
    )
    return _placed(show_answer(signs, has_links=False), message, grounds)


def looked_at(message: Message, grounds: Grounds) -> str:
    """The passages that the model was given, or the nearest ones where that was nothing. Of a
    document that it was given whole, those that the answer names."""
    whole = grounds.whole
    if whole is not None:
        pages = counted(whole.num_pages, "page")
        name = show_verbatim(_short(whole.name))
        # It may have been stopped before all of it was read.
        read = f"{'A summary' if grounds.is_summary else 'The whole file'}: {name}, {pages}"
        if not grounds.quotations:
            return f'<p class="looked">{read}.</p>'
    elif not grounds.quotations:
        return ""
    chips = " ".join(
        _chip(message, number, 0, quotation, f"{number}: ", "", is_cited=number in grounds.cited)
        for number, quotation in grounds.numbered
    )
    words = "Looked at" if grounds.is_found else "The nearest passages"
    if whole is not None:
        words = read
    return f'<p class="looked">{words}: {chips}</p>'


def _placed(shown: str, message: Message, grounds: Grounds) -> str:
    pieces: list[str] = []
    for part in parts(shown):
        at = 0
        # Where text is shown letter by letter, a chip would be letters too.
        literal = [(0, len(part.text))] if part.is_code else _spans(part.text)
        for start, end in literal:
            pieces += (
                _chips(part.text[at:start], message, grounds),
                _marks(part.text[start:end], grounds),
            )
            at = end
        pieces.append(_chips(part.text[at:], message, grounds))
    return "".join(pieces)


def _spans(text: str) -> list[tuple[int, int]]:
    return [match.span() for match in _LITERAL.finditer(text)]


def _chips(text: str, message: Message, grounds: Grounds) -> str:
    def chip(match: re.Match[str]) -> str:
        if match[0] == _UNFOUND:
            return f'<span class="unfound" title="{UNFOUND}">'
        if match[0] == _FOUND:
            return "</span>"
        citation = _citation(match, grounds)
        if citation is None:
            return ""
        return _chip(
            message,
            citation.number,
            int(match[1]),
            grounds.quotation_of(citation),
            "",
            NOTES.get(citation.verdict, ""),
            title=TITLES.get(citation.verdict, ""),
        )

    return _PLACED.sub(chip, text)


def _marks(text: str, grounds: Grounds) -> str:
    def mark(match: re.Match[str]) -> str:
        citation = _citation(match, grounds) if match[1] else None
        return f"[{citation.number}]" if citation else ""

    return _PLACED.sub(mark, text)


def _citation(match: re.Match[str], grounds: Grounds) -> Citation | None:
    """None: no mark of this answer has this number."""
    number = int(match[1])
    found = grounds.citations[number - 1] if 0 < number <= len(grounds.citations) else None
    return found if found is not None and found.is_shown else None


def _chip(
    message: Message,
    number: int,
    citation: int,
    quotation: Quotation,
    before: str,
    after: str,
    *,
    title: str = "",
    is_cited: bool = True,
) -> str:
    name = visible(quotation.name)
    place = f"{PASSAGE}{escape(message.message_id)}-{number}-{citation}"
    kind = "cite" if is_cited else "cite unused"
    told = show_verbatim(f"{title}{name}, {page_words(quotation.page, quotation.label)}")
    text = show_verbatim(f"{before}{_short(quotation.name)}, p. {quotation.page}{after}")
    return f'<a class="{kind}" href="{place}" title="{told}">{text}</a>'


def _short(name: str) -> str:
    name = visible(name)
    return name if len(name) <= LONGEST_NAME else f"{name[:20]}…{name[-12:]}"


def _by_line(content: str, spans: tuple[Span, ...]) -> tuple[Span, ...]:
    """Without line ends and what begins a line, which make the form of the text, and without code:
    a sign before a fence would make it none."""
    found: list[Span] = []
    code = _code(content)
    for span in spans:
        at = span.start
        for line in content[span.start : span.end].split("\n"):
            # Of the whole line: a sentence may be no more than the number of a list.
            begun = content.rfind("\n", 0, at) + 1
            bullet = _BULLET.match(content, begun)
            start = max(at, bullet.end()) if bullet else at
            end = at + len(line.rstrip())
            # A row of a table is made of its bars.
            is_code = any(low <= at < high for low, high in code)
            if start < end and "|" not in line and not is_code:
                found.append(Span(start, end))
            at += len(line) + 1
    return tuple(found)


def _code(content: str) -> list[tuple[int, int]]:
    """Where lines are fenced."""
    found: list[tuple[int, int]] = []
    at = 0
    for part in parts(content):
        if part.is_code:
            found.append((at, at + len(part.text)))
        at += len(part.text)
    return found
