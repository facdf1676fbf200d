"""The adapters in the sheet's words, and what the sheet sends back."""

from pathlib import Path
from typing import Any

import pytest

from app.models.library import Listed
from app.models.local import LocalModel
from app.models.look import Look
from app.ui.adapters import adapter_row, choices, chosen
from engine.adapter import Adapter
from engine.errors import UsageError


def listed(name: str, **look: Any) -> Listed:
    path = Path(f"/{name}.gguf")
    facts: dict[str, Any] = {"is_adapter": True, "architecture": "llama"}
    model = LocalModel(name, path, 2_000_000, is_starter=False, is_chosen=False, source="added")
    return Listed(model, Look(num_bytes=2_000_000, **facts | look), None)


def test_a_row_says_what_it_is_and_was_made_for() -> None:
    row = adapter_row(listed("pirate", base_model="Tiny 1B"))
    assert row["facts"] == ["2 MB", "llama", "added"]
    assert "which changes a model. It was made for Tiny 1B. It is chosen" in row["note"]
    assert adapter_row(listed("cut", problem="It is cut off."))["problem"] == "It is cut off."


def test_those_in_use_come_first_in_their_order_and_only_what_fits_is_offered() -> None:
    here = [
        listed("a"),
        listed("b"),
        listed("other", architecture="gemma3"),
        listed("cut", problem="It is cut off."),
        listed("model", is_adapter=False),
    ]
    used = [Adapter(Path("/gone.gguf"), 0.5), Adapter(Path("/b.gguf"), -1.0)]
    rows = [(row["name"], row["is_used"], row["scale"]) for row in choices(used, here, "llama")]
    assert rows == [("gone", True, 0.5), ("b", True, -1.0), ("a", False, 1.0)]


def test_what_is_sent_are_adapters() -> None:
    given = [{"path": "/a.gguf", "scale": 1}, {"path": "/b.gguf", "scale": 0.5}]
    assert chosen(given) == [Adapter(Path("/a.gguf")), Adapter(Path("/b.gguf"), 0.5)]
    assert chosen([]) == []


@pytest.mark.parametrize(
    "given", [None, {}, ["a"], [{"path": "", "scale": 1}], [{"path": "/a", "scale": True}]]
)
def test_anything_else_is_refused(given: object) -> None:
    with pytest.raises(UsageError):
        chosen(given)
