"""Which log a partition opens with: the one in its folder, or a new one."""

from __future__ import annotations

from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from ottla.cluster.partition_opener import PartitionOpener
from ottla.cluster.strays import Strays
from ottla.cluster.topic_settings import TopicSettings
from ottla.config import BrokerConfig
from ottla.controller.image import ClusterImage, PartitionState, TopicCreated, TopicImage
from ottla.log.config import LogConfig
from ottla.log.partition_metadata import read_topic_id
from ottla.log.removal import Removal
from ottla.records.build import build_batch
from ottla.records.header import read_header
from ottla.records.record import Record
from ottla.replica.partition import Partition
from ottla.replica.partition_host import PartitionHost
from ottla.replica.partition_role import Role
from ottla.runtime.clock import SystemClock
from ottla.storage.log_store import LogStore
from ottla.storage.stray_folder import stray_folders
from ottla.timelines.recorder import TimelineRecorder

OLD, NEW = UUID(int=1), UUID(int=2)
STATE = PartitionState(1, 0, (1,), (1,), 0)


def topic_image(topic_id: UUID, **overrides: str) -> TopicImage:
    named = {name.replace("_", "."): value for name, value in overrides.items()}
    return TopicImage("t", topic_id, (STATE,), named)


class Disk:
    """A data folder, opened by one process after another."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.removals: list[Removal] = []
        self.start()

    def start(self) -> None:
        self.store = LogStore.open(self.folder, node_id=1, random=Random(1))
        self.store.open_logs(lambda topic: LogConfig(), 0)
        config = BrokerConfig.from_properties({"node.id": "1"})
        self.image = ClusterImage("c")
        clock = SystemClock()
        maintenance: Any = SimpleNamespace(
            deleted=self.removals.append, put_aside=lambda: self.aside.append(1), free=self.free
        )
        self.aside: list[int] = []
        strays = Strays(self.store, maintenance, clock, self._none, self._forget)
        timelines = TimelineRecorder(clock, enabled=False)
        host = PartitionHost(1, clock, timelines, write_failed=lambda partition, error: None)
        settings = TopicSettings(config, self.image)
        self.opener = PartitionOpener(self.store, settings, maintenance, host, strays)

    async def _none(self) -> set[UUID]:
        return set()

    async def _forget(self, topic: str, topic_id: UUID) -> None:
        raise AssertionError(topic)

    async def open(self, topic: TopicImage, *, may_rename: bool) -> Partition | None:
        return await self.opener.open(topic, 0, self.image, may_rename=may_rename)

    async def free(self, topic: str, index: int) -> None:
        """As `LogMaintenance.free`."""
        if (topic, index) in self.store.stale:
            checkpoint = self.store.checkpoint({})
            checkpoint.run()
            checkpoint.apply()

    def restart(self, *, clean: bool = True) -> None:
        """With the high watermark 2 of t-0 in the checkpoint."""
        self.store.close({("t", 0): 2})
        if not clean:
            (self.folder / ".kafka_cleanshutdown").unlink()
        self.start()

    def write(self, topic_id: UUID) -> None:
        """A topic t-0 with three records."""
        log = self.store.create("t", 0, LogConfig(), topic_id, 1)
        for _ in range(3):
            batch = build_batch([Record(0, 1, b"k", b"v")])
            log.append(batch, [read_header(batch)], leader_epoch=0, now_ms=1)


@pytest.fixture
def disk(tmp_path: Path) -> Disk:
    return Disk(tmp_path / "data")


async def test_a_new_partition_has_the_settings_of_its_topic_and_no_role(disk: Disk) -> None:
    topic = topic_image(NEW, min_insync_replicas="2", max_message_bytes="100")
    disk.image.apply(TopicCreated(topic))
    partition = await disk.open(topic, may_rename=False)
    assert partition is not None
    assert (partition.role, partition.topic_id) == (Role.NONE, NEW)
    assert partition.min_insync_replicas == 2
    assert partition.log.config.max_message_bytes == 100
    assert disk.store.logs == {("t", 0): partition.log}
    assert not (disk.folder / "t-0").exists(), "the folder comes with the first record"


@pytest.mark.parametrize("clean", [True, False])
async def test_a_known_folder_is_opened_at_its_high_watermark(disk: Disk, clean: bool) -> None:
    disk.write(OLD)
    disk.restart(clean=clean)
    partition = await disk.open(topic_image(OLD), may_rename=True)
    assert partition is not None
    assert (partition.log.end_offset, partition.high_watermark) == (3, 2)
    assert partition.log is disk.store.logs["t", 0]
    assert disk.removals == []


async def test_the_folder_of_an_earlier_topic_is_kept_if_it_must_not_be_renamed(disk: Disk) -> None:
    """The image may be older than the folder: only the controller's state shows which is gone."""
    disk.write(OLD)
    disk.restart()
    assert await disk.open(topic_image(NEW), may_rename=False) is None
    assert read_topic_id(str(disk.folder / "t-0")) == OLD
    assert disk.store.logs["t", 0].end_offset == 3


async def test_the_folder_of_an_earlier_topic_gives_way_to_a_new_log(disk: Disk) -> None:
    disk.write(OLD)
    disk.restart()
    partition = await disk.open(topic_image(NEW), may_rename=True)
    assert partition is not None
    assert (partition.topic_id, partition.log.end_offset, partition.high_watermark) == (NEW, 0, 0)
    assert not (disk.folder / "t-0").exists()
    assert disk.removals == []
    (stray,) = stray_folders(str(disk.folder))
    assert (stray.topic, stray.partition, stray.topic_id) == ("t", 0, OLD)
    assert stray.why is not None
    assert "no deletion of it is noted" in stray.why
    assert disk.aside == [1], "the checkpoint files are rewritten without it"


def test_a_folder_that_cannot_be_renamed_is_logged(
    disk: Disk, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: Any) -> None:
        raise OSError(5, "Input/output error")

    disk.write(OLD)
    monkeypatch.setattr("os.rename", fail)
    disk.opener.delete("t", 0)
    assert "t-0: " in caplog.text
    assert disk.removals == []


def test_logs_that_belong_to_no_partition_are_listed(disk: Disk) -> None:
    disk.write(OLD)
    disk.store.create("t", 1, LogConfig(), OLD, 1)
    assert disk.opener.unplaced({("t", 1)}) == [("t", 0)]
    assert disk.opener.unplaced({("t", 0), ("t", 1)}) == []


@pytest.mark.parametrize("content", [None, "", "version: 0\ntopic_id: ?", "\x00" * 40])
async def test_a_folder_without_a_topic_id_is_taken_by_its_name_and_a_line_says_so(
    disk: Disk, content: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    disk.write(OLD)
    file = disk.folder / "t-0" / "partition.metadata"
    file.unlink()
    if content is not None:
        file.write_text(content)
    disk.restart()
    partition = await disk.open(topic_image(OLD), may_rename=True)
    assert partition is not None
    assert partition.log.end_offset == 3
    (line,) = caplog.messages
    assert line.startswith(f"t-0: {file} is missing or damaged: ")
    assert read_topic_id(str(file.parent)) == OLD
    caplog.clear()
    disk.restart()
    assert await disk.open(topic_image(OLD), may_rename=True) is not None
    assert caplog.messages == []
