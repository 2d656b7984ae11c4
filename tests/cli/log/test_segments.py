"""`ottla log segments`, as typed."""

import json
from pathlib import Path

import pytest
from tests.cli.log.typed import run


def test_segments(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    code, out, _ = run(capsys, "segments", folder, "--json")
    size = (folder / f"{0:020d}.log").stat().st_size
    assert code == 0
    assert json.loads(out) == [
        {
            "file": f"{0:020d}.log",
            "base_offset": 0,
            "next_offset": 9,
            "batches": 3,
            "records": 9,
            "bytes": size,
            "first_timestamp": 1_700_000_000_000,
            "last_timestamp": 1_700_000_000_000,
            "index_entries": 0,
            "time_index_entries": 0,
            "fault": None,
        }
    ]
    _, table, _ = run(capsys, "segments", folder)
    assert table.splitlines()[1].split() == [
        "0",
        "9",
        "3",
        "9",
        str(size),
        *["2023-11-14T22:13:20.000Z"] * 2,
    ]
