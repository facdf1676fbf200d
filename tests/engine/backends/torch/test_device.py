"""Where it computes, and the sentence about why not on a card."""

import pytest
import torch

from engine.backends.torch.device import choose_device


def card(monkeypatch: pytest.MonkeyPatch, capability: tuple[int, int]) -> None:
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda number: capability)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda number: "NVIDIA T4")


def test_a_card_that_will_do_computes_in_bfloat16(monkeypatch: pytest.MonkeyPatch) -> None:
    card(monkeypatch, (8, 6))
    found = choose_device()
    assert (found.device.type, found.dtype, found.notice) == ("cuda", torch.bfloat16, "")


def test_an_old_card_is_named_with_what_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    card(monkeypatch, (7, 5))
    found = choose_device()
    assert (found.device.type, found.dtype) == ("cpu", torch.float32)
    assert "NVIDIA T4 has compute capability 7.5, and 8.0 is needed, so" in found.notice


@pytest.mark.parametrize(
    ("version", "sentence"), [(None, "one without CUDA"), ("13.0", "No NVIDIA card can be used")]
)
def test_without_a_card_the_processor_computes_and_says_so(
    monkeypatch: pytest.MonkeyPatch, version: str | None, sentence: str
) -> None:
    monkeypatch.setattr(torch.version, "cuda", version)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    found = choose_device()
    assert found.device.type == "cpu" and sentence in found.notice
