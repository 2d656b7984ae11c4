import asyncio
import socket
from pathlib import Path
from typing import Any

import pytest

from ottla.cluster.alter_partition_sender import AlterPartitionSender
from ottla.cluster.errors import StartError
from ottla.cluster.membership import Membership
from ottla.log.errors import DataFolderError
from ottla.network.listener import Listener
from ottla.network.peers import Peers
from ottla.protocol.errors import ErrorCode
from ottla.protocol.kafka_uuid import uuid_text
from ottla.replica.isr_maintenance import IsrMaintenance
from ottla.replica.partition_role import Role
from ottla.replica.replica_fetchers import ReplicaFetchers
from ottla.storage.log_maintenance import LogMaintenance
from ottla.storage.log_store import LogStore
from ottla.timelines.recorder import TimelineRecorder


async def test_records_survive_a_clean_stop(start_node: Any) -> None:
    first = await start_node()
    await first.create("t", 2)
    await first.produce("t", first.batch(b"a", b"b"), index=1)
    data, topic_id = first.node.config.data_folder, first.topic_id("t")
    await first.node.close()
    assert (data / ".kafka_cleanshutdown").exists()
    second = await start_node()
    assert not (data / ".kafka_cleanshutdown").exists()
    assert second.topic_id("t") == topic_id
    assert second.node.log_maintenance.high_watermarks() == {("t", 0): 0, ("t", 1): 2}
    assert second.node.image.cluster_id == first.node.image.cluster_id


async def test_only_a_stop_that_may_have_lost_records_moves_the_leader_epoch(
    start_node: Any,
) -> None:
    """Of partitions with one replica, before the first request can append to them."""
    running = await start_node()
    await running.create("t")
    for restart, epoch in (("clean", 0), ("unclean", 1), ("clean", 1)):
        await running.node.close()
        if restart == "unclean":
            (running.node.config.data_folder / ".kafka_cleanshutdown").unlink()
        running = await start_node()
        partition = running.node.partitions.find("t", 0)
        assert (partition.role, partition.leader_epoch) == (Role.LEADER, epoch)
        answer = await running.produce("t", running.batch(b"a"))
        assert answer.error_code is ErrorCode.none
    assert [partition.log.epochs.epoch_of(offset) for offset in range(3)] == [0, 1, 1]


async def test_a_folder_of_another_cluster_keeps_its_data(start_node: Any) -> None:
    """Its coordination store is missing, or the broker belongs to a cluster and was started without
    --zookeeper.
    """
    first = await start_node()
    await first.create("t")
    await first.produce("t", first.batch(b"a"))
    data = first.node.config.data_folder
    await first.node.close()
    (data / "coordination.sqlite.copy").unlink()
    store = data / "coordination.sqlite"
    away = store.rename(data / "away")
    for _ in range(2):
        with pytest.raises(StartError, match="belongs to cluster"):
            await start_node()
    away.replace(store)
    second = await start_node()
    assert second.node.log_maintenance.high_watermarks() == {("t", 0): 1}


async def test_a_folder_admits_only_one_node(start_node: Any) -> None:
    first = await start_node()
    with pytest.raises(DataFolderError, match="in use"):
        await start_node()
    await first.create("still.works")
    await first.node.close()
    await start_node()


async def test_a_port_in_use_leaves_the_folder_free(start_node: Any) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(OSError, match="in use"):
            await start_node(listeners=f"PLAINTEXT://127.0.0.1:{taken.getsockname()[1]}")
    await start_node()


async def test_a_port_in_use_leaves_nothing_of_a_new_folder(
    start_node: Any, tmp_path: Path
) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "notes").write_text("mine")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        for folder in ("new", "new/below", "mine"):
            with pytest.raises(OSError, match="in use"):
                await start_node(
                    listeners=f"PLAINTEXT://127.0.0.1:{taken.getsockname()[1]}",
                    log_dirs=str(tmp_path / folder),
                )
    assert not (tmp_path / "new").exists()
    assert [each.name for each in mine.iterdir()] == ["notes"]


async def test_the_endpoint_has_the_bound_port(start_node: Any) -> None:
    made = await start_node()
    (endpoint,) = made.node.endpoints
    assert endpoint.port > 0
    reader, writer = await asyncio.open_connection(endpoint.host, endpoint.port)
    writer.close()
    assert made.node.image.brokers[1].endpoints[0].port == endpoint.port
    assert not reader.at_eof()


async def test_topic_settings_override_the_brokers(start_node: Any) -> None:
    made = await start_node(log_retention_ms="1234", log_segment_bytes="2097152")
    await made.create("t", segment_bytes="1048576")
    config = made.node.topic_settings.log_config("t")
    assert (config.retention_ms, config.segment_bytes) == (1234, 1_048_576)
    assert made.node.topic_settings.log_config("none").segment_bytes == 2_097_152


async def test_a_stop_answers_waiting_requests(start_node: Any) -> None:
    made = await start_node()
    await made.create("t")
    build = made.request(1, 12)
    partition = build.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=100)
    topics = (build.FetchTopic(topic="t", partitions=(partition,)),)
    asked = asyncio.create_task(
        made.ask(build.FetchRequest(max_wait=600_000, min_bytes=1, topics=topics))
    )
    await asyncio.sleep(0.01)
    await made.node.close()
    assert (await asyncio.wait_for(asked, 30)).error_code is ErrorCode.none


async def test_fetchers_stop_before_the_logs_close(
    start_node: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed: list[str] = []
    order = (
        Listener, IsrMaintenance, AlterPartitionSender, ReplicaFetchers, Peers, LogMaintenance,
        TimelineRecorder, LogStore, Membership,
    )  # fmt: skip

    def noted(owner: type) -> Any:
        close = owner.close  # type: ignore[attr-defined]

        def work(*arguments: Any) -> Any:
            closed.append(owner.__name__)
            return close(*arguments)

        return work

    for owner in order:
        monkeypatch.setattr(owner, "close", noted(owner))
    await (await start_node()).node.close()
    assert list(dict.fromkeys(closed)) == [owner.__name__ for owner in order]


async def test_requests_are_counted_by_key(node_call: Any) -> None:
    (endpoint,) = node_call.node.endpoints
    reader, writer = await asyncio.open_connection(endpoint.host, endpoint.port)
    body = (18).to_bytes(2, "big") + bytes(2) + (1).to_bytes(4, "big") + b"\xff\xff"
    writer.write(len(body).to_bytes(4, "big") + body)
    await reader.readexactly(4)
    writer.close()
    assert node_call.node.request_counts() == {18: 1}


@pytest.mark.parametrize("copy_is_older", [True, False])
async def test_a_flipped_bit_in_the_coordination_store_costs_no_record(
    start_node: Any, copy_is_older: bool, caplog: pytest.LogCaptureFixture, eventually: Any
) -> None:
    """It made the topic id of a folder that of no topic, and the folder was deleted in silence."""
    first = await start_node()
    await first.create("t")
    for _ in range(3):
        await first.produce("t", first.batch(b"a"))
    data = first.node.config.data_folder
    topic_id = first.topic_id("t")
    await first.node.close()
    copy = (data / "coordination.sqlite.copy").read_bytes()
    second = await start_node()
    await second.create("later")
    await second.produce("later", second.batch(b"b"))
    await second.node.close()
    if copy_is_older:
        (data / "coordination.sqlite.copy").write_bytes(copy)
    store = data / "coordination.sqlite"
    content = bytearray(store.read_bytes())
    content[content.index(uuid_text(topic_id).encode()) + 5] ^= 1
    store.write_bytes(content)
    third = await start_node()
    assert "/brokers/topics/t): using its copy of" in caplog.text
    partition = third.node.partitions.find("t", 0)
    assert (third.topic_id("t"), partition.log.end_offset) == (topic_id, 3)
    assert (await third.produce("t", third.batch(b"c"))).error_code == 0
    assert ("later" in third.node.image.topics) is not copy_is_older
    if copy_is_older:
        await eventually(lambda: list(data.glob("later-0.*-stray")))
