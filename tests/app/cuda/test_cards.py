"""Whether an installation helps here, and which build of torch the driver can run."""

import pytest

from app.cuda.cards import OWN_INDEX, torch_index, why_useless
from app.machine.gpu import Gpu


def card(driver: str = "580.65.06", maker: str = "NVIDIA") -> Gpu:
    return Gpu(name=f"{maker} 9", maker=maker, driver=driver)


def test_a_card_with_a_driver_needs_no_excuse() -> None:
    assert why_useless([card(maker="AMD"), card()], "linux") == ""


@pytest.mark.parametrize(
    ("gpus", "words"),
    [
        ([], "no graphics card was found"),
        ([card(maker="AMD")], "only AMD 9 was found"),
        ([card(driver="")], "NVIDIA 9 has no driver that answers"),
        ([card(driver="nouveau")], "NVIDIA 9 has no driver that answers"),
        ([card(driver="470.1")], "the driver 470.1, and torch needs 525"),
    ],
)
def test_why_it_would_not_help_is_said(gpus: list[Gpu], words: str) -> None:
    assert words in why_useless(gpus, "linux")


def test_on_a_mac_it_never_helps() -> None:
    assert "macOS" in why_useless([card()], "darwin")


def test_the_oldest_driver_decides_on_the_build() -> None:
    assert torch_index([card("580.1")]).endswith("/cu130")
    assert torch_index([card("535.1")]).endswith("/cu126")
    assert torch_index([card("580.1"), card("550.9")]).endswith("/cu126")


def test_another_index_or_none_can_be_asked_for() -> None:
    assert torch_index([card()], "https://here") == "https://here"
    assert torch_index([card()], OWN_INDEX) == ""
