"""The pictures of the repository are those that the code draws."""

from website.pages import ROOT
from website.pictures.drawn import drawn


def test_pictures_are_current() -> None:
    folder = ROOT / "docs" / "pictures"
    there = {path.name: path.read_text() for path in folder.glob("*.svg")}
    assert there == drawn(), "run: python -m website.pictures"
