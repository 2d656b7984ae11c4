"""Every page of the repository is on the site, and every page of the site exists."""

import re

from website.pages import ROOT, sources

COLUMNS = 100
"""What a block of the site shows at 1280 pixels without folding (website/static/ottla.css)."""
BLOCK = re.compile(r"^```\w*\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_every_markdown_file_of_docs_is_a_page() -> None:
    there = {str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.md")}
    assert there <= sources().keys()


def test_every_page_exists_once() -> None:
    places = sources()
    assert [name for name in places if not (ROOT / name).is_file()] == []
    assert len(set(places.values())) == len(places)


def test_journeys_fit_into_the_blocks_of_the_site() -> None:
    """Elsewhere a folded line does no harm; a tree loses its form."""
    trees = [
        (name, line)
        for name in sources()
        for block in BLOCK.findall((ROOT / name).read_text())
        for line in block.splitlines()
        if line.startswith(("├", "│", "└", "    └"))
    ]
    assert len(trees) > 50
    assert [(name, line) for name, line in trees if len(line) > COLUMNS] == []
