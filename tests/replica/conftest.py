"""Parts of a partition without a broker: a log on disk, a fixed clock, no timeline."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from uuid import UUID

import pytest

from ottla.controller.image import PartitionState
from ottla.log.config import LogConfig
from ottla.log.log import Log
from ottla.log.open_file import OpenFiles
from ottla.log.opening import open_log
from ottla.records.build import build_batch
from ottla.records.header import read_header
from ottla.records.record import Record
from ottla.replica.partition_host import PartitionHost
from ottla.replica.partition_role import PartitionRole
from ottla.timelines.no_timeline import NoTimeline


@pytest.fixture
def host() -> PartitionHost:
    """Broker 1, at 1000 ms."""
    return PartitionHost(
        1,
        SimpleNamespace(now_ms=lambda: 1_000, monotonic_ms=lambda: 1_000),
        SimpleNamespace(open=lambda *_, **__: NoTimeline(), forget=lambda timeline: None),
        write_failed=lambda partition, error: None,
    )


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return open_log(str(tmp_path / "t-0"), LogConfig(), OpenFiles(8), now_ms=1)


@pytest.fixture
def role(log: Log, host: PartitionHost) -> PartitionRole:
    """The only replica, which leads in epoch 0."""
    made = PartitionRole(UUID(int=1), 0, log, host, high_watermark=0)
    assert made.update(PartitionState(1, 0, (1,), (1,), 0))
    return made


@pytest.fixture
def write(log: Log) -> Callable[..., bytes]:
    """Appends one batch with these values, the records a millisecond apart, and returns it."""

    def append(*values: bytes, time_ms: int = 1_000, leader_epoch: int = 0) -> bytes:
        records = [Record(0, time_ms + n, None, value) for n, value in enumerate(values)]
        batch = build_batch(records)
        log.append(batch, [read_header(batch)], leader_epoch=leader_epoch, now_ms=1)
        return batch

    return append
