"""The pictures of the console are made by a script."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.system.chromium import chromium
from website.pictures.console import FOLDER, photograph

from website.pictures import console

NAMES = {f"{name}.png" for name in console.NAMES}


def test_each_picture_is_in_the_documentation() -> None:
    assert {path.name for path in FOLDER.glob("*")} == NAMES
    page = (FOLDER.parents[1] / "console.md").read_text()
    assert all(f"(pictures/console/{name})" in page for name in NAMES)


@pytest.mark.skipif(chromium() is None, reason="no Chromium on the PATH")
def test_the_script_makes_them(tmp_path: Path) -> None:
    photograph(tmp_path, followed_s=0)
    assert {path.name for path in tmp_path.glob("*.png")} == NAMES
    assert all(path.stat().st_size > 10_000 for path in tmp_path.glob("*.png"))
