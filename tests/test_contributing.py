"""What CONTRIBUTING.md names is there."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "CONTRIBUTING.md").read_text()


def test_every_target_is_in_the_makefile() -> None:
    makefile = (ROOT / "Makefile").read_text()
    named = set(re.findall(r"`make ([a-z-]+)", TEXT))
    assert {"test", "test-slow", "test-all", "check"} <= named
    for target in named:
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def test_every_link_leads_somewhere() -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", TEXT):
        assert (ROOT / target).exists(), target


def test_every_path_exists() -> None:
    paths = re.findall(r"`((?:src|tests|docs|\.ci)/[\w./-]+)`", TEXT)
    assert len(paths) > 10
    for path in paths:
        assert (ROOT / path).exists(), path
    for folder in re.findall(r"`(pipelines/\w+|journey/\w+)`", TEXT):
        assert (ROOT / "src/ottla" / folder).exists(), folder
