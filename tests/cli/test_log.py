"""`ottla log`, as typed."""

import json
from pathlib import Path

import pytest

from ottla.cli.main import main
from ottla.records.build import build_batch
from ottla.records.record import Record


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "data" / "t-0"
    folder.mkdir(parents=True)
    data = b""
    for base in (0, 3, 6):
        records = [Record(base + number, 1_700_000_000_000, None, b"v") for number in range(3)]
        data += build_batch(
            records,
            base_offset=base,
            leader_epoch=0,
            producer_id=7,
            producer_epoch=0,
            base_sequence=base,
        )
    (folder / f"{0:020d}.log").write_bytes(data)
    return folder


def run(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str, str]:
    code = main(["log", *map(str, words)])
    said = capsys.readouterr()
    return code, said.out, said.err


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
