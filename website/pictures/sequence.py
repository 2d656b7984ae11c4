"""Sequence diagrams, drawn from text.

Producer | Leader | Follower            the participants, first line
Producer -> Leader: Produce, acks=all   a message
Leader: appends the batch               something that a participant does
-- then                                 a line across, with a word
"""

from __future__ import annotations

from typing import Final

from website.pictures.svg import FAINT, Picture

COLUMN: Final = 210
ROW: Final = 44
TOP: Final = 62


def draw(text: str, title: str) -> str:
    """The diagram as SVG. Raises ValueError for a line that names no participant."""
    head, *steps = [line.strip() for line in text.strip().splitlines() if line.strip()]
    names = [name.strip() for name in head.split("|")]
    x_of = {name: COLUMN / 2 + COLUMN * number for number, name in enumerate(names)}
    picture = Picture(COLUMN * len(names), TOP + ROW * len(steps) + 20, title)
    for name, x in x_of.items():
        picture.line(x, 44, x, picture.height - 12, dashed=True)
        picture.box(x - 85, 14, 170, 30, "#e0e7ff", "#2563eb")
        picture.text(x, 34, name, anchor="middle", weight="bold")
    for number, step in enumerate(steps):
        put(picture, x_of, step, TOP + ROW * number + ROW / 2)
    return picture.svg()


def put(picture: Picture, x_of: dict[str, float], step: str, y: float) -> None:
    """One step at this height."""
    if step.startswith("--"):
        picture.line(12, y, picture.width - 12, y)
        word = step.removeprefix("--").strip()
        picture.box(12, y - 10, 8 + 7.2 * len(word), 20, "#f3f4f6", FAINT)
        picture.text(16, y + 4, word, size=12)
        return
    who, colon, what = step.partition(": ")
    one, arrow, other = who.partition(" -> ")
    if not colon or one not in x_of or (arrow and other not in x_of):
        raise ValueError(f"not a step of {', '.join(x_of)}: {step!r}")
    if arrow:
        start, end = x_of[one], x_of[other]
        inset = 8 if end > start else -8
        picture.arrow(f"M{start:g} {y + 8:g} L{end - inset / 4:g} {y + 8:g}")
        middle = (start + end) / 2 if abs(end - start) <= COLUMN else start + inset * 13
        picture.text(middle, y, what, size=12, anchor="middle")
        return
    width = 6.3 * len(what) + 16
    left = min(max(x_of[one] - width / 2, 4), picture.width - width - 4)
    picture.box(left, y - 12, width, 24, "#fef3c7", "#d97706")
    picture.text(left + width / 2, y + 4, what, size=12, anchor="middle")
