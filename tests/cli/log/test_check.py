"""`ottla log check`, as typed."""

import json
from pathlib import Path

import pytest
from tests.cli.log.typed import run


def test_check_of_a_whole_data_folder(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    code, out, _ = run(capsys, "check", folder.parent)
    assert code == 0
    assert out == "t-0: no fault; segments 1, batches 3, records 9, next offset 9.\n"


def test_a_fault_is_reported_and_exits_with_1(
    capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    path = folder / f"{0:020d}.log"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    code, out, _ = run(capsys, "check", folder)
    assert code == 1
    assert out.startswith("t-0: 1 fault;")
    code, out, _ = run(capsys, "check", folder, "--json")
    assert code == 1
    (document,) = json.loads(out)
    (fault,) = document.pop("faults")
    assert (fault["file"], fault["position"]) == (path.name, len(data) * 2 // 3)
    assert document == {
        "partition": "t-0",
        "segments": 1,
        "batches": 3,
        "records": 6,
        "bytes": len(data),
        "start_offset": 0,
        "end_offset": 9,
        "torn_tail_bytes": 0,
    }
