import asyncio
import errno
import os
import re
import shutil
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from ottla.cluster.cluster_view import ClusterView
from ottla.cluster.metadata_applier import MetadataApplier
from ottla.cluster.partition_opener import PartitionOpener
from ottla.cluster.registration import Registration
from ottla.cluster.strays import Strays
from ottla.cluster.topic_settings import TopicSettings
from ottla.config import BrokerConfig
from ottla.controller.image import (
    ClusterImage,
    DirectoryChanged,
    DirectoryImage,
    PartitionsChanged,
    PartitionState,
    TopicCreated,
    TopicDeleted,
    TopicImage,
)
from ottla.coordination.tree import ConnectionLostError
from ottla.coordinator.coordinators import Coordinators
from ottla.log import names
from ottla.log.config import LogConfig
from ottla.log.leader_epochs import LeaderEpochs
from ottla.log.partition_metadata import make_folder, read_topic_id
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.internal_topics import OFFSETS_TOPIC
from ottla.records.build import build_batch
from ottla.records.header import read_header
from ottla.records.record import Record
from ottla.replica.partition_host import PartitionHost
from ottla.replica.partition_role import Role
from ottla.replica.partitions import Partitions
from ottla.replica.replica_fetchers import ReplicaFetchers, leader_throttle
from ottla.runtime.clock import SystemClock
from ottla.storage.log_store import LogStore
from ottla.timelines.recorder import TimelineRecorder


async def delete(node_call: Any, topic: str) -> None:
    build = node_call.request(20, 6)
    topics = (build.DeleteTopicState(name=topic),)
    await node_call.ask(build.DeleteTopicsRequest(topics=topics, timeout=1000))


def folders(node_call: Any) -> set[str]:
    return {each.name for each in node_call.node.config.data_folder.iterdir() if each.is_dir()}


async def test_added_partitions_get_a_folder_with_their_first_record(
    node_call: Any,
) -> None:
    await node_call.create("u", 2)
    build = node_call.request(37, 3)
    topics = (build.CreatePartitionsTopic(name="u", count=4, assignments=None),)
    await node_call.ask(
        build.CreatePartitionsRequest(topics=topics, timeout=1000, validate_only=False)
    )
    assert len(node_call.node.partitions.of_topic("u")) == 4
    assert folders(node_call) == set()
    for index in (1, 3):
        await node_call.produce("u", node_call.batch(b"a"), index=index)
    data = node_call.node.config.data_folder
    assert folders(node_call) == {"u-1", "u-3"}
    assert read_topic_id(str(data / "u-3")) == node_call.topic_id("u")


async def test_a_deleted_topic_is_renamed_at_once(node_call: Any) -> None:
    await node_call.produce("t", node_call.batch(b"a"))
    await delete(node_call, "t")
    assert len(node_call.node.partitions) == 0
    (left,) = folders(node_call)
    assert left.startswith("t-0.")
    assert left.endswith("-delete")
    await node_call.create("t")
    assert node_call.node.partitions.find("t", 0).high_watermark == 0


async def test_settings_are_applied_at_once(node_call: Any) -> None:
    build = node_call.request(44, 1)
    change = build.AlterableConfig(name="max.message.bytes", config_operation=0, value="100")
    resource = build.AlterConfigsResource(resource_type=2, resource_name="t", configs=(change,))
    await node_call.ask(
        build.IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False)
    )
    partition = node_call.node.partitions.find("t", 0)
    assert partition.log.config.max_message_bytes == 100


async def test_a_restart_opens_known_folders_and_sets_the_others_aside(
    start_node: Any, caplog: pytest.LogCaptureFixture, eventually: Any
) -> None:
    """One changed character of partition.metadata, or a store that no longer has the topic, is no
    reason to delete records: seen with both, without a line.
    """
    first = await start_node()
    await first.create("kept")
    await first.create("stray")
    for topic in ("kept", "stray"):
        await first.produce(topic, first.batch(b"a"))
    data = first.node.config.data_folder
    await first.node.close()
    make_folder(str(data / "stray-0"), UUID(int=77))
    shutil.copytree(data / "stray-0", data / "unknown-0")
    second = await start_node()
    assert second.node.partitions.find("kept", 0).high_watermark == 1
    assert second.node.partitions.find("stray", 0).high_watermark == 0
    await second.produce("stray", second.batch(b"a"))
    assert read_topic_id(str(data / "stray-0")) == second.topic_id("stray")
    await eventually(lambda: "stray folders with" in caplog.text)
    aside = {names.stray_partition_of(name): data / name for name in folders(second)}
    assert set(aside) == {None, ("stray", 0), ("unknown", 0)}
    for name in (("stray", 0), ("unknown", 0)):
        (segment,) = aside[name].glob("*.log")
        assert segment.stat().st_size > 0
        (line,) = [each for each in caplog.messages if each.startswith(f"{name[0]}-0 is set")]
        assert f"{aside[name]}; to put them back or to delete them: ottla log stray list" in line
    await second.node.close()
    caplog.clear()
    third = await start_node()
    await eventually(lambda: "2 stray folders with" in caplog.text)
    assert aside.keys() <= {names.stray_partition_of(name) for name in folders(third)}


async def test_a_topic_that_was_deleted_while_the_broker_was_away_is_removed(
    start_node: Any, caplog: pytest.LogCaptureFixture, eventually: Any
) -> None:
    """The broker was killed after the deletion was in the tree."""
    caplog.set_level("INFO")
    first = await start_node()
    await first.create("t")
    await first.produce("t", first.batch(b"a"))
    data = first.node.config.data_folder
    shutil.copytree(data / "t-0", data / "before")
    await delete(first, "t")
    await first.node.close()
    (data / "before").rename(data / "t-0")
    second = await start_node()
    await eventually(lambda: folders(second) == set())
    assert "t-0: its topic was deleted" in caplog.text
    assert "set aside" not in caplog.text


EPOCH = 30
"""Of broker 1's registration."""


def state(leader: int, epoch: int, *replicas: int, version: int = 0) -> PartitionState:
    return PartitionState(leader, epoch, replicas, replicas, version or epoch)


class Cluster:
    """Broker 1 of a cluster, alone: how it applies deltas of partitions."""

    def __init__(self, folder: Any) -> None:
        self.store = LogStore.open(folder, node_id=1, random=Random(1))
        self.store.open_logs(lambda topic: LogConfig(), 0)
        self.image = ClusterImage("c")
        self.known(EPOCH)
        for other in (2, 3):
            directory = DirectoryImage(f"folder {other}", 1, 0)
            self.image.apply(DirectoryChanged(other, directory))
        self.notified: list[tuple[str, int]] = []
        self.failed: list[tuple[str, int, tuple[int, ...]]] = []
        """The disk failures: topic, partition, in-sync set."""
        self.removed: list[Any] = []
        groups: Any = SimpleNamespace(
            kind=SimpleNamespace(topic=OFFSETS_TOPIC),
            elected=lambda index: self.notified.append(("elected", index)),
            resigned=lambda index: self.notified.append(("resigned", index)),
        )
        peers = SimpleNamespace(peer=self._peer, drop=lambda leader, purpose: None)
        clock = SystemClock()
        self.config = BrokerConfig.from_properties({"node.id": "1"})
        self.partitions = Partitions()
        self.registration = registration = Registration(1)
        registration.broker_epoch = registration.first_epoch = EPOCH
        settings = TopicSettings(self.config, self.image)
        maintenance: Any = SimpleNamespace(
            deleted=self.removed.append,
            put_aside=lambda: None,
            free=self._free,
            remove_later=self.removed.append,
        )
        self.noted: set[UUID] = set()
        self.times_read = 0
        failure: Any = SimpleNamespace(failed=self._failed)
        fetching: Any = peers
        self.fetchers = ReplicaFetchers(
            self.config,
            clock,
            fetching,
            broker_epoch=lambda: EPOCH,
            truncated=lambda *truncated: None,
        )
        host = PartitionHost(
            broker_id=1,
            clock=clock,
            timelines=TimelineRecorder(clock, enabled=False),
            write_failed=lambda *failed: None,
        )
        self.recorded: set[UUID] = set()
        self.forgotten: list[set[UUID]] = []
        self.strays = Strays(
            *(self.store, maintenance, clock, self._noted, self._topic_deleted),
            recorded=self,
            read_again_ms=0,
        )
        self.view = ClusterView(self.config)
        self.applier = MetadataApplier(
            registration,
            self.store.metadata.directory_id,
            self.image,
            clock,
            self.partitions,
            PartitionOpener(self.store, settings, maintenance, host, self.strays),
            settings,
            self.fetchers,
            leader_throttle(self.config, clock),
            Coordinators([groups]),
            self._topic_deleted,
            failure,
            self.strays,
            self.view.between_deltas,
        )
        self.applier.start()
        self.strays.start()

    async def unknown_topics(self) -> set[UUID]:
        return self.recorded

    async def remove_deleted(self, noted: Any) -> None:
        self.forgotten.append(set(noted))

    async def _noted(self) -> set[UUID]:
        self.times_read += 1
        if self.noted is None:
            raise ConnectionLostError("/")
        return self.noted

    def folders(self) -> list[str]:
        """The names of the partitions' folders, with `*` for what is unique in them."""
        names = (each.name for each in Path(self.store.root).iterdir() if each.is_dir())
        return sorted(re.sub("[0-9a-f]{32}", "*", name) for name in names)

    def known(self, epoch: int, directory_id: str | None = None) -> DirectoryChanged:
        own = self.store.metadata.directory_id
        changed = DirectoryChanged(1, DirectoryImage(directory_id or own, epoch, 0))
        self.image.apply(changed)
        return changed

    async def _free(self, topic: str, index: int) -> None:
        checkpoint = self.store.checkpoint({})
        checkpoint.run()
        checkpoint.apply()

    async def _topic_deleted(self, name: str, topic_id: UUID) -> None:
        self.notified.append((name, topic_id.int))

    def _failed(self, topic: str, index: int, state: PartitionState, error: ApiError) -> None:
        assert error.code is ErrorCode.kafka_storage_error
        self.failed.append((topic, index, state.isr))

    def _peer(self, leader: int, purpose: str) -> Any:
        async def ask(request: Any, timeout_ms: int) -> Any:
            await asyncio.Event().wait()

        return SimpleNamespace(ask=ask)

    async def create(self, name: str, *states: PartitionState, number: int = 1) -> None:
        created = TopicCreated(TopicImage(name, UUID(int=number), states, {}))
        self.image.apply(created)
        await self.applier.apply(created)

    async def delete(self, name: str, *, by_request: bool = True) -> None:
        deleted = TopicDeleted(self.image.topics[name], by_request)
        self.image.apply(deleted)
        await self.applier.apply(deleted)

    def write(self, name: str, index: int = 0) -> None:
        """A record, so that the partition has a folder."""
        batch = build_batch([Record(0, 1, b"k", b"v")])
        log = self.store.logs[name, index]
        log.append(batch, [read_header(batch)], leader_epoch=5, now_ms=1)

    async def change(self, name: str, *states: PartitionState) -> None:
        topic = replace(self.image.topics[name], partitions=states)
        changed = PartitionsChanged(topic, tuple(range(len(states))))
        self.image.apply(changed)
        await self.applier.apply(changed)

    def role(self, name: str, index: int) -> Role | None:
        partition = self.partitions.get(name, index)
        return None if partition is None else partition.role


@pytest.fixture
async def cluster(tmp_path: Any) -> AsyncIterator[Cluster]:
    cluster = Cluster(tmp_path / "data")
    await cluster.applier.open_all()
    yield cluster
    await cluster.applier.close()
    await cluster.strays.close()
    await cluster.fetchers.close()
    cluster.store.release()


async def test_only_partitions_placed_here_are_opened(cluster: Cluster) -> None:
    await cluster.create("t", state(1, 1, 1, 2), state(2, 1, 2, 1), state(2, 1, 2, 3))
    roles = [cluster.role("t", index) for index in range(3)]
    assert roles == [Role.LEADER, Role.FOLLOWER, None]
    assert set(cluster.store.logs) == {("t", 0), ("t", 1)}
    assert len(cluster.fetchers) == 1


async def test_roles_follow_the_leader(cluster: Cluster) -> None:
    await cluster.create("t", state(2, 1, 1, 2))
    await cluster.change("t", state(1, 2, 1, 2))
    assert cluster.role("t", 0) is Role.LEADER
    assert len(cluster.fetchers) == 0
    await cluster.change("t", state(-1, 3, 1, 2))
    assert cluster.role("t", 0) is Role.NONE
    await cluster.change("t", state(2, 4, 1, 2))
    assert cluster.role("t", 0) is Role.FOLLOWER
    assert len(cluster.fetchers) == 1


async def test_a_reassigned_replica_is_removed_and_may_come_back(cluster: Cluster) -> None:
    await cluster.create("t", state(2, 1, 1, 2))
    await cluster.change("t", state(2, 2, 2, 3))
    assert len(cluster.partitions) == len(cluster.fetchers) == len(cluster.store.logs) == 0
    assert len(cluster.removed) == 1
    await cluster.change("t", state(2, 3, 2, 1))
    assert cluster.role("t", 0) is Role.FOLLOWER


async def test_a_recreated_topic_begins_empty(cluster: Cluster) -> None:
    await cluster.create("t", state(2, 1, 1, 2))
    await cluster.delete("t")
    assert cluster.notified == [("t", 1)]
    await cluster.create("t", state(2, 1, 1, 2), number=7)
    assert cluster.partitions.find(UUID(int=7), 0).role is Role.FOLLOWER
    assert len(cluster.removed) == 1
    assert len(cluster.fetchers) == 1


async def test_coordinators_are_notified_of_their_partitions_leaders(cluster: Cluster) -> None:
    await cluster.create(OFFSETS_TOPIC, state(2, 1, 1, 2), state(1, 1, 1, 2))
    assert cluster.notified == [("elected", 1)]
    cluster.notified.clear()
    await cluster.change(OFFSETS_TOPIC, state(1, 2, 1, 2), state(2, 2, 1, 2))
    assert cluster.notified == [("elected", 0), ("resigned", 1)]
    cluster.notified.clear()
    # A change of the in-sync set is not an election.
    await cluster.change(OFFSETS_TOPIC, state(1, 2, 1, 2, version=9), state(2, 2, 1, 2, version=9))
    assert cluster.notified == []


async def test_no_leader_in_an_epoch_of_an_earlier_incarnation(cluster: Cluster) -> None:
    """Seed 546 of the simulation: an empty disk led in its old epoch."""
    cluster.known(EPOCH - 1)
    await cluster.create("t", state(1, 5, 1, 2), state(1, 5, 1))
    assert [cluster.role("t", index) for index in range(2)] == [Role.NONE, Role.NONE]
    # Elected by a controller that does not know the registration, or may not know it.
    await cluster.change("t", state(1, 6, 1, 2), state(1, 5, 1))
    assert cluster.role("t", 0) is Role.NONE
    await cluster.applier.apply(cluster.known(EPOCH))
    assert [cluster.role("t", index) for index in range(2)] == [Role.LEADER, Role.LEADER]


async def test_a_sole_replica_leads_at_once_after_a_clean_stop(cluster: Cluster) -> None:
    cluster.known(EPOCH - 1)
    cluster.registration.previous_epoch = EPOCH - 1
    await cluster.create("t", state(1, 5, 1, 2), state(1, 5, 1))
    assert [cluster.role("t", index) for index in range(2)] == [Role.NONE, Role.LEADER]


async def test_a_broker_whose_id_is_taken_gives_up_its_roles_and_keeps_its_folders(
    cluster: Cluster,
) -> None:
    cluster.known(EPOCH)
    await cluster.create(OFFSETS_TOPIC, state(1, 5, 1), state(1, 5, 1, 2), state(2, 5, 1, 2))
    await cluster.applier.give_up()
    assert [cluster.role(OFFSETS_TOPIC, index) for index in range(3)] == [Role.NONE] * 3
    assert cluster.notified[-2:] == [("resigned", 0), ("resigned", 1)]
    await cluster.applier.apply(cluster.known(EPOCH + 1))
    await cluster.change(OFFSETS_TOPIC, state(1, 6, 1), state(1, 6, 1, 2), state(2, 6, 2, 3))
    assert [cluster.role(OFFSETS_TOPIC, index) for index in range(2)] == [Role.NONE] * 2
    assert cluster.removed == []


async def test_a_partition_whose_files_cannot_be_read_does_not_keep_others_from_their_roles(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    cluster.known(EPOCH)
    begin = LeaderEpochs.begin

    def fail(epochs: LeaderEpochs, epoch: int, start_offset: int) -> None:
        if "/t-1/" in epochs.path:
            raise OSError(errno.EIO, "Input/output error")
        begin(epochs, epoch, start_offset)

    monkeypatch.setattr(LeaderEpochs, "begin", fail)
    await cluster.create("t", *[state(1, 5, 1, 2)] * 3)
    assert [cluster.role("t", index) for index in range(3)] == [Role.LEADER, Role.NONE, Role.LEADER]
    assert cluster.failed == [("t", 1, (1, 2))]
    assert "cannot open t-1" in caplog.text


async def test_coordinators_are_notified_once_the_controller_knows_this_incarnation(
    cluster: Cluster,
) -> None:
    cluster.known(EPOCH - 1)
    await cluster.create(OFFSETS_TOPIC, state(1, 5, 1, 2))
    assert cluster.notified == []
    await cluster.applier.apply(cluster.known(EPOCH))
    assert cluster.notified == [("elected", 0)]


async def test_an_image_without_this_incarnation_deletes_nothing(
    cluster: Cluster,
) -> None:
    """The first image may be one of a deposed controller that does not know so."""
    await cluster.create("t", state(2, 1, 1, 2))
    await cluster.create("u", state(2, 1, 1, 2), number=2)
    cluster.known(EPOCH - 1)
    await cluster.change("t", state(2, 2, 2, 3))
    await cluster.delete("u")
    await cluster.create("u", state(2, 1, 1, 2), number=7)
    assert cluster.role("t", 0) is cluster.role("u", 0) is None
    assert set(cluster.store.logs) == {("t", 0), ("u", 0)}
    assert cluster.removed == []
    await cluster.change("t", state(2, 3, 1, 2))
    await cluster.applier.apply(cluster.known(EPOCH))
    # The conflicting log is gone, and the known partition has stayed.
    assert cluster.role("t", 0) is cluster.role("u", 0) is Role.FOLLOWER
    assert cluster.store.logs["u", 0].topic_id == UUID(int=7)


async def test_unplaced_folders_are_deleted_once_the_controller_knows_this_incarnation(
    cluster: Cluster,
) -> None:
    await cluster.create("t", state(2, 1, 1, 2))
    cluster.known(EPOCH - 1)
    await cluster.change("t", state(2, 2, 2, 3))
    assert set(cluster.store.logs) == {("t", 0)}
    await cluster.applier.apply(cluster.known(EPOCH))
    assert cluster.store.logs == {}


@pytest.mark.parametrize("noted", [True, False])
async def test_a_topic_that_a_newer_image_lacks_is_deleted_only_with_proof(
    cluster: Cluster, noted: bool, eventually: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """A new controller's tree may be one restored from a backup that is older than the topic."""
    await cluster.create("t", state(1, 1, 1))
    cluster.write("t")
    if noted:
        cluster.noted.add(UUID(int=1))
    await cluster.delete("t", by_request=False)
    if noted:
        await eventually(lambda: cluster.removed)
        assert cluster.folders() == ["t-0.*-delete"]
        assert cluster.notified == [("t", 1)], "its committed offsets are deleted"
        return
    await eventually(lambda: "no deletion is noted: the groups' offsets are kept" in caplog.text)
    assert cluster.folders() == ["t-0.*-stray"]
    assert (cluster.removed, cluster.notified) == ([], [])


async def test_a_topic_that_lost_a_partition_keeps_the_others(
    cluster: Cluster, eventually: Any
) -> None:
    """What `differences` makes of it: the topic goes, and comes again with the same id."""
    await cluster.create("t", state(1, 1, 1), state(1, 1, 1))
    for index in range(2):
        cluster.write("t", index)

    async def both() -> None:
        await cluster.delete("t", by_request=False)
        await cluster.create("t", state(1, 1, 1))

    await cluster.view.between_deltas(both)
    await eventually(lambda: cluster.folders() == ["t-0", "t-1.*-stray"])
    assert cluster.partitions.find("t", 0).log.end_offset == 1
    assert cluster.role("t", 0) is Role.LEADER


@pytest.mark.parametrize(
    ("after", "moved"),
    [
        (state(2, 5, 2, 3), True),
        (state(2, 4, 2, 3, version=9), False),  # older than the folder's records
        (state(2, 5, 2, 3, version=1), False),  # an earlier state of the tree
        (state(7, 5, 7), False),  # a broker that nobody has seen
        (state(2, 5, 2, 3)._replace(isr=()), False),  # nobody has the records
    ],
)
async def test_a_folder_is_deleted_only_if_other_brokers_have_its_records(
    cluster: Cluster, after: PartitionState, moved: bool, eventually: Any
) -> None:
    await cluster.create("t", state(1, 5, 1, 2, version=4))
    cluster.write("t")
    await cluster.change("t", after)
    wanted = ["t-0.*-delete"] if moved else ["t-0.*-stray"]
    await eventually(lambda: cluster.folders() == wanted)


async def test_a_deletion_that_cannot_be_looked_up_is_made_up_for_at_the_next_start(
    cluster: Cluster, eventually: Any, caplog: pytest.LogCaptureFixture
) -> None:
    await cluster.create("t", state(1, 1, 1))
    cluster.write("t")
    noted, cluster.noted = cluster.noted, None  # type: ignore[assignment]
    await cluster.delete("t", by_request=False)
    await eventually(lambda: cluster.folders() == ["t-0.*-stray"])
    await eventually(lambda: "cannot read which topics were deleted" in caplog.text)
    noted.add(UUID(int=1))
    cluster.noted = noted
    cluster.store.strays = [str(each) for each in Path(cluster.store.root).glob("*-stray")]
    cluster.strays.check_earlier()
    await eventually(lambda: cluster.removed)
    assert cluster.folders() == ["t-0.*-delete"]


async def test_what_is_recorded_of_a_topic_is_deleted_only_with_proof(
    cluster: Cluster, eventually: Any
) -> None:
    cluster.recorded = {UUID(int=8), UUID(int=9)}
    cluster.strays.check_earlier()
    await eventually(lambda: cluster.times_read == 1)
    cluster.noted.add(UUID(int=9))
    cluster.strays.check_earlier()
    await eventually(lambda: cluster.forgotten == [{UUID(int=9)}])


async def test_a_broker_that_lost_its_id_takes_no_role_of_its_successor(cluster: Cluster) -> None:
    """It was away for longer than its session, and a broker with another disk has its id."""
    await cluster.create("t", state(2, 1, 1, 2))
    await cluster.applier.apply(cluster.known(EPOCH + 1, "another"))
    await cluster.change("t", state(1, 2, 1, 2))
    assert cluster.role("t", 0) is Role.NONE
    await cluster.change("t", state(2, 3, 2, 3))
    assert cluster.removed == [], "what is not placed with the other may be all that there is"


async def test_a_folder_that_cannot_be_renamed_is_not_used_for_the_new_topic(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    await cluster.create("t", state(1, 1, 1, 2), state(1, 1, 1, 2))
    for partition in cluster.partitions:
        partition.log.make_files()
    cluster.known(EPOCH - 1)
    await cluster.delete("t")
    cluster.known(EPOCH)

    rename = os.rename

    def refuse(old: str, new: str) -> None:
        if old.endswith("/t-0"):
            raise OSError(errno.EROFS, "Read-only file system")
        rename(old, new)

    monkeypatch.setattr(os, "rename", refuse)
    await cluster.create("t", state(1, 1, 1, 2), state(1, 1, 1, 2), number=7)
    assert [cluster.role("t", index) for index in range(2)] == [None, Role.LEADER]
    assert "data/t-0 exists, but should have been removed" in caplog.text
    assert cluster.failed == [("t", 0, (1, 2))]


async def test_a_folder_that_cannot_be_opened_is_a_disk_failure(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    await cluster.create("t", state(1, 1, 1, 2))
    create = cluster.store.create

    def full(topic: str, index: int, *more: Any) -> Any:
        if index == 0:
            raise ApiError(ErrorCode.kafka_storage_error, "the disk is full")
        return create(topic, index, *more)

    monkeypatch.setattr(cluster.store, "create", full)
    await cluster.create("u", state(2, 1, 1, 2), state(1, 1, 1, 2))
    assert (cluster.role("u", 0), cluster.role("u", 1)) == (None, Role.LEADER)
    assert cluster.failed == [("u", 0, (1, 2))]
    assert "cannot open u-0: the disk is full" in caplog.text


async def test_partitions_lead_as_soon_as_files_can_be_opened(
    cluster: Cluster,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    eventually: Any,
) -> None:
    """They stayed without a leader until the next start, as no further delta named them."""
    cluster.known(EPOCH)
    scandir, attempts = os.scandir, 0

    def exhausted(path: str) -> Any:
        nonlocal attempts
        attempts += 1
        raise OSError(errno.EMFILE, "Too many open files", path)

    monkeypatch.setattr(os, "scandir", exhausted)
    await cluster.create("t", *[state(1, 5, 1, 2)] * 50)
    assert {cluster.role("t", index) for index in range(50)} == {None}
    await eventually(lambda: attempts > 51)
    assert attempts < 60, "one partition is enough to know"
    monkeypatch.setattr(os, "scandir", scandir)
    await eventually(lambda: {cluster.role("t", index) for index in range(50)} == {Role.LEADER})
    assert cluster.failed == [], "the disk is well"
    assert caplog.text.count("cannot open t-") == 1
    assert "and try again: cannot open " in caplog.text


async def test_a_partition_that_was_not_opened_and_is_deleted_is_forgotten(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.known(EPOCH)
    with monkeypatch.context() as patch:
        patch.setattr(os, "scandir", lambda path: (_ for _ in ()).throw(OSError(errno.ENFILE, "")))
        await cluster.create("t", state(1, 5, 1))
    await cluster.delete("t")
    await cluster.view.between_deltas(cluster.applier._open_again)
    assert cluster.role("t", 0) is None
    assert ("t", 0) not in cluster.store.logs
