"""A sequence diagram has its participants and steps; a wrong step is refused."""

import pytest
from website.pictures.sequence import draw


def test_messages_become_arrows_and_actions_boxes() -> None:
    svg = draw("A | B\nA -> B: Fetch <1>\nB: appends\n-- later", "title")
    assert svg.count('marker-end="url(#head)"') == 1
    assert "Fetch &lt;1&gt;" in svg
    assert ">appends<" in svg
    assert ">later<" in svg


def test_an_unknown_participant_is_refused() -> None:
    with pytest.raises(ValueError, match="not a step of A, B: 'C -> A: x'"):
        draw("A | B\nC -> A: x", "title")
