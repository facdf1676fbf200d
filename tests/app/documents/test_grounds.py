"""What an answer stands on, as a value: marks put into a text, and JSON that may be foreign."""

import json
from dataclasses import replace
from typing import Any

import pytest

from app.documents.citation import Citation, Span, Verdict
from app.documents.grounds import Grounds, marked, with_marks
from app.documents.quotation import Quotation
from app.documents.scope import WHOLE_LIBRARY, Scope

CONTENT = "The Inn is long [3]. It is blue [2]. It rises in Switzerland."


def quotation(**changes: Any) -> Quotation:
    values: dict[str, Any] = {
        "sha256": "ab" * 32,
        "paths": ("/papers/rivers.pdf", "/papers/copy.pdf"),
        "title": "Rivers",
        "page": 12,
        "page_to": 13,
        "label": "xii",
        "heading": ("Rivers", "The Inn"),
        "start": 40,
        "end": 17,
        "text": "The Inn rises in Switzerland.",
    }
    return Quotation(**values | changes)


def citation(verdict: Verdict, number: int, mark: Span, written: int | None) -> Citation:
    return Citation(
        number=number, sentence=Span(0, mark.end), mark=mark, verdict=verdict, written=written
    )


@pytest.fixture
def grounds() -> Grounds:
    return Grounds(
        scope=Scope(collections=("work",)),
        searched="Where does the Inn rise?",
        num_documents=7,
        num_waiting=2,
        is_found=True,
        quotations=(quotation(), quotation(page=1, page_to=1, start=0, end=5)),
        fence="7f3a",
        num_tokens=300,
        citations=(
            citation(Verdict.CORRECTED, 1, Span(16, 19), 3),
            citation(Verdict.DROPPED, 2, Span(32, 35), 2),
            citation(Verdict.ADDED, 2, Span(60, 60), None),
        ),
        unfound=(Span(21, 36),),
    )


def test_marks_are_put_where_they_are_right(grounds: Grounds) -> None:
    assert with_marks(CONTENT, grounds) == (
        "The Inn is long [1]. It is blue. It rises in Switzerland [2]."
    )


def test_who_shows_an_answer_chooses_what_a_mark_looks_like(grounds: Grounds) -> None:
    shown = marked(CONTENT, grounds, lambda each: f"<{each.number}>", ("{", "}"))
    assert shown == "The Inn is long <1>. {It is blue.} It rises in Switzerland <2>."


def test_a_mark_needs_no_space_in_a_script_without_spaces() -> None:
    content = "因河发源于瑞士。"
    added = citation(Verdict.ADDED, 1, Span(7, 7), None)
    grounds = Grounds(is_found=True, quotations=(quotation(),), citations=(added,))
    assert with_marks(content, grounds) == "因河发源于瑞士[1]。"


def test_an_answer_names_quotations_in_the_order_of_its_text(grounds: Grounds) -> None:
    assert grounds.cited == (1, 2)
    assert grounds.quotation_of(grounds.citations[2]).page == 1
    assert grounds.quotations[0].name == "rivers.pdf"


def test_json_keeps_everything(grounds: Grounds) -> None:
    assert Grounds.from_json(json.loads(json.dumps(grounds.as_json()))) == grounds
    assert Scope.from_json(WHOLE_LIBRARY.as_json()) == WHOLE_LIBRARY
    grounds.check_fits(CONTENT)


@pytest.mark.parametrize(
    "changes",
    [
        {"is_found": 1},
        {"scope": None},
        {"scope": {"paths": [""]}},
        {"num_documents": -1},
        {"quotations": {}},
        {"quotations": [{"page": 0}]},
        {"fence": None},
        {"unfound": [[5, 1]]},
        {"citations": [{"number": 3, "sentence": [0, 1], "mark": [0, 0], "verdict": "kept"}]},
        {"citations": [{"number": 1, "sentence": [0, 1], "mark": [0, 0], "verdict": "right"}]},
    ],
)
def test_what_was_not_written_here_is_refused(grounds: Grounds, changes: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        Grounds.from_json(grounds.as_json() | changes)


def test_a_citation_must_lie_in_its_answer(grounds: Grounds) -> None:
    with pytest.raises(ValueError, match="behind the end"):
        grounds.check_fits(CONTENT[:40])
    disordered = replace(grounds, citations=grounds.citations[::-1])
    with pytest.raises(ValueError, match="in the order"):
        disordered.check_fits(CONTENT)
