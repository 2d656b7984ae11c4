"""The few shapes of which the pictures are made. A picture has its own light background, so that it
can be read in a dark theme too, and uses only fonts that the reader's system has.
"""

from __future__ import annotations

from html import escape
from typing import Final

SANS: Final = "system-ui, sans-serif"
MONO: Final = "ui-monospace, monospace"
INK: Final = "#1f2937"
FAINT: Final = "#9ca3af"
PAPER: Final = "#fbfbfa"
ACCENT: Final = "#2563eb"


class Picture:
    """Shapes in the order in which they are painted; lengths are pixels."""

    def __init__(self, width: int, height: int, title: str) -> None:
        self.width = width
        self.height = height
        self._title = title
        self._shapes: list[str] = []

    def box(
        self, x: float, y: float, width: float, height: float, fill: str, line: str = "none"
    ) -> None:
        self._shapes.append(
            f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="4"'
            f' fill="{fill}" stroke="{line}"/>'
        )

    def text(
        self,
        x: float,
        y: float,
        text: str,
        *,
        size: int = 13,
        anchor: str = "start",
        font: str = SANS,
        fill: str = INK,
        weight: str = "normal",
    ) -> None:
        """`y` is the baseline."""
        self._shapes.append(
            f'<text x="{x:g}" y="{y:g}" font-size="{size}" text-anchor="{anchor}"'
            f' font-family="{font}" font-weight="{weight}" fill="{fill}"'
            f' xml:space="preserve">{escape(text)}</text>'
        )

    def line(self, x1: float, y1: float, x2: float, y2: float, *, dashed: bool = False) -> None:
        dashes = ' stroke-dasharray="4 4"' if dashed else ""
        self._shapes.append(
            f'<path d="M{x1:g} {y1:g} L{x2:g} {y2:g}" stroke="{FAINT}" fill="none"{dashes}/>'
        )

    def arrow(self, path: str, colour: str = ACCENT) -> None:
        """An arrow along an SVG path."""
        self._shapes.append(
            f'<path d="{path}" stroke="{colour}" fill="none" stroke-width="1.5"'
            ' marker-end="url(#head)"/>'
        )

    def svg(self) -> str:
        """The file's content."""
        return "\n".join(
            [
                f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {self.height}"'
                f' width="{self.width}" height="{self.height}" role="img">',
                f"<title>{escape(self._title)}</title>",
                '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7"'
                f' markerHeight="7" orient="auto"><path d="M0 0 L8 4 L0 8 z" fill="{ACCENT}"/>'
                "</marker></defs>",
                f'<rect width="{self.width}" height="{self.height}" rx="8" fill="{PAPER}"/>',
                *self._shapes,
                "</svg>\n",
            ]
        )
