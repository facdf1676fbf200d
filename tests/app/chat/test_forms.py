"""Which forms are offered, and what is said of one before it is taken."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from app.chat.answer_form import AnswerForm
from app.chat.chat_model import ChatModel
from app.chat.forms import Forms, Verdict
from engine.errors import ModelNotFound
from engine.guided.grammar import GrammarKind
from grammars.catalog import ready_forms
from tests.fakes_model import FakeEngine, fake_chat_model

UNIQUE = '{"type": "array", "uniqueItems": true}'


@pytest.fixture
async def forms(tmp_path: Path) -> AsyncIterator[Forms]:
    model = fake_chat_model(FakeEngine())

    async def loaded() -> ChatModel:
        return model

    yield Forms(tmp_path, loaded)
    model.close()


def schema(source: str, is_approximate: bool = False) -> AnswerForm:
    return AnswerForm.of_own(GrammarKind.JSON_SCHEMA, source, is_approximate)


async def test_without_a_folder_there_are_the_ready_ones(forms: Forms) -> None:
    ready = await forms.ready()
    assert dict(ready.forms) == dict(ready_forms())
    assert ready.faults == ()


async def test_own_forms_come_first_and_a_broken_file_hides_no_other(
    forms: Forms, tmp_path: Path
) -> None:
    (tmp_path / "mine.toml").write_text('title = "Mine"\nkind = "regex"\nsource = "a+"')
    (tmp_path / "csv.toml").write_text('title = "My CSV"\nkind = "regex"\nsource = "a,b"')
    (tmp_path / "zz.toml").write_text("kind = 3")
    ready = await forms.ready()
    assert list(ready.forms)[:2] == ["csv", "mine"]
    assert ready.forms["csv"].title == "My CSV"
    assert len(ready.forms) == len(ready_forms()) + 1
    (fault,) = ready.faults
    assert fault.startswith("zz.toml is no form")


async def test_a_form_that_can_be_kept_to_has_no_fault(forms: Forms) -> None:
    assert await forms.judge(schema("{}")) == Verdict()
    for each in ready_forms().values():
        assert await forms.judge(AnswerForm.of_ready(each)) == Verdict()


async def test_a_schema_that_cannot_be_enforced_may_be_approximate(forms: Forms) -> None:
    verdict = await forms.judge(schema(UNIQUE))
    assert "uniqueItems" in verdict.fault and "at the top;" in verdict.fault
    assert verdict.is_approximable
    allowed = await forms.judge(schema(UNIQUE, is_approximate=True))
    assert allowed.fault == "" and "uniqueItems" in allowed.unenforced


@pytest.mark.parametrize("source", ["{", "false", '{"$ref": "#"}'])
async def test_what_could_never_be_kept_to_cannot_be_approximate_either(
    forms: Forms, source: str
) -> None:
    for is_approximate in (False, True):
        verdict = await forms.judge(schema(source, is_approximate))
        assert verdict.fault and not verdict.is_approximable


async def test_the_fault_of_a_grammar_has_its_line_and_column(forms: Forms) -> None:
    gbnf = AnswerForm.of_own(GrammarKind.GBNF, 'root ::= "a"\n  | b')
    lark = AnswerForm.of_own(GrammarKind.LARK, 'start: "a"\n  | ) b')
    assert "line 2, column 5" in (await forms.judge(gbnf)).fault
    assert "line 2, column 5" in (await forms.judge(lark)).fault


async def test_without_a_model_nothing_can_be_said(tmp_path: Path) -> None:
    async def missing() -> ChatModel:
        raise ModelNotFound("There is no model file.")

    with pytest.raises(ModelNotFound):
        await Forms(tmp_path, missing).judge(schema("{}"))
