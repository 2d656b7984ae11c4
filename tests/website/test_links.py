"""A link of a page leads to the same place in the repository and on the site."""

import pytest
from website.links import BrokenLink, rewritten

SITES = {
    "README.md": "index.md",
    "docs/cli.md": "cli.md",
    "docs/decisions/README.md": "decisions/README.md",
    "docs/decisions/kazoo.md": "decisions/kazoo.md",
    "bench/RESULTS.md": "results.md",
}
FILES = {"docs/pictures/log.svg"}


@pytest.mark.parametrize(
    ("source", "link", "on_site"),
    [
        ("README.md", "docs/cli.md#ottla-log", "cli.md#ottla-log"),
        ("README.md", "docs/decisions", "decisions/README.md"),
        ("docs/cli.md", "../bench/RESULTS.md", "results.md"),
        ("docs/decisions/kazoo.md", "../cli.md", "../cli.md"),
        ("docs/decisions/kazoo.md", "../../README.md", "../index.md"),
        ("docs/cli.md", "#records-as-json", "#records-as-json"),
        ("docs/cli.md", "https://kafka.apache.org/", "https://kafka.apache.org/"),
        ("README.md", "docs/pictures/log.svg", "pictures/log.svg"),
    ],
)
def test_link_leads_to_the_same_page(source: str, link: str, on_site: str) -> None:
    assert rewritten(f"See [it]({link}).", source, SITES, FILES) == f"See [it]({on_site})."


def test_link_to_a_file_outside_the_site_is_refused() -> None:
    with pytest.raises(BrokenLink, match=r"docs/cli.md: ../Makefile is neither"):
        rewritten("[it](../Makefile)", "docs/cli.md", SITES, FILES)


def test_code_is_left_alone() -> None:
    page = "`[a](x.md)` and\n\n```text\n[a](x.md)\n```\n"
    assert rewritten(page, "docs/cli.md", SITES, FILES) == page
