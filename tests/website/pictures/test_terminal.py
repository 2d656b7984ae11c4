"""Terminal pictures: text with its colours, and nothing from elsewhere."""

from __future__ import annotations

import re
from html import unescape

import pytest
from website.pictures.terminal import FOLDER, SCENES, picture, typed


def text_of(svg: str) -> str:
    """What the picture says."""
    spans = re.findall(r"<text[^>]*>(.*?)</text>", svg, re.DOTALL)
    return unescape("\n".join(spans)).replace("\xa0", " ")


def test_commands_and_their_output_are_in_the_picture() -> None:
    svg = picture("A title", 40, [("ottla topic list", "\x1b[1mtopic\x1b[0m\nor<ders>\n")])
    assert "$ " in text_of(svg)
    for words in ("A title", "ottla topic list", "topic", "or<ders>"):
        assert words in text_of(svg)
    assert "http" not in svg.replace("http://www.w3.org", "")


def test_the_terminal_is_as_wide_as_it_says(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = str(tmp_path_factory.mktemp("terminal"))
    command = "stty size < /dev/stderr; test -t 1 && echo terminal"
    shown = typed(command, 67, {"PATH": "/usr/bin:/bin"}, folder)
    assert shown.split() == ["60", "67", "terminal"]


@pytest.mark.parametrize("name", SCENES)
def test_the_repository_has_every_picture(name: str) -> None:
    svg = (FOLDER / name).read_text()
    for command in SCENES[name].shown:
        assert command in text_of(svg)
    assert "Traceback" not in svg
    assert "http" not in svg.replace("http://www.w3.org", "")
