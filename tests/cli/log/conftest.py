"""A partition's folder with three batches."""

from pathlib import Path

import pytest

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
