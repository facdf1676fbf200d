"""Whether a value can be written under a form in some order of its keys.

JSON gives the keys of an object no order, and a form has one: that of its schema, where several are
joined that of each part. So an instance is stopped only if no order of its keys gets to the end.
"""

import json
from collections.abc import Iterator
from typing import Any

from engine.errors import GrammarFailed
from engine.guided.compiler import CompiledGrammar
from engine.guided.matcher import Matcher

MOST_STEPS = 4_000
"""Pieces that are tried in all. What is not found by then counts as stopped."""


class KeyOrders:
    """Of one form: keys are tried first as its schema names them."""

    def __init__(self, form: CompiledGrammar) -> None:
        self._form = form
        self._num_left = 0

    def accept(self, value: Any) -> bool:
        """Some order gets to an end."""
        self._num_left = MOST_STEPS
        return any(after.is_accepting for after in self._write(self._form.matcher(), value))

    def _write(self, before: Matcher, value: Any) -> Iterator[Matcher]:
        """Where the form may stand after the value."""
        match value:
            case dict():
                yield from self._members(before, value, self._sorted(value), "{")
            case list():
                yield from self._items(before, value, "[")
            case _:
                yield from self._piece(before, json.dumps(value, ensure_ascii=False))

    def _members(
        self, before: Matcher, value: dict[str, Any], names: list[str], opening: str
    ) -> Iterator[Matcher]:
        """`names` are still to be written, and `opening` stands before the next of them."""
        if not names:
            yield from self._piece(before, "{}" if opening == "{" else "}")
        for name in names:
            others = [each for each in names if each != name]
            written = f"{opening}{json.dumps(name, ensure_ascii=False)}: "
            for named in self._piece(before, written):
                for after in self._write(named, value[name]):
                    yield from self._members(after, value, others, ", ")

    def _items(self, before: Matcher, items: list[Any], opening: str) -> Iterator[Matcher]:
        if not items:
            yield from self._piece(before, "[]" if opening == "[" else "]")
            return
        for begun in self._piece(before, opening):
            for after in self._write(begun, items[0]):
                yield from self._items(after, items[1:], ", ")

    def _piece(self, before: Matcher, text: str) -> Iterator[Matcher]:
        """Where the form stands after a piece of text, if that may come and there is time left."""
        token_ids = self._form.vocabulary(text.encode())
        if self._num_left <= 0 or before.num_valid(token_ids) < len(token_ids):
            return
        self._num_left -= 1
        after = before.copy()
        try:
            for token_id in token_ids:
                after.accept(token_id)
        except GrammarFailed:
            return
        yield after

    def _sorted(self, value: dict[str, Any]) -> list[str]:
        source = self._form.grammar.source
        places = {name: source.find(f"{json.dumps(name, ensure_ascii=False)}:") for name in value}
        return sorted(value, key=lambda name: places[name] if places[name] >= 0 else len(source))
