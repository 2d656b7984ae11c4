"""Every page of the repository is on the site, and every page of the site exists."""

from website.pages import ROOT, sources


def test_every_markdown_file_of_docs_is_a_page() -> None:
    there = {str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.md")}
    assert there <= sources().keys()


def test_every_page_exists_once() -> None:
    places = sources()
    assert [name for name in places if not (ROOT / name).is_file()] == []
    assert len(set(places.values())) == len(places)
