"""The evaluation of answers from documents tells what is found, refused and cited rightly."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from app import cli
from app.documents.citation import Citation, Span, Verdict
from app.documents.embedding.minilm import convert
from app.documents.grounds import Grounds
from app.documents.scope import Scope
from app.eval.asked import Asked, Gold, read_asked
from app.eval.docs import Marks, Places, Tally, first_of_each, totals_of
from engine.errors import UsageError
from tests.app.documents.test_grounds import quotation
from tests.tiny_bert import write_tiny_package

RIVERS = {
    "inn": "The river Inn rises in Switzerland near Maloja.",
    "rhine": "The river Rhine is 1,233 kilometres long.",
    "lake": "Lake Constance lies between three countries.",
}


def question(text: str, doc: str, answer: str) -> dict[str, Any]:
    gold = [{"doc": f"rivers/{doc}.txt", "page": 1, "passage": None}] if doc else []
    return {
        "set": "rivers" if doc else "none",
        "lang": "en",
        "index": ["rivers"],
        "question": text,
        "answers": [answer] if answer else [],
        "gold": gold,
    }


@pytest.fixture
def data(tmp_path: Path) -> Path:
    (tmp_path / "docs/rivers").mkdir(parents=True)
    for name, text in RIVERS.items():
        (tmp_path / f"docs/rivers/{name}.txt").write_text(text)
    questions = [
        question("Where does the river Inn rise?", "inn", "Switzerland"),
        question("How long is the river Rhine?", "rhine", "1,233 kilometres"),
        question("Who painted boats and candles on Mondays?", "", ""),
    ]
    lines = [json.dumps(each) for each in questions]
    (tmp_path / "questions.jsonl").write_text("\n".join(lines) + "\n")
    return tmp_path


def test_questions_are_read_with_their_places(data: Path) -> None:
    first, _, last = read_asked(data)
    assert first.name == "rivers/en" and first.scope == Scope(paths=(f"{data}/docs/rivers",))
    assert first.gold == (Gold(f"{data}/docs/rivers/inn.txt", 1, ""),) and last.gold == ()
    with pytest.raises(UsageError, match="cannot be read"):
        read_asked(data / "nowhere")
    (data / "questions.jsonl").write_text('{"set": 1}')
    with pytest.raises(UsageError, match="no questions"):
        read_asked(data)


def test_a_place_is_a_file_with_a_page_or_a_passage() -> None:
    here = quotation(
        page=12, page_to=13, text="The Inn rises in Switzerland,\nnear Maloja, and on."
    )
    path = here.paths[0]
    assert Gold(path, 13, "").is_in(here) and not Gold(path, 14, "").is_in(here)
    assert not Gold("/other.pdf", 12, "").is_in(here)
    assert Gold(path, None, "The Inn rises in Switzerland, near Maloja").is_in(here)
    narrow = replace(here, text="\u8fd9\u662f,\u6cb3\u6d41.")
    assert Gold(path, None, "\u8fd9\u662f\uff0c\u6cb3\u6d41").is_in(narrow)
    assert not Gold(path, None, "The Rhine is long and flows to the north, it is said").is_in(here)


def test_citations_are_counted() -> None:
    quotations = (quotation(), quotation(paths=("/other.pdf",)))
    asked = Asked("s", "en", "?", Scope(), (), (Gold(quotations[0].paths[0], 12, ""),))
    kept = Citation(number=1, sentence=Span(0, 1), mark=Span(0, 1), verdict=Verdict.KEPT, written=1)
    marks = Marks()
    grounds = Grounds(quotations=quotations)
    marks.add(grounds, asked)
    marks.add(replace(grounds, citations=(kept, replace(kept, number=2))), asked)
    assert (marks.coverage, marks.accuracy) == (0.5, 0.5)


def test_each_subset_is_cut_alike() -> None:
    many = [Asked(name, "en", str(n), Scope(), (), ()) for n in range(5) for name in "ab"]
    assert [each.text for each in first_of_each(many, 2)] == ["0", "0", "1", "1"]
    assert len(first_of_each(many, None)) == 10


def placed(*hits: int) -> Places:
    places = Places()
    for hit in hits:
        places.add([bool(hit)])
    return places


def test_a_place_behind_the_first_five_gains_a_little_and_is_no_hit() -> None:
    places = Places()
    places.add([False] * 5 + [True])
    places.add([False, True])
    places.add([])
    assert places.hits == [0, 1, 0]
    assert [round(each, 3) for each in places.gains] == [0.356, 0.631, 0]


def test_with_an_embedder_each_way_of_searching_has_its_figures() -> None:
    tally = Tally(places=placed(1, 1, 0, 1), by_words=placed(1, 0, 0, 1))
    row = tally.as_row("a/en")
    assert (row["hit_at_5"], row["words_hit_at_5"], row["gain"]) == (0.75, 0.5, 0.25)
    assert row["gain_low"] <= 0.0 < row["gain_high"]
    assert Tally(places=placed(1)).as_row("a/en")["gain"] is None


def test_questions_without_an_answer_count_apart() -> None:
    tallies = {
        "a/en": Tally(num_questions=4, num_refused=1, places=placed(1, 1, 0, 1)),
        "b/en": Tally(num_questions=2, num_refused=2),
    }
    totals = totals_of(tallies)
    assert (totals["hit_at_5"], totals["false_refusals"]) == (0.75, 0.25)
    assert totals["refused_unanswerable"] == 1.0 and totals["by_language"] == {"a/en": 0.75}


def test_the_last_line_is_one_object(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["eval", "docs", "--data", str(data), "--answers", "0"]) == 0
    report = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (report["eval"], report["hit_at_5"], report["ndcg_at_10"]) == ("docs", 1.0, 1.0)
    assert (report["refused_unanswerable"], report["false_refusals"]) == (1.0, 0.0)
    rows = {row["subset"]: row for row in report["rows"]}
    assert rows["rivers/en"]["marks_right"] == 1.0 and not rows["rivers/en"]["foreign_cited"]


def test_words_and_meaning_are_told_apart(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With random weights, in the process that a real model has."""
    model = tmp_path / "tiny.gguf"
    convert(write_tiny_package(tmp_path / "tiny"), model)
    command = ["eval", "docs", "--data", str(data), "--answers", "0", "--embedder", str(model)]
    assert cli.main(command) == 0
    report = json.loads(capsys.readouterr().out.splitlines()[-1])
    row = next(row for row in report["rows"] if row["subset"] == "rivers/en")
    assert row["words_hit_at_5"] == 1.0 and row["meaning_hit_at_5"] is not None
    assert report["machine"] and row["gain_low"] <= row["gain"] <= row["gain_high"]


def test_an_embedder_that_cannot_be_used_says_why(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["eval", "docs", "--data", str(data), "--answers", "0", "--embedder", "none.gguf"]
    assert cli.main(command) == 2
    assert "There is no embedding model none.gguf" in capsys.readouterr().err


@pytest.mark.model
def test_a_model_is_asked_as_often_as_is_wanted(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["eval", "docs", "--data", str(data), "--answers", "1", "--context", "2048"]
    assert cli.main(command) == 0
    report = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert sum(row["answers"] for row in report["rows"]) == 1
