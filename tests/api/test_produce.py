import asyncio
import errno
from typing import Any
from uuid import UUID

import pytest
from tests.disk_writes import sizes_written
from tests.turns import turns_of_others

from ottla.api.produce import MAX_APPENDED_BYTES
from ottla.log.staged_append import STEP_BYTES
from ottla.network.handlers import EndConnectionError
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.records.build import build_batch
from ottla.records.check import ON_LOOP
from ottla.records.header import iterate_headers
from ottla.records.iterate import iterate_records
from ottla.records.record import Record
from ottla.replication.leader import FetchingReplica

KEY = 0


@pytest.mark.parametrize("version", range(3, 14))
async def test_every_version_appends(node_call: Any, version: int) -> None:
    first = await node_call.produce("t", node_call.batch(b"a", b"b"), version=version)
    second = await node_call.produce("t", node_call.batch(b"c"), version=version)
    assert (first.error_code, first.base_offset) == (ErrorCode.none, 0)
    assert (second.error_code, second.base_offset) == (ErrorCode.none, 2)
    assert second.log_append_time == -1
    if version >= 5:
        assert second.log_start_offset == 0


@pytest.mark.parametrize("acks", [1, -1])
async def test_acknowledged_records_are_stored(node_call: Any, acks: int) -> None:
    await node_call.produce("t", node_call.batch(b"a"), acks=acks)
    assert node_call.node.partitions.find("t", 0).high_watermark == 1


async def test_with_acks_0_a_failure_closes_the_connection(
    node_call: Any,
) -> None:
    assert await node_call.produce("t", node_call.batch(b"a"), acks=0) is None
    assert node_call.node.partitions.find("t", 0).high_watermark == 1
    with pytest.raises(EndConnectionError, match="none-0"):
        await node_call.produce("none", node_call.batch(b"a"), acks=0)


async def test_what_is_refused(node_call: Any) -> None:
    batch = node_call.batch(b"a")
    for asked, code in (
        ({"topic": "none"}, ErrorCode.unknown_topic_or_partition),
        ({"index": 1}, ErrorCode.unknown_topic_or_partition),
        ({"topic": "none", "version": 13}, ErrorCode.unknown_topic_id),
        ({"acks": 2}, ErrorCode.invalid_required_acks),
    ):
        answer = await node_call.produce(**{"topic": "t", "records": batch, **asked})
        assert (answer.error_code, answer.base_offset) == (code, -1), asked
    answer = await node_call.produce("t", None)
    assert answer.error_code is ErrorCode.invalid_record
    assert node_call.node.partitions.find("t", 0).high_watermark == 0


async def test_errors_name_single_records(node_call: Any) -> None:
    await node_call.create("compact", cleanup_policy="compact")
    records = [Record(0, 1, key, b"v") for key in (b"k", None, b"k", None)]
    answer = await node_call.produce("compact", build_batch(records), version=8)
    assert answer.error_code is ErrorCode.invalid_record
    assert [each.batch_index for each in answer.record_errors] == [1, 3]
    assert "key" in answer.record_errors[0].batch_index_error_message


async def test_one_refused_partition_does_not_affect_others(node_call: Any) -> None:
    build = node_call.request(KEY, 9)
    data = tuple(
        build.PartitionProduceData(index=index, records=node_call.batch(b"a")) for index in (7, 0)
    )
    topics = (build.TopicProduceData(name="t", partition_data=data),)
    answer = await node_call.ask(build.ProduceRequest(acks=1, timeout=1, topic_data=topics))
    codes = [each.error_code for each in answer.responses[0].partition_responses]
    assert codes == [ErrorCode.unknown_topic_or_partition, ErrorCode.none]


async def test_a_duplicate_batch_gets_its_old_offset(node_call: Any) -> None:
    batch = node_call.batch(b"a", b"b", producer_id=4, producer_epoch=0, base_sequence=0)
    assert (await node_call.produce("t", batch)).base_offset == 0
    await node_call.produce("t", node_call.batch(b"other"))
    again = await node_call.produce("t", batch)
    assert (again.error_code, again.base_offset) == (ErrorCode.none, 0)
    gap = node_call.batch(b"c", producer_id=4, producer_epoch=0, base_sequence=9)
    answer = await node_call.produce("t", gap)
    assert answer.error_code is ErrorCode.out_of_order_sequence_number
    assert node_call.node.partitions.find("t", 0).high_watermark == 3


async def test_log_append_time_is_returned(node_call: Any) -> None:
    await node_call.create("stamped", message_timestamp_type="LogAppendTime")
    answer = await node_call.produce("stamped", node_call.batch(b"a"))
    assert abs(answer.log_append_time - node_call.node.clock.now_ms()) < 60_000


async def test_zstd_requires_version_7(node_call: Any) -> None:
    batch = node_call.batch(b"a", compression=4)
    answer = await node_call.produce("t", batch, version=6)
    assert answer.error_code is ErrorCode.unsupported_compression_type
    assert (await node_call.produce("t", batch, version=7)).error_code is ErrorCode.none


async def test_a_failed_flush_fails_only_its_partition(
    node_call: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    await node_call.create("synced", flush_messages="1")

    def fails(task: object) -> None:
        raise ApiError(ErrorCode.kafka_storage_error, "no disk")

    monkeypatch.setattr("ottla.log.flush.FlushTask.run", fails)
    answer = await node_call.produce("synced", node_call.batch(b"a"))
    assert (answer.error_code, answer.base_offset) == (ErrorCode.kafka_storage_error, -1)
    assert (await node_call.produce("t", node_call.batch(b"a"))).error_code is ErrorCode.none
    assert node_call.node.storage_failure.reason is None, "nobody else could lead"


@pytest.mark.parametrize(
    ("what", "why"),
    [
        ("os.fdatasync", "because nobody knows what is on the disk"),
        ("os.pwritev", "so that others can take over"),
    ],
)
async def test_a_leader_with_a_failed_disk_stops_if_another_can_lead(
    node_call: Any, monkeypatch: pytest.MonkeyPatch, what: str, why: str
) -> None:
    await node_call.create("synced", flush_messages="1")
    await node_call.appear(7)
    await node_call.place("synced", (node_call.node.config.id, 7))

    def fails(*_: object) -> None:
        raise OSError(errno.EIO, "no disk")

    monkeypatch.setattr(what, fails)
    answer = await node_call.produce("synced", node_call.batch(b"a"))
    assert answer.error_code is ErrorCode.kafka_storage_error
    reason = node_call.node.storage_failure.reason
    assert ": no disk: this broker stops" in reason
    assert reason.endswith(why)


async def test_an_unknown_id_is_returned(node_call: Any) -> None:
    build = node_call.request(KEY, 13)
    data = (build.PartitionProduceData(index=0, records=node_call.batch(b"a")),)
    topics = (build.TopicProduceData(topic_id=UUID(int=9), partition_data=data),)
    answer = await node_call.ask(build.ProduceRequest(acks=1, timeout=1, topic_data=topics))
    assert answer.responses[0].topic_id == UUID(int=9)
    code = answer.responses[0].partition_responses[0].error_code
    assert code is ErrorCode.unknown_topic_id


async def test_records_truncated_during_the_wait_are_not_acknowledged(
    node_call: Any,
) -> None:
    """By then the offset is committed again, with another leader's record."""
    await node_call.create("u", 2)
    slow, cut = (node_call.node.partitions.find("u", index) for index in (0, 1))
    for broker in (2, 3):
        await node_call.appear(broker)
    for index in (0, 1):
        await node_call.place("u", (1, 2, 3), isr=(1, 2), index=index)
    build = node_call.request(KEY, 9)
    data = tuple(
        build.PartitionProduceData(index=index, records=node_call.batch(b"mine"))
        for index in (0, 1)
    )
    topics = (build.TopicProduceData(name="u", partition_data=data),)
    request = build.ProduceRequest(
        acks=-1, timeout=30_000, topic_data=topics, transactional_id=None
    )
    producing = asyncio.create_task(node_call.ask(request))
    while slow.log.end_offset < 1:
        await asyncio.sleep(0)
    await node_call.place("u", (1, 2, 3), leader=2, isr=(2, 3), index=1)
    cut.truncate_to(0, 0)
    theirs = node_call.batch(b"theirs")
    headers = list(iterate_headers(theirs))
    headers[0].leader_epoch = cut.leader_epoch
    cut.append_fetched(theirs, headers, leader_high_watermark=1, leader_log_start=0, now_ms=0)
    await node_call.place("u", (1, 2, 3), isr=(1, 2), index=1)
    assert cut.high_watermark == 1
    slow.read_for_replica(
        FetchingReplica(2, 1),
        1,
        start_offset=0,
        max_bytes=1,
        min_one_batch=True,
        leader_epoch=slow.leader_epoch,
    )
    answers = (await asyncio.wait_for(producing, 20)).responses[0].partition_responses
    assert [each.error_code for each in answers] == [
        ErrorCode.none, ErrorCode.not_leader_or_follower,
    ]  # fmt: skip


@pytest.mark.parametrize("version", [9, 13])
async def test_a_partition_named_twice_is_appended_once(node_call: Any, version: int) -> None:
    build = node_call.request(KEY, version)
    name = {"topic_id": node_call.topic_id("t")} if version >= 13 else {"name": "t"}
    batches = [node_call.batch(*values) for values in ((b"1",), (b"2", b"2"), (b"3", b"3", b"3"))]
    data = [build.PartitionProduceData(index=0, records=batch) for batch in batches]
    for topics in (
        (build.TopicProduceData(**name, partition_data=tuple(data)),),
        tuple(build.TopicProduceData(**name, partition_data=(each,)) for each in data),
    ):
        log = node_call.node.partitions.find("t", 0).log
        before = log.end_offset
        answer = await node_call.ask(
            build.ProduceRequest(acks=-1, timeout=30_000, topic_data=topics)
        )
        (topic,) = answer.responses
        (partition,) = topic.partition_responses
        assert (partition.error_code, partition.base_offset) == (ErrorCode.none, before)
        assert log.end_offset == before + 3, "the last batch counts"


@pytest.mark.parametrize(
    "topic", ["__consumer_offsets", "__transaction_state", "__share_group_state"]
)
async def test_clients_cannot_write_internal_topics(node_call: Any, topic: str) -> None:
    await node_call.create(topic)
    answer = await node_call.produce(topic, node_call.batch(b"forged"))
    assert (answer.error_code, answer.base_offset) == (ErrorCode.invalid_topic_exception, -1)
    assert node_call.node.partitions.find(topic, 0).log.end_offset == 0


async def test_a_long_batch_is_checked_in_a_thread_and_appended(
    node_call: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    right, ran = node_call.node.cpu_thread.run, []

    async def run(work: Any) -> Any:
        ran.append(work.func.__name__)
        return await right(work)

    monkeypatch.setattr(node_call.node.cpu_thread, "run", run)
    long = build_batch([Record(0, 1, b"k", b"")] * (ON_LOOP.records + 1))
    assert len(long) < 1 << 20
    answer = await node_call.produce("t", long)
    assert (answer.error_code, answer.base_offset, ran) == (ErrorCode.none, 0, ["check"])
    answer = await node_call.produce("t", node_call.batch(b"a"))
    assert (answer.base_offset, ran) == (ON_LOOP.records + 1, ["check"])


async def test_a_large_batch_is_written_in_steps(
    node_call: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    await node_call.create("large", max_message_bytes=str(20 << 20))
    sizes = sizes_written(monkeypatch)
    value = b"v" * (1 << 20)
    batch = build_batch([Record(0, 1, None, value)] * 9)
    answer = await node_call.produce("large", batch)
    assert (answer.error_code, answer.base_offset) == (ErrorCode.none, 0)
    assert max(sizes) <= STEP_BYTES
    log = node_call.node.partitions.find("large", 0).log
    stored = log.read(0, max_bytes=20 << 20).read()
    assert [record.value for record in iterate_records(stored)] == [value] * 9


async def test_others_have_their_turn_between_many_batches(node_call: Any) -> None:
    await node_call.create("many", 30)
    build = node_call.request(KEY, 9)
    batch = build_batch([Record(0, 1, None, b"v" * 1_000_000)])
    data = tuple(build.PartitionProduceData(index=index, records=batch) for index in range(30))
    topics = (build.TopicProduceData(name="many", partition_data=data),)
    request = build.ProduceRequest(
        acks=-1, timeout=30_000, topic_data=topics, transactional_id=None
    )
    answer, turns = await turns_of_others(node_call.ask(request))
    answers = answer.responses[0].partition_responses
    assert [each.error_code for each in answers] == [ErrorCode.none] * 30
    assert turns >= 30_000_000 // MAX_APPENDED_BYTES


async def test_a_leader_that_is_deposed_during_a_long_check_appends_nothing(
    node_call: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    partition = node_call.node.partitions.find("t", 0)

    async def run(work: Any) -> Any:
        checked = work()
        partition._role.leader = None
        return checked

    monkeypatch.setattr(node_call.node.cpu_thread, "run", run)
    answer = await node_call.produce("t", build_batch([Record(0, 1, b"k", b"")] * 100_001))
    assert answer.error_code is ErrorCode.not_leader_or_follower
    assert partition.log.end_offset == 0


@pytest.mark.parametrize("version", [9, 13])
async def test_a_batch_that_came_before_its_partition_comes_first(
    node_call: Any, version: int
) -> None:
    """Clients may learn of the leader from another broker, before the leader has the partition."""

    def sent(sequence: int) -> bytes:
        batch: bytes = node_call.batch(
            b"a", producer_id=9, producer_epoch=0, base_sequence=sequence
        )
        return batch

    partitions = node_call.node.partitions
    partition = partitions.find("t", 0)
    partitions.remove(partition)
    early = await node_call.produce("t", sent(0), version=version)
    assert early.error_code is ErrorCode.not_leader_or_follower
    partitions.add(partition)
    later = await node_call.produce("t", sent(1), version=version)
    assert later.error_code is ErrorCode.not_leader_or_follower
    for sequence in (0, 1):
        answer = await node_call.produce("t", sent(sequence), version=version)
        assert (answer.error_code, answer.base_offset) == (ErrorCode.none, sequence)
