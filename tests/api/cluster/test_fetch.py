"""Fetches with replicas on other brokers: from followers, from consumers near them, and under a
throttle. The other brokers exist only in the metadata; their fetches are built here."""

import asyncio
from typing import Any

import pytest

from ottla.controller.image import BrokerVanished
from ottla.protocol.errors import ErrorCode
from ottla.records.header import iterate_headers

KEY = 1
RACK_AWARE = "org.apache.kafka.common.replica.RackAwareReplicaSelector"


async def fetch(node_call: Any, offset: int = 0, version: int = 17, **changes: Any) -> Any:
    """The answer for t-0, to a consumer."""
    build = node_call.request(KEY, version)
    of_partition = {
        name: changes.pop(name)
        for name in ("current_leader_epoch", "last_fetched_epoch", "log_start_offset")
        if name in changes
    }
    partition = build.FetchPartition(
        partition=0,
        fetch_offset=offset,
        partition_max_bytes=1 << 20,
        **{"current_leader_epoch": -1, **of_partition} if version >= 9 else {},
    )
    topic = changes.pop("topic", "t")
    named = {"topic_id": node_call.topic_id(topic)} if version >= 13 else {"topic": topic}
    topics = (build.FetchTopic(**named, partitions=(partition,)),)
    given = {"max_wait": 0, "min_bytes": 1, "max_bytes": 1 << 20, **changes}
    answer = await node_call.ask(build.FetchRequest(topics=topics, **given))
    return answer.responses[0].partitions[0]


async def copy(
    node_call: Any, replica: int, offset: int = 0, version: int = 17, epoch: int = 1, **changes: Any
) -> Any:
    """The answer for t-0, to the broker `replica`."""
    build = node_call.request(KEY, version)
    if version >= 15:
        state = build.ReplicaState(replica_id=replica, replica_epoch=epoch)
        return await fetch(node_call, offset, version, replica_state=state, **changes)
    return await fetch(node_call, offset, version, replica_id=replica, **changes)


def offsets(partition: Any) -> list[int]:
    return [header.base_offset for header in iterate_headers(partition.records or b"")]


def own(node_call: Any) -> int:
    number: int = node_call.node.config.id
    return number


async def append(node_call: Any, count: int = 1, topic: str = "t") -> None:
    """Append `count` batches, without waiting."""
    for _ in range(count):
        answer = await node_call.produce(topic, node_call.batch(b"v"), acks=1)
        assert answer.error_code is ErrorCode.none


class TestFollowers:
    """This broker leads t-0; broker 7 copies it."""

    @pytest.fixture(autouse=True)
    async def cluster(self, node_call: Any) -> None:
        await node_call.appear(7)
        await node_call.place("t", (own(node_call), 7))
        await append(node_call, 2)

    @pytest.mark.parametrize("version", [4, 9, 12, 14, 15, 18])
    async def test_a_follower_reads_to_the_end_and_acknowledges_by_its_offset(
        self, node_call: Any, version: int
    ) -> None:
        found = await copy(node_call, 7, 0, version)
        assert (found.error_code, found.high_watermark, offsets(found)) == (
            ErrorCode.none,
            0,
            [0, 1],
        )
        assert offsets(await fetch(node_call, 0)) == []
        found = await copy(node_call, 7, 1, version)
        assert (found.high_watermark, offsets(found)) == (1, [1])
        assert offsets(await fetch(node_call, 0)) == [0]
        found = await copy(node_call, 7, 2, version)
        assert (found.high_watermark, offsets(found)) == (2, [])

    async def test_the_followers_fetch_acknowledges_acks_all(self, node_call: Any) -> None:
        asked = asyncio.create_task(node_call.produce("t", node_call.batch(b"x"), acks=-1))
        await asyncio.sleep(0.01)
        await copy(node_call, 7, 2)
        assert not asked.done()
        await copy(node_call, 7, 3)
        answer = await asyncio.wait_for(asked, 20)
        assert (answer.error_code, answer.base_offset) == (ErrorCode.none, 2)

    async def test_a_waiting_follower_gets_uncommitted_records(self, node_call: Any) -> None:
        asked = asyncio.create_task(copy(node_call, 7, 2, max_wait=60_000))
        consumer = asyncio.create_task(fetch(node_call, 2, max_wait=60_000))
        await asyncio.sleep(0.01)
        assert not asked.done()
        await append(node_call)
        assert offsets(await asyncio.wait_for(asked, 20)) == [2]
        await asyncio.sleep(0.01)
        assert not consumer.done()
        await copy(node_call, 7, 3)
        assert offsets(await asyncio.wait_for(consumer, 20)) == [2]

    async def test_a_broker_that_is_not_a_replica_is_refused(self, node_call: Any) -> None:
        epoch = node_call.node.image.partition("t", 0).leader_epoch
        for changes, code in (
            ({}, ErrorCode.not_leader_or_follower),
            # It knows the current epoch, so this broker may lack the delta (as in Kafka).
            ({"current_leader_epoch": epoch}, ErrorCode.unknown_leader_epoch),
        ):
            assert (await copy(node_call, 9, 0, **changes)).error_code is code, changes

    async def test_a_fetch_of_an_earlier_incarnation_acknowledges_nothing(
        self, node_call: Any
    ) -> None:
        await copy(node_call, 7, 1, epoch=5)
        found = await copy(node_call, 7, 2, epoch=4)
        assert found.error_code is ErrorCode.not_leader_or_follower
        assert (await fetch(node_call, 0)).high_watermark == 1

    async def test_a_follower_with_an_unknown_epoch_gets_the_diverging_offset(
        self, node_call: Any
    ) -> None:
        state = await node_call.place("t", (own(node_call), 7))
        await node_call.place("t", (own(node_call), 7))
        await append(node_call)
        found = await copy(node_call, 7, 3, last_fetched_epoch=state.leader_epoch)
        diverging = found.diverging_epoch
        assert found.error_code is ErrorCode.none
        assert (diverging.epoch, diverging.end_offset) == (state.leader_epoch - 1, 2)
        assert offsets(found) == []


class TestReadingHere:
    """Broker 7 leads t-0; this one copies it, and consumers may read it here (KIP-392)."""

    @pytest.fixture(autouse=True)
    async def cluster(self, node_call: Any) -> None:
        """Of three records two are committed."""
        await append(node_call, 2)
        await node_call.place("t", (own(node_call), 7))
        await append(node_call)
        await node_call.place("t", (7, own(node_call)))

    @pytest.mark.parametrize("version", range(11, 19))
    async def test_committed_records_are_read(self, node_call: Any, version: int) -> None:
        found = await fetch(node_call, 0, version)
        assert (found.error_code, found.high_watermark) == (ErrorCode.none, 2)
        assert offsets(found) == [0, 1]
        assert offsets(await fetch(node_call, 2, version)) == []

    @pytest.mark.parametrize("version", range(4, 11))
    async def test_older_consumers_read_from_the_leader(self, node_call: Any, version: int) -> None:
        found = await fetch(node_call, 0, version)
        assert (found.error_code, offsets(found)) == (ErrorCode.not_leader_or_follower, [])

    @pytest.mark.parametrize("version", [9, 17])
    async def test_followers_copy_from_the_leader(self, node_call: Any, version: int) -> None:
        found = await copy(node_call, 7, 0, version)
        assert (found.error_code, offsets(found)) == (ErrorCode.not_leader_or_follower, [])

    async def test_a_missing_offset_is_out_of_range(self, node_call: Any) -> None:
        for offset in (-1, 4):
            found = await fetch(node_call, offset)
            assert found.error_code is ErrorCode.offset_out_of_range, offset

    async def test_other_epochs_are_refused(self, node_call: Any) -> None:
        epoch = node_call.node.image.partition("t", 0).leader_epoch
        for asked, code in (
            (epoch - 1, ErrorCode.fenced_leader_epoch),
            (epoch, ErrorCode.none),
            (epoch + 1, ErrorCode.unknown_leader_epoch),
        ):
            found = await fetch(node_call, 0, current_leader_epoch=asked)
            assert found.error_code is code, asked

    async def test_a_waiting_consumer_gets_newly_committed_records(self, node_call: Any) -> None:
        asked = asyncio.create_task(fetch(node_call, 2, max_wait=60_000))
        await asyncio.sleep(0.01)
        assert not asked.done()
        node_call.node.partitions.find("t", 0).append_fetched(
            b"", [], leader_high_watermark=3, leader_log_start=0, now_ms=5
        )
        assert offsets(await asyncio.wait_for(asked, 20)) == [2]

    @pytest.mark.parametrize("leader", [-1, 7])
    async def test_an_election_wakes_a_waiting_consumer(self, node_call: Any, leader: int) -> None:
        """Without a leader there is no follower. With another epoch the consumer's is outdated."""
        epoch = node_call.node.image.partition("t", 0).leader_epoch
        asked = asyncio.create_task(
            fetch(node_call, 2, max_wait=60_000, current_leader_epoch=epoch)
        )
        await asyncio.sleep(0.01)
        await node_call.place("t", (7, own(node_call)), leader=leader)
        found = await asyncio.wait_for(asked, 20)
        assert found.error_code is ErrorCode.fenced_leader_epoch


class TestNearer:
    """This broker leads t-0 in rack a; broker 7 in rack b has all of it (KIP-392)."""

    async def lead(self, start_node: Any, **settings: str) -> Any:
        node_call = await start_node(
            **{"broker_rack": "a", "replica_selector_class": RACK_AWARE, **settings}
        )
        await node_call.create("t")
        await node_call.appear(7, rack="b")
        await node_call.place("t", (own(node_call), 7))
        await append(node_call, 2)
        await copy(node_call, 7, 2, log_start_offset=0)
        return node_call

    @pytest.mark.parametrize("version", range(11, 19))
    async def test_a_consumer_is_redirected_to_the_replica_in_its_rack(
        self, start_node: Any, version: int
    ) -> None:
        node_call = await self.lead(start_node)
        found = await asyncio.wait_for(
            fetch(node_call, 1, version, rack_id="b", max_wait=60_000), 20
        )
        assert (found.error_code, found.preferred_read_replica) == (ErrorCode.none, 7)
        assert (found.high_watermark, offsets(found)) == (2, [])

    @pytest.mark.parametrize("rack", ["", "a", "c"])
    async def test_other_consumers_read_here(self, start_node: Any, rack: str) -> None:
        node_call = await self.lead(start_node)
        found = await fetch(node_call, 1, rack_id=rack)
        assert (found.preferred_read_replica, offsets(found)) == (-1, [1])

    async def test_a_follower_reads_here_whatever_its_rack(self, start_node: Any) -> None:
        node_call = await self.lead(start_node)
        found = await copy(node_call, 7, 1, rack_id="b")
        assert (found.preferred_read_replica, offsets(found)) == (-1, [1])

    async def test_without_the_selector_all_consumers_read_here(self, start_node: Any) -> None:
        node_call = await self.lead(start_node, replica_selector_class="")
        found = await fetch(node_call, 1, rack_id="b")
        assert (found.preferred_read_replica, offsets(found)) == (-1, [1])

    async def test_an_out_of_sync_replica_is_not_preferred(self, start_node: Any) -> None:
        node_call = await self.lead(start_node)
        await node_call.place("t", (own(node_call), 7), isr=(own(node_call),))
        found = await fetch(node_call, 0, rack_id="b")
        assert (found.preferred_read_replica, offsets(found)) == (-1, [0, 1])

    async def test_a_dead_replica_is_not_preferred(self, start_node: Any) -> None:
        node_call = await self.lead(start_node)
        await node_call.node.view.apply([BrokerVanished(7)])
        found = await fetch(node_call, 0, rack_id="b")
        assert (found.preferred_read_replica, offsets(found)) == (-1, [0, 1])

    async def test_a_replica_without_this_listener_is_not_preferred(self, start_node: Any) -> None:
        node_call = await self.lead(start_node)
        await node_call.appear(7, rack="b", listener="REPLICATION")
        found = await fetch(node_call, 0, rack_id="b")
        assert (found.preferred_read_replica, offsets(found)) == (-1, [0, 1])

    async def test_a_replica_without_the_offset_is_not_preferred(self, start_node: Any) -> None:
        node_call = await self.lead(start_node)
        await copy(node_call, 7, 2, log_start_offset=1)
        found = await fetch(node_call, 0, rack_id="b")
        assert (found.preferred_read_replica, offsets(found)) == (-1, [0, 1])
        assert (await fetch(node_call, 1, rack_id="b")).preferred_read_replica == 7


class TestThrottle:
    """Broker 7 is in sync, broker 8 is not; a byte a second may go to throttled replicas."""

    async def lead(self, start_node: Any, replicas: str, rate: str = "1") -> Any:
        # Long windows: what was counted counts however slow the machine is.
        node_call = await start_node(
            leader_replication_throttled_rate=rate,
            replication_quota_window_num="2",
            replication_quota_window_size_seconds="60",
        )
        me = own(node_call)
        await node_call.create("t", leader_replication_throttled_replicas=replicas.format(me=me))
        for number in (7, 8):
            await node_call.appear(number)
        await node_call.place("t", (me, 7, 8), isr=(me, 7))
        await append(node_call, 2)
        return node_call

    @pytest.mark.parametrize("replicas", ["*", "0:{me}"])
    async def test_over_the_rate_an_out_of_sync_replica_gets_nothing(
        self, start_node: Any, replicas: str
    ) -> None:
        node_call = await self.lead(start_node, replicas)
        assert offsets(await copy(node_call, 8)) == [0, 1]
        found = await copy(node_call, 8)
        assert (found.error_code, offsets(found)) == (ErrorCode.none, [])

    async def test_an_in_sync_replica_is_never_throttled_but_counted(self, start_node: Any) -> None:
        node_call = await self.lead(start_node, "*")
        for _ in range(3):
            assert offsets(await copy(node_call, 7)) == [0, 1]
        assert offsets(await copy(node_call, 8)) == []

    async def test_consumers_are_neither_throttled_nor_counted(self, start_node: Any) -> None:
        node_call = await self.lead(start_node, "*")
        await copy(node_call, 7, 2)
        for _ in range(3):
            assert offsets(await fetch(node_call)) == [0, 1]
        assert offsets(await copy(node_call, 8)) == [0, 1]
        assert offsets(await fetch(node_call)) == [0, 1]

    @pytest.mark.parametrize("replicas", ["", "0:7,0:8", "1:{me}"])
    async def test_replicas_not_named_for_this_broker_are_not_throttled(
        self, start_node: Any, replicas: str
    ) -> None:
        node_call = await self.lead(start_node, replicas)
        for _ in range(3):
            assert offsets(await copy(node_call, 8)) == [0, 1]

    async def test_a_fetch_that_waits_for_more_counts_once(self, start_node: Any) -> None:
        node_call = await self.lead(start_node, "*", rate="1000000")
        asked = asyncio.create_task(copy(node_call, 7, min_bytes=1_000, max_wait=60_000))
        await asyncio.sleep(0.01)
        for _ in range(3):
            await append(node_call)
            await asyncio.sleep(0.01)
        assert not asked.done()
        await node_call.produce("t", node_call.batch(bytes(1_000)), acks=1)
        found = await asyncio.wait_for(asked, 20)
        throttle = node_call.node.leader_throttle
        now_ms = node_call.node.clock.monotonic_ms()
        assert throttle._quota.bytes_a_second(now_ms) * 60 == pytest.approx(len(found.records))
