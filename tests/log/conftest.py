"""A log to fill, and batches to fill it with."""

import os
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ottla.log.config import LogConfig
from ottla.log.log import Log, LogAppendInfo
from ottla.log.open_file import OpenFiles
from ottla.log.opening import open_log
from ottla.log.verification import NOT_REQUIRED
from ottla.records.build import build_batch
from ottla.records.control import ControlType, write_end_marker
from ottla.records.header import iterate_headers, read_header
from ottla.records.iterate import iterate_records
from ottla.records.record import Record

NOW_MS = 1_000_000
MEMORY = "/dev/shm"


class LogBench:
    """One partition's folder, and what a test does to the log in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.files = OpenFiles(8)
        self.config = LogConfig(
            segment_bytes=4_000, index_interval_bytes=200, file_delete_delay_ms=0
        )
        self.now_ms = NOW_MS

    def configure(self, **changes: Any) -> "LogBench":
        self.config = replace(self.config, **changes)
        return self

    def open(self, **how: Any) -> Log:
        return open_log(str(self.folder), self.config, self.files, now_ms=self.now_ms, **how)

    def append(self, log: Log, records: list[Record] | int = 1, **how: Any) -> LogAppendInfo:
        """Appends one batch of these records, or of as many as said."""
        epoch = how.pop("leader_epoch", 0)
        is_own = how.get("is_control", False)
        if isinstance(records, int):
            records = [
                Record(0, self.now_ms + number, b"key%d" % (log.end_offset + number), b"v" * 40)
                for number in range(records)
            ]
        batch = build_batch(records, **how)
        return log.append(
            batch,
            list(iterate_headers(batch)),
            leader_epoch=epoch,
            now_ms=self.now_ms,
            guard=NOT_REQUIRED,
            is_own=is_own,
        )

    def send(self, log: Log, producer_id: int, records: int = 1, **how: Any) -> LogAppendInfo:
        """Appends one batch to the producer's transaction."""
        known = log.producers.producers.get(producer_id)
        sequence = known.last_sequence + 1 if known is not None else 0
        sent = {"producer_id": producer_id, "producer_epoch": 0, "base_sequence": sequence}
        return self.append(log, records, is_transactional=True, **{**sent, **how})

    def end(
        self, log: Log, producer_id: int, *, commit: bool, epoch: int = 0, version: int = 0
    ) -> LogAppendInfo:
        """Appends the marker that ends the producer's transaction."""
        kind = ControlType.commit if commit else ControlType.abort
        batch = write_end_marker(kind, producer_id, epoch, 3, self.now_ms)
        return log.append(
            batch,
            [read_header(batch)],
            leader_epoch=0,
            now_ms=self.now_ms,
            is_own=True,
            transaction_version=version,
        )

    def fill(self, log: Log, batches: int, records: int = 3) -> None:
        for _ in range(batches):
            self.append(log, records)

    def read_all(self, log: Log, from_offset: int | None = None) -> list[Record]:
        """Every record from the start, as a consumer with small fetches sees them."""
        offset = log.start_offset if from_offset is None else from_offset
        found: list[Record] = []
        while data := log.read(offset, max_bytes=700).read():
            position = 0
            for header in iterate_headers(data):
                batch = data[position : position + header.size_bytes]
                found += [each for each in iterate_records(batch) if each.offset >= offset]
                position += header.size_bytes
                offset = header.next_offset
        return found

    def names(self, suffix: str = "") -> list[str]:
        return sorted(path.name for path in self.folder.iterdir() if path.name.endswith(suffix))


@pytest.fixture
def bench(tmp_path: Path) -> LogBench:
    return LogBench(tmp_path / "t-0")


@pytest.fixture
def make_bench(tmp_path: Path) -> Callable[[str], LogBench]:
    """For tests that want many folders (Hypothesis)."""
    return lambda name: LogBench(tmp_path / name)


@pytest.fixture
def fast_folder(tmp_path: Path) -> Iterator[Path]:
    """In memory where the system has such a file system: thousands of lives wait for no disk."""
    if not os.access(MEMORY, os.W_OK):
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        yield Path(folder)
