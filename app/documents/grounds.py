"""What an answer stands on: the passages that were found for its question, and its citations."""

import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from app.amounts import counted
from app.documents.citation import Citation, Span, span_from_json
from app.documents.quotation import Quotation
from app.documents.record import Record
from app.documents.scope import WHOLE_LIBRARY, Scope
from app.documents.whole import Whole

MOST_QUOTATIONS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Grounds:
    """`searched` was looked for in `num_documents` documents of `scope`, of which `num_waiting`
    files were still to be read.

    `is_found`: the model was given `quotations`, numbered from 1, between fences with the sign
    `fence`; they took `num_tokens` of its prompt. Otherwise they are the nearest there is, and no
    model was asked. `citations` stand in the order of the text; `unfound` are sentences that
    state what stands in none of the quotations.

    `whole`: the model was given all of one document, in numbered parts, before everything else.
    Then `quotations` are only those of the parts that the answer names, and `numbers` are theirs.
    """

    scope: Scope = WHOLE_LIBRARY
    searched: str = ""
    num_documents: int = 0
    num_waiting: int = 0
    is_found: bool = False
    quotations: tuple[Quotation, ...] = ()
    fence: str = ""
    num_tokens: int = 0
    citations: tuple[Citation, ...] = ()
    unfound: tuple[Span, ...] = ()
    whole: Whole | None = None
    numbers: tuple[int, ...] = ()
    is_summary: bool = False
    """It is of all of that document, and nobody asked a question."""

    @property
    def numbered(self) -> Iterator[tuple[int, Quotation]]:
        """Each quotation after its number."""
        numbers = self.numbers if self.whole else range(1, len(self.quotations) + 1)
        return zip(numbers, self.quotations, strict=True)

    def quotation(self, number: int) -> Quotation | None:
        return next((each for known, each in self.numbered if known == number), None)

    def quotation_of(self, citation: Citation) -> Quotation:
        found = self.quotation(citation.number)
        assert found is not None, "a citation that is shown names a quotation"
        return found

    def quote_of(self, citation: Citation) -> str:
        """The words that bear the sentence out."""
        return self.quotation_of(citation).text[slice(*citation.quote)]

    @property
    def cited(self) -> tuple[int, ...]:
        """The numbers of the quotations that the answer names, in the order of the text."""
        return tuple(dict.fromkeys(each.number for each in self.citations if each.is_shown))

    def unchecked(self) -> "Grounds":
        """Without what is known of the answer: as they were before it."""
        named = self.quotations if self.whole is None else ()
        return replace(self, quotations=named, numbers=(), citations=(), unfound=())

    def with_parts(self, parts: Sequence[Quotation]) -> "Grounds":
        """With those of a whole document's parts that the citations name."""
        numbers = tuple(sorted(self.cited))[:MOST_QUOTATIONS]
        shown = [each for each in self.citations if not each.is_shown or each.number in numbers]
        named = tuple(parts[number - 1] for number in numbers)
        return replace(self, quotations=named, numbers=numbers, citations=tuple(shown))

    def check_fits(self, content: str) -> None:
        """Raises ValueError where this cannot be said of an answer with this text."""
        spans = [each for citation in self.citations for each in (citation.sentence, citation.mark)]
        if any(each.end > len(content) for each in (*spans, *self.unfound)):
            raise ValueError("a citation lies behind the end of its answer")
        marks = [citation.mark for citation in self.citations]
        if any(one.end > other.start for one, other in pairwise(marks)):
            raise ValueError("the citations of an answer stand in the order of its text")

    def as_json(self) -> dict[str, Any]:
        """What `from_json` takes."""
        return {
            "scope": self.scope.as_json(),
            "searched": self.searched,
            "num_documents": self.num_documents,
            "num_waiting": self.num_waiting,
            "is_found": self.is_found,
            "quotations": [each.as_json() for each in self.quotations],
            "fence": self.fence,
            "num_tokens": self.num_tokens,
            "citations": [each.as_json() for each in self.citations],
            "unfound": [list(each) for each in self.unfound],
            **self._whole_as_json(),
        }

    def _whole_as_json(self) -> dict[str, Any]:
        if self.whole is None:
            return {}
        return {
            "whole": self.whole.as_json(),
            "numbers": list(self.numbers),
            "is_summary": self.is_summary,
        }

    @classmethod
    def from_json(cls, found: object) -> "Grounds":
        """Raises ValueError for what `as_json` does not write."""
        record = Record.of(found, "what an answer stands on")
        quotations = tuple(map(Quotation.from_json, record.list("quotations")))
        citations = tuple(map(Citation.from_json, record.list("citations")))
        if len(quotations) > MOST_QUOTATIONS:
            raise ValueError(f"an answer stands on {len(quotations):,} quotations")
        whole, numbers = None, tuple(range(1, len(quotations) + 1))
        if record.found.get("whole") is not None:
            whole = Whole.from_json(record.found["whole"])
            numbers = tuple(record.list("numbers"))
            if len(numbers) != len(quotations) or not all(type(each) is int for each in numbers):
                raise ValueError("each quotation of an answer has its number")
        if not all(each.number in numbers for each in citations if each.is_shown):
            raise ValueError("a citation names a quotation that is not there")
        is_found = record.found.get("is_found")
        if not isinstance(is_found, bool):
            raise ValueError("it is told whether something was found for an answer")
        return cls(
            scope=Scope.from_json(record.found.get("scope")),
            searched=record.text("searched"),
            num_documents=record.number("num_documents", 0),
            num_waiting=record.number("num_waiting", 0),
            is_found=is_found,
            quotations=quotations,
            fence=record.text("fence"),
            num_tokens=record.number("num_tokens", 0),
            citations=citations,
            unfound=tuple(map(span_from_json, record.list("unfound"))),
            whole=whole,
            numbers=numbers if whole else (),
            is_summary=whole is not None and record.found.get("is_summary") is True,
        )


def marked(
    content: str,
    grounds: Grounds,
    mark: Callable[[Citation], str],
    around_unfound: tuple[str, str] = ("", ""),
) -> str:
    """The answer with what `mark` gives in the place of each mark that is shown, without those
    that were dropped, and with these texts around each sentence that was not found."""
    changes: list[tuple[Span, int, str]] = []
    for citation in grounds.citations:
        shown = mark(citation) if citation.is_shown else ""
        begin = citation.mark.start
        before_it = content[:begin][-1:]
        if not shown and before_it == " ":
            # The space before it was there for its sake.
            changes.append((Span(begin - 1, citation.mark.end), 1, ""))
            continue
        is_added = citation.written is None
        space = " " if is_added and _takes_space(before_it) else ""
        changes.append((citation.mark, 1, space + shown))
    before, after = around_unfound
    for sentence in grounds.unfound:
        changes.append((Span(sentence.start, sentence.start), 0, before))
        changes.append((Span(sentence.end, sentence.end), 2, after))
    pieces: list[str] = []
    done = 0
    for span, _, text in sorted(changes, key=lambda each: (each[0].start, each[1])):
        pieces += content[done : max(done, span.start)], text
        done = max(done, span.end)
    return "".join([*pieces, content[done:]])


def _takes_space(character: str) -> bool:
    """Whether a space stands between it and a mark."""
    is_wide = bool(character) and unicodedata.east_asian_width(character) in "WF"
    return bool(character.strip()) and not is_wide


def with_marks(content: str, grounds: Grounds) -> str:
    """The answer as text, with the marks as they were found right: "[2]"."""
    return marked(content, grounds, lambda citation: f"[{citation.number}]")


def nothing_found(grounds: Grounds) -> str:
    """The answer where no model is asked."""
    looked = f"I looked through {counted(grounds.num_documents, 'document')}."
    nearest = " The nearest passages are named below." if grounds.quotations else ""
    waiting = f" {still_read(grounds.num_waiting)}" if grounds.num_waiting else ""
    return f"I found nothing about this in your documents. {looked}{waiting}{nearest}"


def still_read(num_waiting: int) -> str:
    """What may be in files that no text is known of yet."""
    are = "is" if num_waiting == 1 else "are"
    return f"{counted(num_waiting, 'file')} {are} still being read: ask again when that is done."
