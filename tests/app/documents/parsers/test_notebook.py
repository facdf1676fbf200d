"""Notebooks: words, programs and what they printed."""

import json

from app.documents.document import Heading
from tests.app.documents.parsers.read import read


def test_cells_and_outputs_are_read_in_their_order() -> None:
    book = {
        "nbformat": 4,
        "cells": [
            {"cell_type": "markdown", "source": ["# Plan\n", "\n", "Words."]},
            {
                "cell_type": "code",
                "source": "print(1 + 1)",
                "outputs": [
                    {"output_type": "stream", "text": ["2\n"]},
                    {"data": {"text/plain": "3", "image/png": "iVBORw0KGgo="}},
                ],
            },
        ],
    }
    pages, facts = read(json.dumps(book).encode(), "a.ipynb")
    assert pages[0].text == "Plan\n\nWords.\n\nprint(1 + 1)\n\n2\n\n3"
    assert pages[0].headings == (Heading(start=0, path=("Plan",)),)
    assert facts.kind == "ipynb"
