"""The pictures that the repository has, by file name."""

from __future__ import annotations

from website.pictures import log_files, sequence, texts


def drawn() -> dict[str, str]:
    """Each picture of docs/pictures as SVG."""
    return {
        "log-files.svg": log_files.draw(),
        "record.svg": sequence.draw(texts.RECORD, "The way of a record"),
        "election.svg": sequence.draw(texts.ELECTION, "An election"),
    }
