"""`python -m website.pictures`: draw the pictures of docs/pictures again."""

from __future__ import annotations

from website.pages import ROOT
from website.pictures.drawn import drawn

FOLDER = ROOT / "docs" / "pictures"

if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, svg in drawn().items():
        (FOLDER / name).write_text(svg)
