"""The rooms of the code and which of them import which, from the diagram of ARCHITECTURE.md."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from website.pictures.svg import ACCENT, Picture

MERMAID: Final = re.compile(r"^```mermaid\n(.*?)^```\n", re.MULTILINE | re.DOTALL)
ARROW: Final = re.compile(r"^\s+(\w+) --> (\w+)$", re.MULTILINE)
ROW: Final = 34
LEFT: Final = 24
NAME: Final = 130


def arrows_of(diagram: str) -> list[tuple[str, str]]:
    """Each arrow of a Mermaid diagram."""
    return [(match[1], match[2]) for match in ARROW.finditer(diagram)]


def ranked(arrows: Iterable[tuple[str, str]]) -> list[str]:
    """The rooms, each above all that it imports; those with the longest way down come first."""
    below: dict[str, set[str]] = {}
    for one, other in arrows:
        below.setdefault(one, set()).add(other)
        below.setdefault(other, set())
    heights: dict[str, int] = {}
    while len(heights) < len(below):
        heights |= height_of_ready(below, heights)
    return sorted(below, key=lambda room: (-heights[room], room))


def height_of_ready(below: Mapping[str, set[str]], heights: Mapping[str, int]) -> dict[str, int]:
    ready = {
        room: 1 + max((heights[each] for each in rooms), default=-1)
        for room, rooms in below.items()
        if room not in heights and rooms <= heights.keys()
    }
    assert ready, "the rooms import each other in a circle"
    return ready


def draw(diagram: str) -> str:
    """The diagram as a column of rooms; every arrow points down."""
    arrows = arrows_of(diagram)
    rooms = ranked(arrows)
    picture = Picture(640, ROW * len(rooms) + 30, "Rooms, and which of them import which")
    middle = {room: 15 + ROW * number + ROW / 2 for number, room in enumerate(rooms)}
    longest = max(middle[other] - middle[one] for one, other in arrows)
    for one, other in sorted(arrows, key=lambda arrow: middle[arrow[0]] - middle[arrow[1]]):
        start, end = middle[one], middle[other]
        reach = LEFT + NAME + 30 + (end - start) / longest * 400
        x = LEFT + NAME
        picture.arrow(f"M{x} {start:g} C{reach:g} {start:g} {reach:g} {end:g} {x + 4} {end:g}")
    for room in rooms:
        picture.box(LEFT, middle[room] - 12, NAME, 24, "#e0e7ff", ACCENT)
        picture.text(LEFT + NAME / 2, middle[room] + 5, room, anchor="middle")
    return picture.svg()
