"""Whoever takes any allowed token, and then the way to the end, has written a valid answer."""

import json
import random

import pytest

from app.eval.guided import walk
from engine.guided.validator import AnswerValidator
from tests.engine.guided.forms import of_schema
from tests.engine.guided.schemas import SCHEMAS

NUM_WALKS = 20


@pytest.mark.parametrize("name", SCHEMAS)
def test_random_walks_end_in_valid_answers(name: str) -> None:
    form = of_schema(SCHEMAS[name])
    validator = AnswerValidator(json.dumps(SCHEMAS[name]))
    for number in range(NUM_WALKS):
        text = walk(form, random.Random(f"{name} {number}"))
        assert text is not None
        assert not validator.fault_of(text)
        assert " " * 21 not in text.replace(json.dumps(text), "")
