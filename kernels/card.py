"""Which kind of card a tensor lies on: the kinds differ in shared memory and in tensor cores."""

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum

import torch

KIB = 1024


class Card(Enum):
    """Value: the compute capabilities of the kind, as ten times the major and the minor number."""

    DATACENTER = (80,)
    """A100 and the like: 163 KiB of shared memory per block."""
    HOPPER = (90, 100)
    """H100, H200 and later ones: 227 KiB, and asynchronous matrix products."""
    DESKTOP = (86, 87, 89, 120)
    """RTX 30, 40 and 50, and workstation cards: 99 KiB."""

    @property
    def shared_memory(self) -> int:
        """Bytes that a block may have at most."""
        return {Card.DATACENTER: 163, Card.HOPPER: 227, Card.DESKTOP: 99}[self] * KIB


LEAST_CAPABILITY = 80
"""Triton has no tensor cores for older ones."""

_assumed: list[Card] = []


def card_with(capability: int) -> Card:
    """Of a capability that is in no list, the kind that asks for least is right."""
    return next((card for card in Card if capability in card.value), Card.DESKTOP)


def card_of(device: torch.device) -> Card:
    if _assumed:
        return _assumed[-1]
    return _card_at(device.index or 0) if device.type == "cuda" else Card.DESKTOP


@functools.cache
def _card_at(index: int) -> Card:
    major, minor = torch.cuda.get_device_capability(index)
    return card_with(10 * major + minor)


@contextmanager
def assumed(card: Card) -> Iterator[None]:
    """Within it every device is such a card: for what is compiled ahead."""
    _assumed.append(card)
    try:
        yield
    finally:
        _assumed.pop()
