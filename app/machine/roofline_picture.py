"""The roofline as a picture: what was measured beside what is possible, on two logarithmic axes."""

from math import ceil, floor, log10

from app.drawing import Drawing, Point
from app.machine.roofline import Phase, Roofline

WIDTH, HEIGHT = 680, 440
LEFT, RIGHT, TOP, BOTTOM = 78, 24, 58, 62
LINES = 34
"""The height of the words of a phase, with the room below them."""
TITLE = "How near the model comes to what this machine could do"


def draw(roofline: Roofline) -> Drawing:
    drawing = Drawing(WIDTH, HEIGHT, TITLE, describe(roofline))
    axes = _Axes(roofline)
    drawing.text((LEFT, 24), TITLE, size=16)
    about = f"{roofline.model}, {roofline.weights}, {roofline.num_threads} threads"
    drawing.text((LEFT, 44), about, "quiet", size=12)
    _draw_key(drawing)
    _draw_axes(drawing, axes)
    _draw_roofs(drawing, axes, roofline)
    free_from = 0.0
    for phase in sorted(roofline.phases, key=lambda each: -each.operations_per_s):
        free_from = _draw_phase(drawing, axes, phase, free_from)
    return drawing


def describe(roofline: Roofline) -> str:
    """The same in words, with the figures."""
    return " ".join(sentences(roofline))


def sentences(roofline: Roofline) -> list[str]:
    return [
        f"Memory is read at {roofline.read_bytes_per_s / 1e9:,.1f} GB/s, and"
        f" {operations(roofline.peak_operations_per_s)} are possible with {roofline.weights}"
        f" weights; below {roofline.ridge:,.1f} operations per byte memory is what holds up.",
        *(
            f"{phase.name.capitalize()}: {phase.operations_per_byte:,.1f} operations per byte,"
            f" {operations(phase.operations_per_s)} of {_billions(phase)} that are possible"
            f" ({phase.share:.0%}), {phase.tokens_per_s:,.0f} tokens/s."
            for phase in roofline.phases
        ),
    ]


def _billions(phase: Phase) -> str:
    return operations(phase.possible_operations_per_s).removesuffix(" operations/s")


def operations(per_second: float) -> str:
    for unit, size in (("trillion", 1e12), ("billion", 1e9), ("million", 1e6)):
        if per_second >= size:
            return f"{per_second / size:,.1f} {unit} operations/s"
    return f"{per_second:,.0f} operations/s"


class _Axes:
    """From operations per byte and operations a second to places."""

    def __init__(self, roofline: Roofline) -> None:
        phases = roofline.phases
        intensities = [phase.operations_per_byte for phase in phases]
        speeds = [phase.operations_per_s for phase in phases if phase.operations_per_s > 0]
        low_x = min([*intensities, roofline.ridge]) / 3
        high_x = max([*intensities, roofline.ridge]) * 3
        low_y = min([*speeds, roofline.possible(low_x)]) / 1.5
        self.x = floor(log10(low_x)), ceil(log10(high_x))
        self.y = floor(log10(low_y)), ceil(log10(roofline.peak_operations_per_s * 1.3))

    def place(self, intensity: float, speed: float) -> Point:
        return (
            LEFT + _part(intensity, *self.x) * (WIDTH - LEFT - RIGHT),
            HEIGHT - BOTTOM - _part(speed, *self.y) * (HEIGHT - TOP - BOTTOM),
        )


def _part(value: float, low: int, high: int) -> float:
    return (log10(max(value, 10.0**low)) - low) / (high - low)


def _draw_key(drawing: Drawing) -> None:
    drawing.circle((WIDTH - 176, 40), 5, "third")
    drawing.text((WIDTH - 165, 44), "measured", "quiet", size=12)
    drawing.circle((WIDTH - 88, 40), 4, "quiet", is_hollow=True)
    drawing.text((WIDTH - 77, 44), "possible", "quiet", size=12)


def _draw_axes(drawing: Drawing, axes: _Axes) -> None:
    (low_x, high_x), (low_y, high_y) = axes.x, axes.y
    for power in range(low_x, high_x + 1):
        bottom, top = axes.place(10.0**power, 10.0**low_y), axes.place(10.0**power, 10.0**high_y)
        drawing.line([bottom, top], "grid")
        drawing.text(
            (bottom[0], bottom[1] + 20), f"{10.0**power:,g}", "quiet", anchor="middle", size=12
        )
    for power in range(low_y, high_y + 1):
        left, right = axes.place(10.0**low_x, 10.0**power), axes.place(10.0**high_x, 10.0**power)
        drawing.line([left, right], "grid")
        words = _short(10.0**power)
        drawing.text((left[0] - 8, left[1] + 4), words, "quiet", anchor="end", size=12)
    middle = (LEFT + WIDTH - RIGHT) / 2
    drawing.text((middle, HEIGHT - 16), "Operations per byte of weights", anchor="middle", size=13)
    height = (TOP + HEIGHT - BOTTOM) / 2
    drawing.text((20, height), "Operations per second", anchor="middle", size=13, angle=-90)


def _draw_roofs(drawing: Drawing, axes: _Axes, roofline: Roofline) -> None:
    low, high = 10.0 ** axes.x[0], 10.0 ** axes.x[1]
    peak = roofline.peak_operations_per_s
    # The slope begins where it enters the picture.
    start = max(low, 10.0 ** axes.y[0] / roofline.read_bytes_per_s)
    begin, corner = axes.place(start, roofline.possible(start)), axes.place(roofline.ridge, peak)
    end = axes.place(high, peak)
    drawing.line([begin, corner], "second", width=2.5)
    drawing.line([corner, end], "first", width=2.5)
    drawing.text((end[0], end[1] - 9), f"arithmetic {_short(peak)}/s", "first", anchor="end")
    # Above the slope's end, where neither it nor a phase comes.
    words = f"memory {roofline.read_bytes_per_s / 1e9:,.1f} GB/s"
    drawing.text((LEFT + 6, corner[1] - 9), words, "second")


def _draw_phase(drawing: Drawing, axes: _Axes, phase: Phase, free_from: float) -> float:
    """Its words stand beside it, and not above `free_from`, where those of another one end. Gives
    where its own end."""
    x, y = phase.operations_per_byte, phase.operations_per_s
    measured, possible = axes.place(x, y), axes.place(x, phase.possible_operations_per_s)
    drawing.line([measured, possible], "quiet", width=1.5, dashes="3 3")
    drawing.circle(possible, 5, "quiet", is_hollow=True)
    drawing.circle(measured, 6, "third")
    is_right = measured[0] > WIDTH * 0.68
    side = -12 if is_right else 12
    anchor = "end" if is_right else "start"
    place = measured[0] + side, max(measured[1], free_from) + 5
    drawing.text(place, f"{phase.name}: {phase.share:.0%} of what is possible", anchor=anchor)
    words = f"{_short(y)}/s, {phase.tokens_per_s:,.0f} tokens/s"
    drawing.text((place[0], place[1] + 17), words, "quiet", anchor=anchor, size=12)
    return place[1] + LINES


def _short(number: float) -> str:
    """With a letter for the thousands, as on an axis."""
    for letter, size in (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if number >= size:
            return f"{number / size:.3g} {letter}"
    return f"{number:.3g}"
