"""Every arrow of the rooms points down."""

import pytest
from website.pictures.rooms import arrows_of, draw, ranked

DIAGRAM = "graph TD\n    api --> log\n    log --> protocol\n    cli --> api\n    cli --> runtime\n"


def test_rooms_stand_above_what_they_import() -> None:
    rooms = ranked(arrows_of(DIAGRAM))
    assert rooms == ["cli", "api", "log", "protocol", "runtime"]


def test_every_room_and_arrow_is_drawn() -> None:
    svg = draw(DIAGRAM)
    assert svg.count('marker-end="url(#head)"') == 4
    assert all(f">{room}<" in svg for room in ("cli", "api", "log", "protocol", "runtime"))


def test_a_circle_is_refused() -> None:
    with pytest.raises(AssertionError, match="in a circle"):
        ranked([("a", "b"), ("b", "a")])
