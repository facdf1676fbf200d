"""The chart shows what it is given, and nothing of a token becomes markup."""

from pathlib import Path
from typing import Any

import gradio as gr
import pytest

from app.chat.prospect import Likely, Prospect, Step
from app.ui.choices import Choices
from app.ui.prospect import ProspectPanel, chart, percent
from app.ui.sampling import LABELS
from engine.sampling.controls import ORDERS
from engine.sampling_params import SamplingParams
from tests.fakes_chat import FakeServices

PROSPECT = Prospect(
    steps=(Step("model", 1000, 0.1), Step("min_p", 1, 0.0)),
    tokens=(
        Likely(1, " <img src=x>", False, (0.6, 1.0)),
        Likely(2, "<|im_end|>", True, (0.3, 0.0)),
    ),
    is_sample=True,
    has_form=False,
)


@pytest.fixture
def panel(tmp_path: Path) -> Any:
    services = FakeServices(tmp_path)
    with gr.Blocks(analytics_enabled=False):
        yield ProspectPanel(services)
    services.conversations.close()
    services.database.close()


def test_each_token_has_its_chance_after_each_step() -> None:
    html = chart(PROSPECT)
    assert html.count("<tr>") == 5
    assert "60.0" in html and '<td class="out">' in html and "1,000" in html
    assert "<img" not in html and "<|im" not in html
    assert "sample text" in html


def test_a_form_is_said_not_to_count() -> None:
    told = chart(
        Prospect(steps=PROSPECT.steps, tokens=PROSPECT.tokens, is_sample=False, has_form=True)
    )
    assert "The form of the answer is not counted" in told and "sample" not in told


@pytest.mark.parametrize(
    ("probability", "words"),
    [(1.0, "100"), (0.9949, "99.5"), (0.5, "50.0"), (0.001, "0.1"), (0.0001, "&lt;0.1")],
)
def test_percents_say_no_more_than_is_known(probability: float, words: str) -> None:
    assert percent(probability) == words


def test_every_step_of_an_order_has_a_name() -> None:
    assert {name for order in ORDERS.values() for name in order} <= set(LABELS)


async def test_nothing_is_computed_while_nobody_looks(panel: ProspectPanel) -> None:
    values = Choices("", SamplingParams()).for_widgets()
    assert await panel.look(False, None, *values) == gr.skip()
    assert "sample text" in await panel.look(True, None, *values)


async def test_what_cannot_be_told_is_said_in_its_place(panel: ProspectPanel) -> None:
    told = await panel.look(True, None, "", '{"temperature": 99}', "[]")
    assert "between 0 and 5" in told and "<table" not in told
