"""Pictures as SVG: lines, marks and words in the colours of the page, light and dark.

Coordinates are pixels from the top left. A picture carries its figures as words, too, for those who
do not see it.
"""

from collections.abc import Mapping, Sequence
from enum import Enum
from html import escape

FONT = "system-ui, -apple-system, 'Segoe UI', sans-serif"
Point = tuple[float, float]

LIGHT: Mapping[str, str] = {
    "paper": "#ffffff",
    "ink": "#211f1c",
    "quiet": "#5c564e",
    "grid": "#e7e2d9",
    "first": "#ae4f2b",
    "second": "#2f6690",
    "third": "#3f7a57",
}
DARK: Mapping[str, str] = {
    "paper": "#211f1c",
    "ink": "#e9e4dc",
    "quiet": "#b3aca1",
    "grid": "#3a3632",
    "first": "#e9a684",
    "second": "#8dbbe0",
    "third": "#8fc7a6",
}


class Theme(Enum):
    """Which colours a picture has."""

    LIGHT = "light"
    DARK = "dark"
    SYSTEM = "system"
    """As the system of whoever looks at it has it."""


class Drawing:
    """Grows by one element with each call. Colours are names of LIGHT and DARK."""

    def __init__(self, width: int, height: int, title: str, description: str) -> None:
        """`description`: what the picture shows, with its figures."""
        self.title, self.description = title, description
        self._width, self._height = width, height
        self._elements: list[str] = []

    def line(
        self, points: Sequence[Point], colour: str, *, width: float = 1.0, dashes: str = ""
    ) -> None:
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        dashed = f' stroke-dasharray="{dashes}"' if dashes else ""
        self._elements.append(
            f'<polyline points="{path}" class="s-{colour}" stroke-width="{width:g}"{dashed}/>'
        )

    def rectangle(self, corner: Point, width: float, height: float, colour: str) -> None:
        x, y = corner
        self._elements.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="2"'
            f' class="f-{colour}"/>'
        )

    def circle(self, centre: Point, radius: float, colour: str, *, is_hollow: bool = False) -> None:
        x, y = centre
        kind = f"s-{colour} f-paper" if is_hollow else f"f-{colour}"
        self._elements.append(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:g}" class="{kind}" stroke-width="2"/>'
        )

    def text(
        self,
        place: Point,
        words: str,
        colour: str = "ink",
        *,
        anchor: str = "start",
        size: float = 13,
        angle: float = 0,
    ) -> None:
        x, y = place
        turned = f' transform="rotate({angle:.1f} {x:.1f} {y:.1f})"' if angle else ""
        self._elements.append(
            f'<text x="{x:.1f}" y="{y:.1f}" class="f-{colour}" text-anchor="{anchor}"'
            f' font-size="{size:g}"{turned}>{escape(words)}</text>'
        )

    def as_svg(self, theme: Theme = Theme.SYSTEM) -> str:
        """A document of its own."""
        style = _rules(DARK if theme is Theme.DARK else LIGHT)
        if theme is Theme.SYSTEM:
            style += f"@media (prefers-color-scheme: dark) {{{_rules(DARK)}}}"
        size = f'width="{self._width}" height="{self._height}"'
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" {size}'
            f' viewBox="0 0 {self._width} {self._height}" role="img" aria-labelledby="t d">'
            f'<title id="t">{escape(self.title)}</title>'
            f'<desc id="d">{escape(self.description)}</desc>'
            f"<style>text{{font-family:{FONT}}}polyline{{fill:none}}{style}</style>"
            f'<rect width="100%" height="100%" class="f-paper"/>{"".join(self._elements)}</svg>\n'
        )


def _rules(colours: Mapping[str, str]) -> str:
    return "".join(
        f".f-{name}{{fill:{value}}}.s-{name}{{stroke:{value}}}" for name, value in colours.items()
    )
