"""The site builds without a warning, and loads nothing from elsewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from website.pages import sources

pytest.importorskip("sphinx")
ELSEWHERE = re.compile(r"""<(?:script|img|iframe)[^>]+src=["']?(?:https?:)?//|<link[^>]+//""")


@pytest.mark.full
def test_site_builds_without_warnings(tmp_path: Path) -> None:
    from website.build import build

    assert build(tmp_path) == []
    for place in sources().values():
        html = (tmp_path / "html" / place).with_suffix(".html").read_text()
        assert not ELSEWHERE.search(html), place
        assert "_static/ottla.css" in html, place
    commands = (tmp_path / "html" / "commands.html").read_text()
    assert 'id="ottla-topic-create"' in commands
    testing = (tmp_path / "html" / "python-testing.html").read_text()
    assert 'id="ottla.testing.Cluster.kill"' in testing
