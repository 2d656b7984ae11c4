"""Which keys near a record are read."""

from pathlib import Path

import pytest

from ottla.journey import near_keys as limits
from ottla.log.config import LogConfig
from ottla.log.log import Log
from ottla.log.open_file import OpenFiles
from ottla.log.opening import open_log
from ottla.log.verification import NOT_REQUIRED
from ottla.records.build import build_batch
from ottla.records.header import iterate_headers
from ottla.records.record import Record
from ottla.tracing import near_keys as reading
from ottla.tracing.near_keys import near_keys


def append(log: Log, *keys: bytes | None, producer_id: int = -1, sequence: int = 0) -> None:
    epoch, first = (0, sequence) if producer_id >= 0 else (-1, -1)
    batch = build_batch(
        [Record(0, 1000, key, b"v") for key in keys],
        producer_id=producer_id, producer_epoch=epoch, base_sequence=first,
    )  # fmt: skip
    headers = list(iterate_headers(batch))
    log.append(batch, headers, leader_epoch=0, now_ms=1000, guard=NOT_REQUIRED)


@pytest.fixture
def log(tmp_path: Path) -> Log:
    log = open_log(
        str(tmp_path / "t-0"), LogConfig(index_interval_bytes=0), OpenFiles(8), now_ms=1000
    )
    append(log, b"a", None, b"b")
    append(log, b"other", producer_id=7)
    append(log, b"c", b"a")
    append(log, b"another", producer_id=7, sequence=1)
    return log


async def test_keys_of_the_same_producer_before_and_after(log: Log) -> None:
    assert await near_keys(log, 4, -1) == {b"a", b"b", b"c"}
    assert await near_keys(log, 3, 7) == {b"other", b"another"}


async def test_it_reads_no_more_than_its_limits(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_KEYS", 2)
    assert await near_keys(log, 4, -1) == {b"a", b"b"}
    monkeypatch.setattr(limits, "MAX_RECORDS", 1)
    assert await near_keys(log, 4, -1) == {b"a"}
    monkeypatch.setattr(reading, "OFFSETS_BEFORE", 0)
    assert await near_keys(log, 4, -1) == {b"c"}
    monkeypatch.setattr(reading, "MAX_BYTES", 0)
    assert await near_keys(log, 4, -1) == frozenset()


async def test_damage_ends_the_search(log: Log) -> None:
    path = Path(log.segments[0].path)
    content = bytearray(path.read_bytes())
    found = log.find(log.segments[0], 4)
    assert found is not None
    content[found.position + 16] = 9  # the magic byte
    path.write_bytes(content)
    assert await near_keys(log, 0, -1) == {b"a", b"b"}
