"""Which shape an answer has: names with values, a table, a list, or none."""

import pytest

from app.chat.answer_form import Medium
from app.ui.shape import LONGEST_CELL, MOST_COLUMNS, Record, Table, is_json, shape_of


def test_an_object_is_names_with_values() -> None:
    text = '{"name": "Ann", "age": 3.0, "glad": true, "sad": false, "dog": null}'
    assert shape_of(text, Medium.JSON) == Record(
        (("name", "Ann"), ("age", "3.0"), ("glad", "yes"), ("sad", "no"), ("dog", "none"))
    )


def test_a_list_of_objects_is_a_table_with_every_name() -> None:
    text = '[{"a": 1}, {"b": [1, "x"], "a": {"k": 2.0}}, {}]'
    assert shape_of(text, Medium.JSON) == Table(
        ("a", "b"), [("1", ""), ('{"k": 2.0}', "1, x"), ("", "")]
    )


def test_a_list_of_anything_else_is_a_list() -> None:
    assert shape_of('["a", 1, {"b": 2}]', Medium.JSON) == Table((), [("a",), ("1",), ('{"b": 2}',)])
    assert shape_of("[{}, {}]", Medium.JSON) == Table((), [("{}",), ("{}",)])


def test_what_is_nested_is_nested() -> None:
    shape = shape_of('{"a": {"b": [{"c": 1}]}, "d": []}', Medium.JSON)
    assert shape == Record((("a", Record((("b", Table(("c",), [("1",)])),))), ("d", "")))


def test_what_lies_very_deep_is_shown_as_json() -> None:
    text = '{"a": ' * 8 + '"x"' + "}" * 8
    shape = shape_of(text, Medium.JSON)
    for _ in range(6):
        assert isinstance(shape, Record)
        ((_, shape),) = shape.entries
    assert shape == '{"a": {"a": "x"}}'


def test_what_is_cut_is_shown_as_far_as_it_goes() -> None:
    assert shape_of('[{"a": "x", "b": "half', Medium.JSON) == Table(("a", "b"), [("x", "half")])


def test_csv_is_a_table_with_its_quotes_taken_off() -> None:
    text = 'a,"b, c"\n1,"say ""hi"""\n\n2\n3,4,5'
    assert shape_of(text, Medium.CSV) == Table(
        ("a", "b, c"), [("1", 'say "hi"'), ("2",), ("3", "4")]
    )
    assert shape_of('a,b\n1,"half', Medium.CSV) == Table(("a", "b"), [("1", "half")])


def test_a_table_has_an_end_to_the_right_and_in_its_cells() -> None:
    row = ", ".join(f'"{number}": "{"x" * 2000}"' for number in range(100))
    shape = shape_of(f"[{{{row}}}]", Medium.JSON)
    assert isinstance(shape, Table)
    assert len(shape.columns) == len(shape.rows[0]) == MOST_COLUMNS
    assert shape.rows[0][0] == "x" * LONGEST_CELL + "…"


@pytest.mark.parametrize(
    ("text", "medium"),
    [
        ("{", Medium.TEXT),
        ('{"a": 1}', Medium.MARKDOWN),
        ("no JSON", Medium.JSON),
        ("", Medium.CSV),
        ("[" * 100_000, Medium.JSON),
        ("a" * 200_000, Medium.CSV),
    ],
)
def test_everything_else_is_text(text: str, medium: Medium) -> None:
    assert shape_of(text, medium) is None


def test_json_that_a_grammar_has_made_is_known_by_its_ends() -> None:
    assert is_json('{"a": 1}') and is_json(" [1] ")
    for text in ("3", '"a"', "{a}", '{"a": 1', ""):
        assert not is_json(text)


@pytest.mark.parametrize("depth", [100, 300, 500, 900, 5_000])
@pytest.mark.parametrize("end", [1, 0])
def test_lists_in_lists_without_end_are_shown_as_text_at_worst(depth: int, end: int) -> None:
    text = "[" * depth + "]" * depth * end
    shape = shape_of(text, Medium.JSON)
    assert shape is None or isinstance(shape, str | Table)
    assert is_json(text) in (True, False)
