"""Which measures of documents are taken, and how they are judged."""

import pytest

from app import cli
from app.bench.docs import MEASURES, QUERY_BAR_MS, wanted
from engine.errors import UsageError


def test_without_a_choice_everything_is_measured_and_memory_first() -> None:
    assert wanted("") == list(MEASURES)
    assert wanted("chat, pages") == ["pages", "chat"]


def test_an_unknown_measure_is_named_with_those_there_are() -> None:
    with pytest.raises(UsageError, match="no measure speed: choose of memory, pages"):
        wanted("pages,speed")


def test_a_folder_that_is_not_there_is_wrong_use(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["bench", "docs", "--only", "pages", "--data", "/nowhere"]) == 2
    assert capsys.readouterr().err == "There is no folder /nowhere.\n"


def test_the_bar_of_a_question_is_at_its_slowest() -> None:
    assert QUERY_BAR_MS.is_met_by(150) and not QUERY_BAR_MS.is_met_by(151)
