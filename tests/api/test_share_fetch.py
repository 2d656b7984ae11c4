"""ShareFetch and ShareAcknowledge to a node, through the codec."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from typing import Any

import pytest

from ottla.network.client_session import ClientSession
from ottla.protocol.errors import ErrorCode
from ottla.replica import share_state_check
from ottla.replica.shared_partition import SharedPartition
from ottla.share.stored import ShareKey

OK = ErrorCode.none
ACCEPT, RELEASE, REJECT, RENEW = 1, 2, 3, 4


class Bench:
    """Members of the group "g", each on a connection of its own, on partitions of topic "t"."""

    def __init__(self, call: Any) -> None:
        self.call = call
        self.node = call.node
        self.clients: dict[str, ClientSession] = {}
        self.epochs: dict[str, int] = {}

    def key(self, index: int = 0) -> ShareKey:
        return ShareKey("g", self.call.topic_id("t"), index)

    async def initialize(self, index: int = 0, start: int = 0) -> None:
        await self.node.shares.persister.initialize(self.key(index), 1, start)

    async def produce(self, *values: bytes, index: int = 0, **header: Any) -> None:
        answer = await self.call.produce("t", self.call.batch(*values, **header), index=index)
        assert answer.error_code is OK

    async def configure(self, name: str, value: str) -> None:
        """A setting of the group."""
        build = self.call.request(44, 1)
        config = build.AlterableConfig(name=name, config_operation=0, value=value)
        resource = build.AlterConfigsResource(
            resource_type=32, resource_name="g", configs=(config,)
        )
        answer = await self.call.ask(build.IncrementalAlterConfigsRequest(resources=(resource,)))
        assert answer.responses[0].error_code is OK

    def client(self, member: str) -> ClientSession:
        if member not in self.clients:
            number = len(self.clients) + 100
            self.clients[member] = ClientSession(number, "127.0.0.1", "PLAINTEXT", "", 0)
        return self.clients[member]

    def _topics(self, build: Any, kind: str, partitions: tuple[int, ...], acks: Any) -> Any:
        return (
            getattr(build, f"{kind}Topic")(
                topic_id=self.call.topic_id("t"),
                partitions=tuple(
                    getattr(build, f"{kind}Partition")(
                        partition_index=index,
                        acknowledgement_batches=tuple(
                            build.AcknowledgementBatch(
                                first_offset=first, last_offset=last, acknowledge_types=types
                            )
                            for first, last, *types in acks
                        ),
                    )
                    for index in partitions
                ),
            ),
        )

    async def ask(
        self,
        member: str = "a",
        *acks: tuple[int, ...],
        epoch: int | None = None,
        version: int = 2,
        partitions: tuple[int, ...] | None = None,
        **fields: Any,
    ) -> Any:
        """A ShareFetch; its response."""
        build = self.call.request(78, version)
        begins = member not in self.epochs
        sent = self.epochs.get(member, 0) if epoch is None else epoch
        if partitions is None:
            partitions = (0,) if begins or acks else ()
        given = {"max_wait": 0, "min_bytes": 1, "max_bytes": 1 << 20, "max_records": 500}
        given |= {"batch_size": 500, **fields}
        request = build.ShareFetchRequest(
            group_id="g",
            member_id=member,
            share_session_epoch=sent,
            topics=self._topics(build, "Fetch", partitions, acks) if partitions else (),
            **given,
        )
        response = await self.call.ask(request, session=self.client(member))
        if response.error_code is OK and sent >= 0:
            self.epochs[member] = sent + 1
        return response

    async def fetch(self, member: str = "a", *acks: tuple[int, ...], **fields: Any) -> Any:
        """What the member got of partition 0; waits for it."""
        response = await self.ask(member, *acks, **{"max_wait": 10_000, **fields})
        assert response.error_code is OK, response
        found = [each for topic in response.responses for each in topic.partitions]
        got = [each for each in found if each.partition_index == 0]
        return got[0] if got else None

    async def acknowledge(
        self,
        member: str,
        *acks: tuple[int, ...],
        epoch: int | None = None,
        version: int = 2,
        **fields: Any,
    ) -> Any:
        """The error of partition 0; the error of all if there is one."""
        build = self.call.request(79, version)
        sent = self.epochs.get(member, 1) if epoch is None else epoch
        request = build.ShareAcknowledgeRequest(
            group_id="g",
            member_id=member,
            share_session_epoch=sent,
            topics=self._topics(build, "Acknowledge", (0,), acks),
            **fields,
        )
        response = await self.call.ask(request, session=self.client(member))
        if response.error_code is not OK:
            return response.error_code
        if sent >= 0:
            self.epochs[member] = sent + 1
        return response.responses[0].partitions[0].error_code

    def leave(self, member: str) -> None:
        """Its connection ends."""
        ended = self.clients.pop(member).ended
        assert ended is not None
        ended()


def acquired(part: Any) -> list[tuple[int, int, int]]:
    if part is None:
        return []
    return [
        (each.first_offset, each.last_offset, each.delivery_count) for each in part.acquired_records
    ]


@pytest.fixture
async def shares(start_node: Any) -> Any:
    call = await start_node(share_coordinator_state_topic_num_partitions="1")
    await call.create("t", partitions=2)
    bench = Bench(call)
    await bench.initialize()
    return bench


async def test_members_get_records_and_accept_them(shares: Bench) -> None:
    await shares.produce(b"a", b"b", b"c")
    part = await shares.fetch("a")
    assert acquired(part) == [(0, 2, 1)]
    assert b"c" in bytes(part.records)
    assert (part.error_code, part.acknowledge_error_code) == (OK, 0)
    await shares.produce(b"d")
    assert acquired(await shares.fetch("b")) == [(3, 3, 1)]
    part = await shares.fetch("a", (0, 1, ACCEPT), (2, 2, RELEASE), max_wait=0)
    assert part.acknowledge_error_code == 0
    assert acquired(await shares.fetch("b", (3, 3, ACCEPT))) == [(2, 2, 2)]
    assert await shares.acknowledge("b", (2, 2, REJECT)) is OK
    state = await shares.node.shares.persister.read(shares.key(), -1)
    assert state.start_offset + len(state.batches) >= 3
    summary = await shares.node.shares.persister.summary(shares.key())
    assert summary.leader_epoch == 0


@pytest.mark.parametrize("version", [1, 2])
async def test_a_fetch_waits_for_records(shares: Bench, version: int) -> None:
    waiting = asyncio.create_task(shares.fetch("a", version=version))
    await asyncio.sleep(0.05)
    assert not waiting.done()
    await shares.produce(b"a")
    assert acquired(await waiting) == [(0, 0, 1)]


async def test_a_fetch_ends_with_its_time(shares: Bench) -> None:
    first = await shares.ask("a", max_wait=10)
    assert [each.partition_index for each in first.responses[0].partitions] == [0]
    assert (await shares.ask("a", max_wait=10)).responses == ()


async def test_released_records_wake_others(shares: Bench) -> None:
    await shares.produce(b"a", b"b")
    await shares.fetch("a")
    waiting = asyncio.create_task(shares.fetch("b"))
    await asyncio.sleep(0.02)
    assert await shares.acknowledge("a", (1, 1, RELEASE)) is OK
    assert acquired(await waiting) == [(1, 1, 2)]


async def test_records_are_released_when_the_connection_ends(shares: Bench) -> None:
    await shares.produce(b"a", b"b")
    await shares.fetch("a")
    waiting = asyncio.create_task(shares.fetch("b"))
    await asyncio.sleep(0.02)
    shares.leave("a")
    assert acquired(await waiting) == [(0, 1, 2)]
    assert len(shares.node.shared_partitions.sessions) == 1
    shares.leave("b")
    assert len(shares.node.shared_partitions.sessions) == 0


async def test_records_are_released_when_the_session_ends(shares: Bench) -> None:
    await shares.produce(b"a", b"b", b"c")
    await shares.fetch("a")
    response = await shares.ask("a", (0, 0, ACCEPT), epoch=-1)
    assert response.responses[0].partitions[0].acknowledge_error_code == 0
    assert acquired(await shares.fetch("b")) == [(1, 2, 2)]
    assert await shares.acknowledge("b", (1, 1, ACCEPT), epoch=-1) is OK
    assert acquired(await shares.fetch("c")) == [(2, 2, 3)]
    assert (await shares.ask("a", epoch=-1)).error_code is ErrorCode.share_session_not_found


async def test_locks_end_with_their_time(start_node: Any) -> None:
    call = await start_node(
        share_coordinator_state_topic_num_partitions="1",
        group_share_min_record_lock_duration_ms="1000",
        group_share_record_lock_duration_ms="1000",
    )
    await call.create("t")
    bench = Bench(call)
    await bench.initialize()
    await bench.produce(b"a")
    await bench.fetch("a")
    assert acquired(await bench.fetch("b")) == [(0, 0, 2)]
    assert await bench.acknowledge("a", (0, 0, ACCEPT)) is ErrorCode.invalid_record_state


async def test_the_mode_of_record_limits(shares: Bench) -> None:
    await shares.produce(*[b"x"] * 10)
    part = await shares.fetch("a", max_records=3, share_acquire_mode=1)
    assert acquired(part) == [(0, 2, 1)]
    assert acquired(await shares.fetch("b", max_records=3)) == [(3, 9, 1)]
    wrong = await shares.ask("c", share_acquire_mode=7)
    assert wrong.error_code is ErrorCode.invalid_request


async def test_locks_are_renewed(shares: Bench) -> None:
    await shares.produce(b"a", b"b")
    await shares.fetch("a")
    assert await shares.acknowledge("a", (0, 0, RENEW)) is ErrorCode.invalid_request
    assert await shares.acknowledge("a", (0, 0, RENEW), is_renew_ack=True) is OK
    refused = await shares.ask("a", (0, 0, RENEW), is_renew_ack=True, max_records=1)
    assert refused.error_code is ErrorCode.invalid_request
    assert "maxRecords must be set to 0" in refused.error_message
    renewed = await shares.ask(
        "a", (1, 1, RENEW), is_renew_ack=True, max_records=0, max_bytes=0, min_bytes=0
    )
    assert renewed.responses[0].partitions[0].acknowledge_error_code == 0
    assert renewed.acquisition_lock_timeout == 30_000
    assert await shares.acknowledge("a", (0, 0, RENEW), version=1) is ErrorCode.invalid_request


async def test_sessions_have_their_epochs(shares: Bench) -> None:
    not_found, wrong = (
        ErrorCode.share_session_not_found,
        ErrorCode.invalid_share_session_epoch,
    )
    assert (await shares.ask("a", epoch=1)).error_code is not_found
    assert await shares.acknowledge("a", (0, 0, 1), epoch=1) is not_found
    assert await shares.acknowledge("a", (0, 0, 1), epoch=0) is wrong
    # Whatever it is: a session begins without acknowledgements.
    for acks in ((0, 0, ACCEPT), (0, 0, 9), (0, 0)):
        assert (await shares.ask("a", acks)).error_code is ErrorCode.invalid_request
    assert (await shares.ask("a")).error_code is OK
    assert (await shares.ask("a", epoch=7)).error_code is wrong
    assert (await shares.ask("a", epoch=1)).error_code is OK
    assert (await shares.ask("a", epoch=0, partitions=(0,))).error_code is OK
    assert (await shares.ask("a", epoch=1)).error_code is OK
    for member in ("", "m" * 37):
        assert (await shares.ask(member)).error_code is ErrorCode.invalid_request


async def test_the_number_of_sessions_is_limited(start_node: Any) -> None:
    call = await start_node(group_share_max_share_sessions="1")
    await call.create("t")
    bench = Bench(call)
    await bench.initialize()
    assert (await bench.ask("a")).error_code is OK
    assert (await bench.ask("b")).error_code is ErrorCode.share_session_limit_reached
    bench.leave("a")
    assert (await bench.ask("b")).error_code is OK


async def test_a_fetch_of_many_partitions_lets_others_have_their_turn(shares: Bench) -> None:
    many = tuple(range(5_000))
    shares.call.counts_calls = True
    response = await shares.ask("a", partitions=many)
    assert len(response.responses[0].partitions) == 5_000
    assert shares.call.most_calls < 60_000
    too_many = await shares.ask("b", partitions=tuple(range(10_001)))
    assert too_many.error_code is ErrorCode.invalid_request


async def test_records_of_many_partitions_are_handed_out_in_slices(
    start_node: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    call = await start_node(share_coordinator_state_topic_num_partitions="1")
    await call.create("t", partitions=40)
    bench = Bench(call)
    for index in range(40):
        await bench.initialize(index)
        await bench.produce(b"v", index=index)
    partitions = tuple(range(40))
    await bench.ask("a", partitions=partitions, max_records=1, max_wait=10_000)
    turns = Counter[int]()
    turn = 0
    right = SharedPartition.hand_out

    async def hand_out(self: SharedPartition, *given: Any) -> Any:
        turns[turn] += 1
        return await right(self, *given)

    async def count_turns() -> None:
        nonlocal turn
        while True:
            turn += 1
            await asyncio.sleep(0)

    monkeypatch.setattr(SharedPartition, "hand_out", hand_out)
    counting = asyncio.ensure_future(count_turns())
    handed = 0
    while handed < 39:
        response = await bench.ask("a", partitions=(), max_wait=10_000)
        handed += sum(len(topic.partitions) for topic in response.responses)
    counting.cancel()
    assert max(turns.values()) <= 10


async def test_acknowledgements_of_many_runs_let_others_have_their_turn(start_node: Any) -> None:
    """Of each record another one than of the next, in several partitions."""
    call = await start_node(share_coordinator_state_topic_num_partitions="1")
    await call.create("t", partitions=3)
    bench = Bench(call)
    partitions, count = (0, 1, 2), 4_500
    for index in partitions:
        await bench.initialize(index)
    await bench.ask("a", partitions=partitions)
    for index in partitions:
        await bench.produce(*[b""] * count, index=index)
    found: list[int] = []
    while len(found) < len(partitions):
        response = await bench.ask("a", partitions=(), max_wait=10_000, max_records=count)
        found += [
            each.partition_index
            for topic in response.responses
            for each in topic.partitions
            if acquired(each) == [(0, count - 1, 1)]
        ]
    call.counts_calls = True
    types = (ACCEPT, REJECT) * (count // 2)
    acks = (0, count - 1, *types)
    response = await bench.ask("a", acks, partitions=partitions, max_records=0)
    (topic,) = response.responses
    assert [each.acknowledge_error_code for each in topic.partitions] == [OK] * 3
    assert call.most_calls < 200_000
    for index in partitions:
        summary = await call.node.shares.persister.summary(bench.key(index))
        assert summary.delivery_complete_count == count


async def test_a_session_that_begins_after_its_connection_has_ended_ends(shares: Bench) -> None:
    """The request's last step was due already when the connection ended."""
    shares.client("a").has_ended = True
    assert (await shares.ask("a", max_wait=0)).error_code is OK
    assert len(shares.node.shared_partitions.sessions) == 0


async def test_partitions_that_cannot_be_read_have_their_errors(shares: Bench) -> None:
    response = await shares.ask("a", partitions=(0, 1, 9), max_wait=5_000)
    codes = {each.partition_index: each.error_code for each in response.responses[0].partitions}
    assert codes[9] is ErrorCode.unknown_topic_or_partition
    while codes.get(1, OK) is OK:  # its state is looked for once
        await asyncio.sleep(0.001)
        response = await shares.ask("a", max_wait=5_000)
        codes |= {
            each.partition_index: each.error_code for each in response.responses[0].partitions
        }
    assert codes[1] is ErrorCode.unknown_server_error  # not initialized
    assert codes[9] is ErrorCode.unknown_topic_or_partition
    await shares.initialize(1)
    await shares.produce(b"a", index=1)
    found: list[Any] = []
    while not found:
        await asyncio.sleep(0.001)
        response = await shares.ask("a", max_wait=5_000)
        found = [
            each
            for each in response.responses[0].partitions
            if each.partition_index == 1 and each.acquired_records
        ]
    assert await shares.acknowledge("b", (0, 0, 1), epoch=-1) is ErrorCode.share_session_not_found


async def test_acknowledgements_that_make_no_sense_are_refused(shares: Bench) -> None:
    await shares.produce(*[b"x"] * 3)
    await shares.fetch("a")
    invalid = ErrorCode.invalid_request
    for acks in ((2, 1, ACCEPT), (0, 1, ACCEPT, ACCEPT, ACCEPT), (0, 1), (0, 1, 9), (0, 5, 1)):
        assert await shares.acknowledge("a", acks) is invalid
    assert await shares.acknowledge("a", (0, 2, ACCEPT, RELEASE, 0)) is OK
    assert await shares.acknowledge("a", (0, 2, ACCEPT)) is ErrorCode.invalid_record_state


async def test_committed_records_only(shares: Bench) -> None:
    node = shares.node
    partition = node.partitions.get("t", 0)
    await shares.produce(b"plain")
    for producer, commits in ((7, False), (8, True)):
        batch = shares.call.batch(
            b"x", producer_id=producer, producer_epoch=0, base_sequence=0, is_transactional=True
        )
        guard = partition.appends.begin_verification(producer, 0, 0, version_2=False)
        partition.appends.append(batch, "tests", to_all=True, is_transactional=True, guard=guard)
        if not commits:
            partition.appends.append_marker(
                producer, 1, is_commit=False, coordinator_epoch=1, transaction_version=2
            )
    await shares.configure("share.isolation.level", "read_committed")
    # Offset 1 was aborted, 2 is its marker, 3 is open.
    found = acquired(await shares.fetch("a")) + acquired(await shares.fetch("a"))
    assert found == [(0, 0, 1), (2, 2, 1)]
    partition.appends.append_marker(
        8, 1, is_commit=True, coordinator_epoch=1, transaction_version=2
    )
    assert acquired(await shares.fetch("b")) == [(3, 4, 1)]


async def test_a_new_group_begins_where_its_setting_says(start_node: Any) -> None:
    call = await start_node()
    await call.create("t")
    bench = Bench(call)
    await bench.initialize(start=-1)
    await bench.produce(b"before")
    waiting = asyncio.create_task(bench.fetch("a"))
    for _ in range(100):
        await asyncio.sleep(0.01)
        shared = call.node.shared_partitions.known("g", bench.key()[1:])
        if shared is not None and not shared.is_loading:
            break
    await bench.produce(b"after")
    assert acquired(await waiting) == [(1, 1, 1)]


async def test_a_new_group_may_begin_as_long_ago_as_it_says(start_node: Any) -> None:
    call = await start_node()
    await call.create("t")
    bench = Bench(call)
    await bench.initialize(start=-1)
    now_ms = call.node.clock.now_ms()
    await bench.produce(b"old", time_ms=now_ms - 7_200_000)
    await bench.produce(b"new", time_ms=now_ms - 1_000)
    await bench.configure("share.auto.offset.reset", "by_duration:PT1H")
    assert acquired(await bench.fetch("a")) == [(1, 1, 1)]


async def test_deleted_records_are_not_waited_for(shares: Bench) -> None:
    await shares.produce(b"a", b"b")
    await shares.produce(b"c")
    assert acquired(await shares.fetch("a", max_records=1)) == [(0, 1, 1)]
    shares.node.partitions.get("t", 0).delete_before(2)
    assert await shares.acknowledge("a", (0, 1, ACCEPT)) is OK
    assert acquired(await shares.fetch("a")) == [(2, 2, 1)]


async def test_a_cluster_without_share_groups_refuses(shares: Bench) -> None:
    assert (await shares.ask("a")).error_code is OK
    build = shares.call.request(57, 1)
    update = build.FeatureUpdateKey(feature="share.version", max_version_level=0, upgrade_type=2)
    answer = await shares.call.ask(
        build.UpdateFeaturesRequest(timeout=30_000, feature_updates=(update,), validate_only=False)
    )
    assert answer.error_code is OK
    assert (await shares.ask("a")).error_code is ErrorCode.unsupported_version
    assert await shares.acknowledge("a", (0, 0, 1)) is ErrorCode.unsupported_version
    assert len(shares.node.shared_partitions.sessions) == 0


MOST_LOCKS = 2_000


async def test_a_member_that_dies_with_all_locks_that_there_may_be(shares: Bench) -> None:
    """What it had goes to others at once, each record once; until then nobody gets any more."""
    size = 50
    for _ in range(MOST_LOCKS // size):
        await shares.produce(*[b"x"] * size)
    held = acquired(await shares.fetch("a", max_records=MOST_LOCKS, max_bytes=10 << 20))
    assert sum(last - first + 1 for first, last, _ in held) == MOST_LOCKS
    await shares.produce(*[b"y"] * size)
    assert acquired(await shares.fetch("b", max_wait=50)) == []
    waiting = asyncio.create_task(shares.fetch("b", max_records=MOST_LOCKS, max_bytes=10 << 20))
    await asyncio.sleep(0.02)
    shares.leave("a")
    again = acquired(await waiting)
    while sum(last - first + 1 for first, last, _ in again) < MOST_LOCKS:
        again += acquired(await shares.fetch("b", max_records=MOST_LOCKS, max_bytes=10 << 20))
    offsets = [offset for first, last, _ in again for offset in range(first, last + 1)]
    assert sorted(offsets) == list(range(MOST_LOCKS))
    assert {count for _, _, count in again} == {2}
    assert await shares.acknowledge("b", (0, MOST_LOCKS - 1, ACCEPT)) is OK
    assert acquired(await shares.fetch("b")) == [(MOST_LOCKS, MOST_LOCKS + size - 1, 1)]


async def test_a_topic_that_is_deleted_while_its_records_are_acquired(
    shares: Bench, eventually: Any
) -> None:
    """Nothing of it is left, and a topic of the same name begins from the start."""
    await shares.produce(b"a", b"b")
    assert acquired(await shares.fetch("a")) == [(0, 1, 1)]
    old = shares.key()
    waiting = asyncio.create_task(shares.ask("b", max_wait=10_000))
    await asyncio.sleep(0.02)
    build = shares.call.request(20, 5)
    request = build.DeleteTopicsRequest(topic_names=("t",), timeout=30_000)
    assert (await shares.call.ask(request)).responses[0].error_code is OK
    part = (await waiting).responses[0].partitions[0]
    assert part.error_code in (ErrorCode.unknown_topic_id, ErrorCode.not_leader_or_follower)
    build = shares.call.request(79, 2)
    said = build.AcknowledgementBatch(first_offset=0, last_offset=1, acknowledge_types=(ACCEPT,))
    partition = build.AcknowledgePartition(partition_index=0, acknowledgement_batches=(said,))
    request = build.ShareAcknowledgeRequest(
        group_id="g",
        member_id="a",
        share_session_epoch=1,
        topics=(build.AcknowledgeTopic(topic_id=old.topic_id, partitions=(partition,)),),
    )
    answer = await shares.call.ask(request, session=shares.client("a"))
    assert answer.responses[0].partitions[0].error_code is ErrorCode.unknown_topic_id
    shard = next(iter(shares.node.shares.runtime._partitions.values())).shard
    await eventually(lambda: old not in shard.known)
    for member in ("a", "b"):
        shares.leave(member)
        del shares.epochs[member]
    await eventually(lambda: not len(shares.node.shared_partitions))
    await shares.call.create("t", partitions=2)
    await shares.initialize()
    await shares.produce(b"c")
    assert acquired(await shares.fetch("a")) == [(0, 0, 1)]


@pytest.mark.parametrize("start", [-1, 0])
async def test_a_state_that_began_anew_under_a_session_is_noticed_where_nothing_is_read(
    shares: Bench, monkeypatch: pytest.MonkeyPatch, start: int
) -> None:
    """The group was deleted, and another one has its name, or its offsets were set back, while a
    member had a session: what the leader knows says that there is nothing to read."""
    monkeypatch.setattr(share_state_check, "CHECK_S", 0)
    await shares.configure("share.auto.offset.reset", "earliest")
    await shares.produce(b"a", b"b")
    assert acquired(await shares.fetch("a")) == [(0, 1, 1)]
    assert await shares.acknowledge("a", (0, 1, ACCEPT)) is OK
    for _ in range(2):
        assert acquired(await shares.fetch("a", max_wait=0)) == []
    if start == -1:
        await shares.node.shares.persister.delete(shares.key())
    await shares.initialize(start=start)
    assert acquired(await shares.fetch("b")) == [(0, 1, 1)]
    assert await shares.acknowledge("b", (0, 1, ACCEPT)) is OK


async def test_a_state_that_is_gone_under_a_session_is_noticed(
    shares: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(share_state_check, "CHECK_S", 0)
    await shares.ask("a")
    await shares.node.shares.persister.delete(shares.key())
    part = await shares.fetch("a")
    assert part.error_code is ErrorCode.unknown_server_error
    assert "has not been initialized" in part.error_message


async def test_locks_do_not_go_by_a_clock_that_is_set(
    shares: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Members and records stay as they are, whether it goes ahead or back."""
    await shares.produce(b"a", b"b")
    assert acquired(await shares.fetch("a")) == [(0, 1, 1)]
    now_ns = time.time_ns()
    for jump_s in (3_600, -7_200):
        monkeypatch.setattr(time, "time_ns", lambda set_ns=now_ns + jump_s * 10**9: set_ns)
        assert acquired(await shares.fetch("b", max_wait=50)) == []
    assert await shares.acknowledge("a", (0, 0, ACCEPT), (1, 1, RELEASE)) is OK
    assert acquired(await shares.fetch("b")) == [(1, 1, 2)]
