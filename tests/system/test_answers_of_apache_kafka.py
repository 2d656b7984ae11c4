"""The same requests to Ottla and to Apache Kafka: the answers must be the same."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import pytest
from components.apache_kafka import ApacheKafka
from confluent_kafka.admin import AdminClient, NewTopic
from tests.system import crafted_batches
from tests.system.wire import Wire

from components import fixture
from ottla.protocol.errors import ErrorCode
from ottla.records.header import HEADER_BYTES, read_header
from ottla.testing import BrokerProcess

kafka_jars, apache_kafka = fixture.kafka_jars, fixture.apache_kafka
pytestmark = [pytest.mark.kafka, pytest.mark.timeout(400)]

PRODUCE, FETCH, LIST_OFFSETS, METADATA = 0, 1, 2, 3
NOT_YET = (ErrorCode.unknown_topic_or_partition, ErrorCode.not_leader_or_follower)
WAIT_S = 30


class Asked:
    """One broker, and short questions to it."""

    def __init__(self, bootstrap: str, admin: AdminClient) -> None:
        self.wire = Wire(bootstrap)
        self.admin = admin

    def create(self, partitions: int, settings: Mapping[str, str] | None = None) -> str:
        name = f"t-{uuid.uuid4().hex[:10]}"
        topic = NewTopic(name, partitions, 1, config=dict(settings or {}))
        self.admin.create_topics([topic])[name].result(WAIT_S)
        return name

    def produce(self, topic: str, index: int, batch: bytes) -> Any:
        """The partition's answer; a partition that is only just made is asked again."""
        build = self.wire.request(PRODUCE, 9)
        data = (build.PartitionProduceData(index=index, records=batch),)
        topics = (build.TopicProduceData(name=topic, partition_data=data),)
        request = build.ProduceRequest(acks=-1, timeout=30_000, topic_data=topics)
        until = time.monotonic() + WAIT_S
        while True:
            (found,) = self.wire.ask(request).responses[0].partition_responses
            if found.error_code not in NOT_YET or time.monotonic() > until:
                return found
            time.sleep(0.05)

    def offset(self, topic: str, index: int, timestamp: int) -> tuple[Any, ...]:
        """Error, offset, timestamp and leader epoch that ListOffsets answers."""
        build = self.wire.request(LIST_OFFSETS, 8)
        wanted = (
            build.ListOffsetsPartition(
                partition_index=index, current_leader_epoch=-1, timestamp=timestamp
            ),
        )
        topics = (build.ListOffsetsTopic(name=topic, partitions=wanted),)
        request = build.ListOffsetsRequest(replica_id=-1, isolation_level=0, topics=topics)
        (found,) = self.wire.ask(request).topics[0].partitions
        return found.error_code, found.offset, found.timestamp, found.leader_epoch

    def stored(self, topic: str, index: int) -> bytes:
        """The first batch of a partition, as a consumer gets it."""
        build = self.wire.request(FETCH, 11)
        wanted = (
            build.FetchPartition(partition=index, fetch_offset=0, partition_max_bytes=10_000_000),
        )
        topics = (build.FetchTopic(topic=topic, partitions=wanted),)
        request = build.FetchRequest(max_wait=1_000, min_bytes=1, session_epoch=-1, topics=topics)
        (found,) = self.wire.ask(request).responses[0].partitions
        return bytes(found.records)


@pytest.fixture(scope="module")
def admins(broker: BrokerProcess, apache_kafka: ApacheKafka) -> dict[str, AdminClient]:
    """Clients of Ottla and of Apache Kafka, by address."""
    addresses = (broker.bootstrap, apache_kafka.address)
    return {each: AdminClient({"bootstrap.servers": each}) for each in addresses}


@pytest.fixture
def both(admins: dict[str, AdminClient]) -> Iterator[tuple[Asked, Asked]]:
    """Ottla and Apache Kafka."""
    ours, kafkas = (Asked(address, admin) for address, admin in admins.items())
    yield ours, kafkas
    ours.wire.close()
    kafkas.wire.close()


def _outcome(asked: Asked, topic: str, index: int, batch: bytes) -> tuple[Any, ...]:
    answer = asked.produce(topic, index, batch)
    found: list[Any] = [answer.error_code]
    found.append([each.batch_index for each in answer.record_errors])
    found += [asked.offset(topic, index, at) for at in (-1, -2)]
    if answer.log_append_time >= 0:  # its time differs
        return tuple(found)
    found += [asked.offset(topic, index, at) for at in (-3, crafted_batches.TIME_MS + 9_000)]
    if answer.error_code is ErrorCode.none:
        stored = asked.stored(topic, index)
        header = read_header(stored)
        header.leader_epoch = 0
        if header.compression == batch[22] & 7:
            found.append((header, stored[HEADER_BYTES:]))
        else:
            found.append((header.compression, header.max_timestamp, header.count))
    return tuple(found)


SETTINGS: tuple[dict[str, str], ...] = (
    {},
    {"cleanup.policy": "compact"},
    {"compression.type": "uncompressed", "max.message.bytes": "14000"},
    {"compression.type": "zstd"},
    {"message.timestamp.type": "LogAppendTime"},
    {"message.timestamp.before.max.ms": "1000"},
)


@pytest.mark.parametrize("settings", SETTINGS, ids=lambda each: "-".join(each.values()) or "plain")
@pytest.mark.parametrize("codec", range(5))
def test_batches_that_no_good_producer_sends(
    both: tuple[Asked, Asked], codec: int, settings: dict[str, str]
) -> None:
    cases = crafted_batches.crafted(codec)
    if "compression.type" in settings:
        # Kafka then writes every record again, with the batch's time; Ottla keeps the records'.
        del cases["log append time"]
    topics = [asked.create(len(cases), settings) for asked in both]
    different = {}
    for index, (name, batch) in enumerate(cases.items()):
        ours, kafkas = (
            _outcome(asked, topic, index, batch) for asked, topic in zip(both, topics, strict=True)
        )
        refused = ours[0] is ErrorCode.invalid_record
        if name in crafted_batches.UNREADABLE:
            refused = refused or ours[0] is ErrorCode.message_too_large
            fits = refused
        elif name in crafted_batches.BROKEN and kafkas[0] is ErrorCode.unknown_server_error:
            fits = refused
        else:
            fits = ours == kafkas
        if not fits:
            different[name] = (ours, kafkas)
    assert not different, "\n".join(f"{name}: {found}" for name, found in different.items())


NO_ID = uuid.UUID(int=0)
MISSING_ID = uuid.UUID(int=99)
TOPIC, BROKER = 2, 4
SET, DELETE, APPEND = 0, 1, 2


def _metadata_id(asked: Asked, topic: str) -> uuid.UUID:
    """The topic's id, once its partition has a leader that serves."""
    asked.produce(topic, 0, crafted_batches.batch(0, 1))
    build = asked.wire.request(METADATA, 12)
    until = time.monotonic() + WAIT_S
    while True:
        topics = (build.MetadataRequestTopic(name=topic, topic_id=NO_ID),)
        answer = asked.wire.ask(build.MetadataRequest(topics=topics))
        (found,) = answer.topics
        if found.error_code is ErrorCode.none and len(found.partitions):
            return uuid.UUID(int=found.topic_id.int)
        assert time.monotonic() < until, found
        time.sleep(0.05)


def _alter_configs(
    asked: Asked, kind: int, name: str, configs: list[tuple[str, int, str | None]]
) -> Any:
    build = asked.wire.request(44, 1)
    resource = build.AlterConfigsResource(
        resource_type=kind,
        resource_name=name,
        configs=tuple(
            build.AlterableConfig(name=each, config_operation=operation, value=value)
            for each, operation, value in configs
        ),
    )
    request = build.IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False)
    (found,) = asked.wire.ask(request).responses
    return found.error_code


def replica_fetchers(asked: Asked, name: str) -> list[Any]:
    """Changes by more and by less than half or double of the present number."""
    answers = []
    for value in ("3", "2", "4", "1", "9", "2", None):
        build = asked.wire.request(44, 1)
        config = build.AlterableConfig(
            name="num.replica.fetchers",
            config_operation=DELETE if value is None else SET,
            value=value,
        )
        resource = build.AlterConfigsResource(
            resource_type=BROKER, resource_name=name, configs=(config,)
        )
        request = build.IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False)
        (found,) = asked.wire.ask(request).responses
        answers.append((found.error_code, found.error_message))
        if found.error_code is ErrorCode.none and value is not None:
            _await_broker_setting(asked, "num.replica.fetchers", value)
    return answers


def _await_broker_setting(asked: Asked, name: str, value: str) -> None:
    build = asked.wire.request(32, 4)
    resource = build.DescribeConfigsResource(
        resource_type=BROKER, resource_name="1", configuration_keys=(name,)
    )
    until = time.monotonic() + WAIT_S
    while True:
        answer = asked.wire.ask(build.DescribeConfigsRequest(resources=(resource,)))
        found = [each.value for each in answer.results[0].configs]
        if found == [value]:
            return
        assert time.monotonic() < until, found
        time.sleep(0.05)


def unknown_broker_setting(asked: Asked, name: str) -> Any:
    setting = f"no.such.setting.{name or 'all'}"
    outcome = [_alter_configs(asked, BROKER, name, [(setting, SET, "1")])]
    build = asked.wire.request(32, 4)
    until = time.monotonic() + WAIT_S
    while True:
        resource = build.DescribeConfigsResource(
            resource_type=BROKER, resource_name=name, configuration_keys=(setting,)
        )
        answer = asked.wire.ask(
            build.DescribeConfigsRequest(resources=(resource,), include_synonyms=True)
        )
        found = answer.results[0].configs
        if found or time.monotonic() > until:
            break
        time.sleep(0.05)
    outcome += [
        (
            (each.name, each.value, each.read_only, each.config_source, each.is_sensitive),
            (each.config_type, [(one.name, one.value, one.source) for one in each.synonyms]),
        )
        for each in found
    ]
    return [*outcome, _alter_configs(asked, BROKER, name, [(setting, DELETE, None)])]


def stored_cleanup_policy(asked: Asked, value: str) -> Any:
    topic = asked.create(1)
    outcome = _alter_configs(asked, TOPIC, topic, [("cleanup.policy", SET, value)])
    build = asked.wire.request(32, 4)
    resource = build.DescribeConfigsResource(
        resource_type=TOPIC, resource_name=topic, configuration_keys=("cleanup.policy",)
    )
    until = time.monotonic() + 5
    while True:
        answer = asked.wire.ask(build.DescribeConfigsRequest(resources=(resource,)))
        (found,) = answer.results[0].configs
        if outcome is not ErrorCode.none or found.config_source == 1 or time.monotonic() > until:
            return outcome, found.value
        time.sleep(0.05)


def _init_producer_id(asked: Asked, producer_id: int, epoch: int, version: int = 4) -> Any:
    build = asked.wire.request(22, version)
    request = build.InitProducerIdRequest(
        transactional_id=None,
        transaction_timeout=60_000,
        producer_id=producer_id,
        producer_epoch=epoch,
    )
    until = time.monotonic() + WAIT_S
    while True:
        answer = asked.wire.ask(request)
        loading = answer.error_code is ErrorCode.coordinator_load_in_progress
        if not loading or time.monotonic() > until:
            return answer.error_code, answer.producer_id >= 0, answer.producer_epoch
        time.sleep(0.05)


def _describe_producers(asked: Asked, name: str, index: int) -> Any:
    build = asked.wire.request(61, 0)
    topics = (build.TopicRequest(name=name, partition_indexes=(index,)),)
    (found,) = asked.wire.ask(build.DescribeProducersRequest(topics=topics)).topics[0].partitions
    return found.error_code


def _delete_topics(asked: Asked, *named: tuple[str | None, uuid.UUID]) -> Any:
    build = asked.wire.request(20, 6)
    topics = tuple(build.DeleteTopicState(name=name, topic_id=topic_id) for name, topic_id in named)
    answer = asked.wire.ask(build.DeleteTopicsRequest(topics=topics, timeout=30_000))
    return sorted(
        (each.error_code, each.name is not None, each.topic_id != NO_ID)
        for each in answer.responses
    )


def _fetch(
    asked: Asked, session: tuple[int, int], topics: dict[uuid.UUID, int], forget: Any = ()
) -> Any:
    """The error, the session's id, and each partition's error code by topic; a topic that this
    request does not name has its place in the response for a name."""
    build = asked.wire.request(FETCH, 13)
    wanted = tuple(
        build.FetchTopic(
            topic_id=topic_id,
            partitions=(
                build.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1_000_000),
            ),
        )
        for topic_id in topics
    )
    gone = tuple(build.ForgottenTopic(topic_id=each, partitions=(0,)) for each in forget)
    request = build.FetchRequest(
        max_wait=300,
        min_bytes=1,
        session_id=session[0],
        session_epoch=session[1],
        topics=wanted,
        forgotten_topics_data=gone,
    )
    answer = asked.wire.ask(request)
    found = {
        topics.get(uuid.UUID(int=topic.topic_id.int), f"number {number}"): each.error_code
        for number, topic in enumerate(answer.responses)
        for each in topic.partitions
    }
    return answer.error_code, answer.session_id, found


def removed_from_a_session(asked: Asked, again: bool) -> list[Any]:
    kept, gone = asked.create(1), asked.create(1)
    ids = {_metadata_id(asked, kept): 0, _metadata_id(asked, gone): 1}
    code, session, found = _fetch(asked, (0, 0), ids)
    outcome = [code, session != 0, found]
    asked.admin.delete_topics([gone])[gone].result(WAIT_S)
    _until_gone(asked, gone)
    if again:
        asked.admin.create_topics([NewTopic(gone, 1, 1)])[gone].result(WAIT_S)
        _metadata_id(asked, gone)
    for epoch in (1, 2):
        code, _, found = _fetch(asked, (session, epoch), {})
        outcome += [code, sorted(found.values())]
    return outcome


def _until_gone(asked: Asked, topic: str) -> None:
    build = asked.wire.request(METADATA, 12)
    topics = (build.MetadataRequestTopic(name=topic, topic_id=NO_ID),)
    request = build.MetadataRequest(topics=topics, allow_auto_topic_creation=False)
    until = time.monotonic() + WAIT_S
    while True:
        (found,) = asked.wire.ask(request).topics
        if found.error_code is ErrorCode.unknown_topic_or_partition:
            return
        assert time.monotonic() < until
        time.sleep(0.05)


def empty_session(asked: Asked) -> Any:
    code, session, found = _fetch(asked, (0, 0), {})
    return code, session != 0, found


def forgotten_session(asked: Asked) -> Any:
    """All partitions are forgotten, and then another is asked for in the same session."""
    topic_id = _metadata_id(asked, asked.create(1))
    other = _metadata_id(asked, asked.create(1))
    _, session, _ = _fetch(asked, (0, 0), {topic_id: 0})
    code, same, found = _fetch(asked, (session, 1), {}, [topic_id])
    code2, third, found2 = _fetch(asked, (session, 2), {other: 1})
    return code, same == session, found, code2, third == session, found2


def named_by_name_and_id(asked: Asked) -> Any:
    name = asked.create(1)
    topic_id = _metadata_id(asked, name)
    first = _delete_topics(asked, (name, NO_ID), (None, topic_id))
    return first, _delete_topics(asked, (name, NO_ID))


def deleted_to_its_end(asked: Asked) -> Any:
    topic = asked.create(1)
    asked.produce(topic, 0, crafted_batches.batch(0, 10))
    build = asked.wire.request(21, 2)
    partition = build.DeleteRecordsPartition(partition_index=0, offset=-1)
    topics = (build.DeleteRecordsTopic(name=topic, partitions=(partition,)),)
    answer = asked.wire.ask(build.DeleteRecordsRequest(topics=topics, timeout=30_000))
    # Not -3: Kafka finds the record there, though it is below the log's start.
    return answer.topics[0].partitions[0].low_watermark, [
        asked.offset(topic, 0, at) for at in (-1, -2, -4)
    ]


def internal_topic(asked: Asked) -> Any:
    build = asked.wire.request(10, 4)
    until = time.monotonic() + WAIT_S
    while True:
        answer = asked.wire.ask(build.FindCoordinatorRequest(key_type=0, coordinator_keys=("g",)))
        if answer.coordinators[0].error_code is ErrorCode.none:
            break
        assert time.monotonic() < until
        time.sleep(0.1)
    produced = asked.produce("__consumer_offsets", 0, crafted_batches.batch(0, 1))
    build = asked.wire.request(21, 2)
    partition = build.DeleteRecordsPartition(partition_index=0, offset=-1)
    topics = (build.DeleteRecordsTopic(name="__consumer_offsets", partitions=(partition,)),)
    deleted = asked.wire.ask(build.DeleteRecordsRequest(topics=topics, timeout=30_000))
    return produced.error_code, deleted.topics[0].partitions[0].error_code


def named_twice(asked: Asked) -> Any:
    topic = asked.create(2)
    asked.produce(topic, 0, crafted_batches.batch(0, 1))
    asked.produce(topic, 1, crafted_batches.batch(0, 1))
    build = asked.wire.request(PRODUCE, 9)
    data = [
        build.PartitionProduceData(index=index, records=crafted_batches.batch(0, count))
        for index, count in ((0, 1), (1, 2), (0, 3), (1, 4))
    ]
    topics = (
        build.TopicProduceData(name=topic, partition_data=tuple(data[:3])),
        build.TopicProduceData(name=topic, partition_data=(data[3],)),
    )
    answer = asked.wire.ask(build.ProduceRequest(acks=-1, timeout=30_000, topic_data=topics))
    return [
        sorted(
            (each.index, each.error_code, each.base_offset) for each in found.partition_responses
        )
        for found in answer.responses
    ], [asked.offset(topic, index, -1) for index in (0, 1)]


QUESTIONS: dict[str, Callable[[Asked], Any]] = {
    "Produce that names a partition twice": named_twice,
    "Produce and DeleteRecords of an internal topic": internal_topic,
    "ListOffsets of a log whose records are all deleted": deleted_to_its_end,
    "Fetch of a removed topic in a session": lambda asked: removed_from_a_session(asked, False),
    "Fetch of a topic made again in a session": lambda asked: removed_from_a_session(asked, True),
    "Fetch for a session of nothing": empty_session,
    "Fetch in a session that forgot everything": forgotten_session,
    "DeleteTopics by name and id": named_by_name_and_id,
    "replica fetchers of all brokers": lambda asked: replica_fetchers(asked, ""),
    "replica fetchers of one broker": lambda asked: replica_fetchers(asked, "1"),
    "unknown broker setting": lambda asked: unknown_broker_setting(asked, ""),
    "unknown setting of one broker": lambda asked: unknown_broker_setting(asked, "1"),
    "bad setting of an unknown topic": lambda asked: _alter_configs(
        asked, TOPIC, "no-such-topic", [("retention.ms", SET, "soon")]
    ),
    "unknown setting of an unknown topic": lambda asked: _alter_configs(
        asked, TOPIC, "no-such-topic", [("no.such.setting", SET, "1")]
    ),
    "good setting of an unknown topic": lambda asked: _alter_configs(
        asked, TOPIC, "no-such-topic", [("retention.ms", SET, "1000")]
    ),
    "no value for an unknown topic": lambda asked: _alter_configs(
        asked, TOPIC, "no-such-topic", [("retention.ms", SET, None)]
    ),
    "the same setting twice of an unknown topic": lambda asked: _alter_configs(
        asked, TOPIC, "no-such-topic", [("retention.ms", SET, "1"), ("retention.ms", SET, "2")]
    ),
    "append to no list of an unknown topic": lambda asked: _alter_configs(
        asked, TOPIC, "no-such-topic", [("retention.ms", APPEND, "1")]
    ),
    "bad setting of an invalid topic": lambda asked: _alter_configs(
        asked, TOPIC, "no such topic", [("retention.ms", SET, "soon")]
    ),
    **{
        f"cleanup.policy={value}": partial(stored_cleanup_policy, value=value)
        for value in ("compact,compact", "compact,delete", "", "compact,", "delete,delete,compact")
    },
    "cleanup.policy appended again": lambda asked: _alter_configs(
        asked, TOPIC, asked.create(1), [("cleanup.policy", APPEND, "delete")]
    ),
    **{
        f"InitProducerId {version} with {given}": partial(
            _init_producer_id, producer_id=given[0], epoch=given[1], version=version
        )
        for given in ((-1, -1), (5, -1), (-1, 5), (5, 5), (-1, 0), (0, -1), (-2, -1), (-1, -2))
        for version in (3, 4)
    },
    "DescribeProducers of an invalid topic": lambda asked: _describe_producers(
        asked, "no such topic", 0
    ),
    "DescribeProducers of an unknown topic": lambda asked: _describe_producers(
        asked, "no-such-topic", 0
    ),
    "DescribeProducers of an unknown partition": lambda asked: _describe_producers(
        asked, asked.create(1), 7
    ),
    "DescribeProducers of a negative partition": lambda asked: _describe_producers(
        asked, asked.create(1), -1
    ),
}


@pytest.mark.parametrize("question", QUESTIONS)
def test_the_same_answer(both: tuple[Asked, Asked], question: str) -> None:
    ours, kafkas = (QUESTIONS[question](asked) for asked in both)
    assert ours == kafkas
