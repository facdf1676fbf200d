"""Every ready form accepts and refuses what it says, and a file that is none is told."""

import random
from pathlib import Path

import pytest

from app.eval.guided import walk
from engine.guided.compiler import CompiledGrammar, compile_grammar
from engine.guided.grammar import Grammar, GrammarKind
from grammars.catalog import KINDS, FormFileError, ReadyForm, forms_in, read_form_file, ready_forms
from tests.engine.guided.forms import BYTES, accepts

FORMS = list(ready_forms().values())
every_form = pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)


def compiled_form(form: ReadyForm) -> CompiledGrammar:
    grammar = Grammar(GrammarKind(form.kind), form.source, examples=form.accepted)
    return compile_grammar(grammar, BYTES)


def test_the_languages_are_those_of_the_engine() -> None:
    assert set(KINDS) == {kind.value for kind in GrammarKind}


@every_form
def test_it_says_what_it_is(form: ReadyForm) -> None:
    assert form.title and form.description.endswith(".")
    assert form.accepted and len(form.refused) >= 2


@every_form
def test_it_accepts_and_refuses_its_examples(form: ReadyForm) -> None:
    compiled = compiled_form(form)
    assert [text for text in form.accepted if not accepts(compiled, text)] == []
    assert [text for text in form.refused if accepts(compiled, text)] == []


@every_form
def test_random_walks_in_it_come_to_an_end(form: ReadyForm) -> None:
    compiled = compiled_form(form)
    for number in range(20):
        text = walk(compiled, random.Random(number))
        assert text is not None
        assert accepts(compiled, text) or "\ufffd" in text


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("title = ", "not TOML"),
        ("\xff", "not TOML"),
        ('title = "x"\nsource = "y"', "'kind'"),
        ('title = "x"\nkind = "abnf"\nsource = "y"', "kind must be one of"),
        ('title = 7\nkind = "regex"\nsource = "y"', "'title'"),
        ('title = "x"\nkind = "regex"', "'source'"),
        ('title = "x"\nkind = "regex"\nsource = "y"\naccepted = "y"', "'accepted'"),
        ('title = "x"\nkind = "regex"\nsource = "y"\nmedium = "film"', "medium must be one of"),
    ],
)
def test_a_file_that_is_no_form_is_one_sentence(content: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_bytes(content.encode("latin-1"))
    with pytest.raises(FormFileError, match=f"mine.toml.*{said}") as refusal:
        read_form_file(file)
    assert "\n" not in str(refusal.value)


def test_ones_own_are_found_in_their_folder(tmp_path: Path) -> None:
    assert forms_in(tmp_path / "nowhere") == {}
    (tmp_path / "mine.toml").write_text("title = 'Mine'\nkind = 'regex'\nsource = '''\na\n'''\n")
    assert forms_in(tmp_path) == {"mine": ReadyForm("mine", "Mine", "", "regex", "a", (), ())}
