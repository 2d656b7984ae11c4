"""`ottla log batches`, as typed."""

import json
from pathlib import Path

import pytest
from tests.cli.log.typed import run


def test_batches_from_an_offset_with_a_limit(
    capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    code, out, err = run(capsys, "batches", folder, "--json", "--from-offset", 4, "--max", 1)
    (line,) = out.splitlines()
    document = json.loads(line)
    assert code == 0
    assert (document["base_offset"], document["last_offset"], document["records"]) == (3, 5, 3)
    assert (document["producer_id"], document["base_sequence"]) == (7, 3)
    assert "--from-offset 6" in err
    _, table, _ = run(capsys, "batches", folder)
    assert [row.split()[0] for row in table.splitlines()] == ["offsets", "0-2", "3-5", "6-8"]
    assert "7/0#3" in table


def test_no_batches_after_the_end(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    code, out, err = run(capsys, "batches", folder, "--from-offset", 99)
    assert (code, out) == (0, "")
    assert "No batch at offset 99" in err
