"""Kinds of cards."""

import torch

from kernels.card import Card, assumed, card_of, card_with


def test_a_capability_tells_the_kind() -> None:
    assert card_with(80) is Card.DATACENTER
    assert card_with(90) is Card.HOPPER
    assert [card_with(x) for x in (86, 89, 120)] == [Card.DESKTOP] * 3


def test_an_unknown_one_is_taken_for_the_kind_that_asks_for_least() -> None:
    assert card_with(121) is Card.DESKTOP
    assert min(Card, key=lambda card: card.shared_memory) is Card.DESKTOP


def test_a_card_can_be_assumed() -> None:
    with assumed(Card.HOPPER):
        assert card_of(torch.device("cpu")) is Card.HOPPER
    assert card_of(torch.device("cpu")) is Card.DESKTOP
