"""The forms of a model as a picture: how many bits a weight takes, and what is lost by that."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor, log10

from app.drawing import Drawing, Point

WIDTH, HEIGHT = 680, 440
LEFT, RIGHT, TOP, BOTTOM = 78, 30, 58, 62
TITLE = "What each form loses"
# Below this two forms are the same but for rounding.
LEAST = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """`divergence`: nats a token, from the reference. `is_kv`: the weights are the reference's."""

    name: str
    bits: float
    divergence: float
    is_kv: bool = False


def draw(marks: Sequence[Mark], model: str) -> Drawing:
    drawing = Drawing(WIDTH, HEIGHT, TITLE, describe(marks))
    axes = _Axes(marks)
    drawing.text((LEFT, 24), TITLE, size=16)
    drawing.text((LEFT, 44), model, "quiet", size=12)
    drawing.circle((WIDTH - 190, 40), 5, "first")
    drawing.text((WIDTH - 179, 44), "weights", "quiet", size=12)
    drawing.circle((WIDTH - 110, 40), 4, "second", is_hollow=True)
    drawing.text((WIDTH - 99, 44), "KV in cells", "quiet", size=12)
    _draw_axes(drawing, axes)
    for mark in marks:
        x, y = axes.place(mark)
        drawing.circle((x, y), 5, "second" if mark.is_kv else "first", is_hollow=mark.is_kv)
        is_right = x > WIDTH * 0.75
        place = (x - 10, y + 4) if is_right else (x + 10, y + 4)
        drawing.text(place, mark.name, anchor="end" if is_right else "start", size=12)
    return drawing


def describe(marks: Sequence[Mark]) -> str:
    """The same in words, with the figures."""
    told = [
        f"{mark.name}: {mark.bits:.2f} bits a weight, {mark.divergence:.2g} nats a token"
        for mark in marks
    ]
    return "Divergence from the reference. " + "; ".join(told) + "."


class _Axes:
    """From bits and divergence to places: the first even, the second logarithmic."""

    def __init__(self, marks: Sequence[Mark]) -> None:
        losses = [max(LEAST, mark.divergence) for mark in marks] or [LEAST]
        self.bits = 0, max(4, ceil(max((mark.bits for mark in marks), default=4)))
        self.powers = floor(log10(min(losses))), ceil(log10(max(losses)) + 0.05)

    def place(self, mark: Mark) -> Point:
        return self.x(mark.bits), self.y(log10(max(LEAST, mark.divergence)))

    def x(self, bits: float) -> float:
        return LEFT + bits / self.bits[1] * (WIDTH - LEFT - RIGHT)

    def y(self, power: float) -> float:
        low, high = self.powers
        return HEIGHT - BOTTOM - (power - low) / max(1, high - low) * (HEIGHT - TOP - BOTTOM)


def _draw_axes(drawing: Drawing, axes: _Axes) -> None:
    low, high = axes.powers
    for bits in range(0, axes.bits[1] + 1, 2 if axes.bits[1] > 8 else 1):
        drawing.line([(axes.x(bits), axes.y(low)), (axes.x(bits), axes.y(high))], "grid")
        place = axes.x(bits), axes.y(low) + 20
        drawing.text(place, str(bits), "quiet", anchor="middle", size=12)
    for power in range(low, high + 1):
        drawing.line([(LEFT, axes.y(power)), (WIDTH - RIGHT, axes.y(power))], "grid")
        place = LEFT - 8, axes.y(power) + 4
        drawing.text(place, f"{10.0**power:g}", "quiet", anchor="end", size=12)
    middle = (LEFT + WIDTH - RIGHT) / 2
    drawing.text((middle, HEIGHT - 16), "Bits a weight in the file", anchor="middle")
    height = (TOP + HEIGHT - BOTTOM) / 2
    drawing.text((18, height), "Divergence, nats a token", anchor="middle", angle=-90)
