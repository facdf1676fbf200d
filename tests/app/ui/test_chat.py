"""What the first page says about the model."""

from pathlib import Path

import pytest

from app.ui.chat import welcome
from tests.fakes_chat import FakeServices


@pytest.fixture
def services(tmp_path: Path) -> FakeServices:
    return FakeServices(tmp_path)


def test_a_model_that_needs_no_word_gets_none(services: FakeServices) -> None:
    assert welcome(services).count("<p>") == 2


def test_a_notice_about_the_model_stands_on_the_first_page(services: FakeServices) -> None:
    services.model_notice = "This model brings no <template>."
    text = welcome(services)
    assert "no &#" in text or "no &lt;template" in text
    assert "<template>" not in text


def test_a_model_that_cannot_be_used_is_said_instead(services: FakeServices) -> None:
    services.model_error = "The file is cut off: bring it again."
    text = welcome(services)
    assert "cut off" in text and "You are talking to" not in text
