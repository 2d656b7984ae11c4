"""The reference of a pipeline file is what the code says."""

from pathlib import Path

from ottla.pipelines.file.reference import page

PAGE = Path(__file__).parents[3] / "docs" / "pipeline-file.md"


def test_the_page_is_printed_from_the_code() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), (
        f"run: python -m ottla.pipelines.file.reference {PAGE.name}"
    )
