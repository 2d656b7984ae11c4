"""All commands of `ottla log` that read."""

from pathlib import Path

import pytest
from tests.cli.log.typed import run


def test_reading_changes_nothing(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    def state() -> list[tuple[str, int, int]]:
        return [
            (path.name, path.stat().st_size, path.stat().st_mtime_ns)
            for path in sorted(folder.iterdir())
        ]

    before = state()
    for command in ("segments", "batches", "check"):
        run(capsys, command, folder)
    assert state() == before
