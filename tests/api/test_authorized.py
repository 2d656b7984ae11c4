"""What a client without permission gets, by request type, on a node with an authorizer."""

import asyncio
import json
from typing import Any, get_args, get_origin
from uuid import UUID

import pytest

from ottla.api.authorized import FROM_BROKERS, RULES, authorized
from ottla.api.authorized_groups import group_history, streams_group_describe
from ottla.api.table import HANDLERS
from ottla.controller.image import (
    ClusterImage,
    PartitionsChanged,
    PartitionState,
    TopicCreated,
    TopicImage,
)
from ottla.network.client_session import ClientSession
from ottla.network.handlers import EndConnectionError
from ottla.network.request_context import RequestContext
from ottla.protocol.access import CLUSTER_NAME, Operation, Resource
from ottla.protocol.errors import ErrorCode
from ottla.protocol.frames import (
    read_request_body,
    read_request_header,
    read_response,
    write_request,
    write_response,
)
from ottla.protocol.messages import message_class, messages_of
from ottla.protocol.versions import APIS, ELECTIONS, GROUP_HISTORY, JOURNEY, KEY_OFFSETS, SEGMENTS
from ottla.security.acl import Entry, Pattern, PatternType, Permission
from ottla.security.principal import Principal

PRODUCE, FETCH, METADATA, LIST_GROUPS, INIT_PRODUCER_ID, ADD_PARTITIONS = 0, 1, 3, 16, 22, 24
DELETE_TOPICS, OFFSET_FOR_LEADER_EPOCH, OFFSET_DELETE = 20, 23, 47
ALICE = Principal("User", "alice")
TOPIC_DENIED = ErrorCode.topic_authorization_failed
GROUP_DENIED = ErrorCode.group_authorization_failed
CLUSTER_DENIED = ErrorCode.cluster_authorization_failed
TRANSACTION_DENIED = ErrorCode.transactional_id_authorization_failed
SECURITY_SETTINGS = {
    "authorizer_class_name": "kafka.security.authorizer.AclAuthorizer",
    "super_users": "User:root",
}


class Guarded:
    """Requests of a principal to a node with an authorizer."""

    def __init__(self, call: Any) -> None:
        self.call = call
        self.handlers = authorized(HANDLERS)
        self.authorization = call.node.authorization

    def let(
        self,
        operation: Operation,
        resource: Resource,
        name: str,
        permission: Permission = Permission.ALLOW,
    ) -> None:
        """From now on alice may do exactly this with that resource."""
        pattern = Pattern(resource, name, PatternType.LITERAL)
        entry = Entry(str(ALICE), "*", operation, permission)
        self.authorization.authorizer.set_entries(pattern, [entry])

    async def ask(self, request: Any, principal: Principal = ALICE) -> Any:
        frame = memoryview(write_request(request, 5, "tests"))[4:]
        header = read_request_header(frame)
        handler = self.handlers.find(header.key)
        assert handler is not None
        session = ClientSession(1, "127.0.0.1", "PLAINTEXT", "127.0.0.1", 9092, principal)
        messages = messages_of(header.key, header.version)
        context: Any = RequestContext(self.call.node, session, header.version, "tests", messages)
        answer = await handler.answer(read_request_body(header, frame), context)
        if answer is None:
            return None
        data = b"".join(bytes(part) for part in write_response(answer, header.correlation_id))
        return read_response(header.key, header.version, memoryview(data)[4:])[1]


@pytest.fixture
async def guarded(start_node: Any) -> Guarded:
    call = await start_node(**SECURITY_SETTINGS)
    await call.create("t", 1)
    await call.create("u", 1)
    return Guarded(call)


def test_every_request_type_has_a_rule() -> None:
    own = {ELECTIONS, GROUP_HISTORY, JOURNEY, KEY_OFFSETS, SEGMENTS}
    assert set(RULES) | set(FROM_BROKERS) >= {*APIS, *own}
    assert not set(RULES) & set(FROM_BROKERS)


def request_of(key: int, version: int) -> Any:
    """A request with one of everything."""
    build = messages_of(key, version, "request")

    def filled(cls: Any) -> Any:
        values: dict[str, Any] = {}
        for name, field in cls.__dataclass_fields__.items():
            if name.startswith("__"):
                continue
            array = next(
                (each for each in (field.type, *get_args(field.type)) if get_origin(each) is tuple),
                None,
            )
            if array is not None:
                inner = get_args(array)[0]
                if hasattr(inner, "__version__"):
                    values[name] = (filled(inner),)
                else:
                    is_text = field.metadata["kafka_type"] == "string"
                    values[name] = ("t",) if is_text else (0,)
            elif field.metadata.get("kafka_type") == "string":
                values[name] = "t"
        return getattr(build, cls.__name__)(**values)

    return filled(message_class(key, version, "request"))


def codes_in(response: Any) -> set[ErrorCode]:
    found: set[ErrorCode] = set()
    for name in response.__dataclass_fields__:
        value = getattr(response, name)
        if isinstance(value, ErrorCode):
            found.add(value)
        for each in value if isinstance(value, tuple) else ():
            if hasattr(each, "__dataclass_fields__"):
                found |= codes_in(each)
    return found


DENIED = {
    0: TRANSACTION_DENIED, 2: TOPIC_DENIED, 3: TOPIC_DENIED, 8: GROUP_DENIED, 9: GROUP_DENIED,
    10: GROUP_DENIED, 11: GROUP_DENIED, 12: GROUP_DENIED, 13: GROUP_DENIED, 14: GROUP_DENIED,
    15: GROUP_DENIED, 19: TOPIC_DENIED, 20: TOPIC_DENIED, 21: TOPIC_DENIED,
    22: TRANSACTION_DENIED, 23: TOPIC_DENIED, 25: TRANSACTION_DENIED, 26: TRANSACTION_DENIED,
    27: CLUSTER_DENIED, 28: TRANSACTION_DENIED, 29: CLUSTER_DENIED, 30: CLUSTER_DENIED,
    31: CLUSTER_DENIED, 32: CLUSTER_DENIED, 33: CLUSTER_DENIED, 34: CLUSTER_DENIED,
    35: CLUSTER_DENIED, 37: TOPIC_DENIED, 42: GROUP_DENIED, 43: CLUSTER_DENIED,
    44: CLUSTER_DENIED, 45: CLUSTER_DENIED, 46: CLUSTER_DENIED, 47: GROUP_DENIED,
    55: CLUSTER_DENIED, 57: CLUSTER_DENIED, 61: TOPIC_DENIED, 65: TRANSACTION_DENIED,
    68: GROUP_DENIED, 69: GROUP_DENIED, 74: CLUSTER_DENIED, 75: TOPIC_DENIED,
    76: GROUP_DENIED, 77: GROUP_DENIED, 88: GROUP_DENIED, 89: GROUP_DENIED, 90: GROUP_DENIED,
    91: GROUP_DENIED, 92: GROUP_DENIED, 93: GROUP_DENIED,
}  # fmt: skip
NAMED_ONLY = {3: 11, 0: 12, 20: 5, 8: 9, 9: 9}
"""The last version whose topics have names instead of ids."""
NO_CODE = {35: 2}
"""The last version without an error of its own: it is answered with nothing."""


def versions_of(key: int) -> list[tuple[int, int]]:
    api = APIS[key]
    first = max(api.min_version, 3 if key == 0 else 0)
    last = NAMED_ONLY.get(key, api.max_version)
    return [(key, version) for version in sorted({first, last}) if version > NO_CODE.get(key, -1)]


@pytest.mark.parametrize(
    ("key", "version"), [pair for key in sorted(DENIED) for pair in versions_of(key)]
)
async def test_a_client_without_permission_is_refused(
    guarded: Guarded, key: int, version: int
) -> None:
    request = request_of(key, version)
    if key == PRODUCE:
        request.acks = -1
    response = await guarded.ask(request)
    codes = codes_in(response)
    assert DENIED[key] in codes, codes
    assert codes <= {DENIED[key], ErrorCode.none}, codes


def produce(guarded: Guarded, *names: str, acks: int = -1) -> Any:
    build = messages_of(PRODUCE, 9, "request")
    return build.ProduceRequest(
        acks=acks,
        timeout=30_000,
        topic_data=tuple(
            build.TopicProduceData(
                name=name,
                partition_data=(
                    build.PartitionProduceData(index=0, records=guarded.call.batch(b"a")),
                ),
            )
            for name in names
        ),
    )


async def test_each_topic_of_a_produce_is_decided_alone(guarded: Guarded) -> None:
    guarded.let(Operation.WRITE, Resource.TOPIC, "t")
    response = await guarded.ask(produce(guarded, "u", "t", "v"))
    codes = {each.name: each.partition_responses[0].error_code for each in response.responses}
    assert codes == {"t": ErrorCode.none, "u": TOPIC_DENIED, "v": TOPIC_DENIED}
    assert guarded.call.node.partitions.get("u", 0).log.end_offset == 0
    assert guarded.call.node.partitions.get("t", 0).log.end_offset == 1


async def test_a_refused_produce_without_answer_ends_the_connection(guarded: Guarded) -> None:
    with pytest.raises(EndConnectionError, match="may not write"):
        await guarded.ask(produce(guarded, "t", acks=0))
    guarded.let(Operation.WRITE, Resource.TOPIC, "t")
    assert await guarded.ask(produce(guarded, "t", acks=0)) is None


async def test_a_super_user_may_do_everything(guarded: Guarded) -> None:
    root = Principal("User", "root")
    response = await guarded.ask(produce(guarded, "t"), root)
    assert codes_in(response) == {ErrorCode.none}


def fetch(version: int, session_id: int, epoch: int, *names: str) -> Any:
    build = messages_of(FETCH, version, "request")
    return build.FetchRequest(
        replica_id=-1,
        max_wait=0,
        min_bytes=1,
        max_bytes=1 << 20,
        session_id=session_id,
        session_epoch=epoch,
        topics=tuple(
            build.FetchTopic(
                topic=name,
                partitions=(
                    build.FetchPartition(
                        partition=0, fetch_offset=0, partition_max_bytes=1 << 20,
                        current_leader_epoch=-1, log_start_offset=-1,
                    ),
                ),
            )
            for name in names
        ),
        forgotten_topics_data=(),
    )  # fmt: skip


def fetched(response: Any) -> dict[str, tuple[ErrorCode, bool]]:
    """By topic: the code, and whether there are records."""
    return {
        each.topic: (each.partitions[0].error_code, bool(each.partitions[0].records))
        for each in response.responses
    }


async def test_permission_to_read_is_asked_at_each_fetch(guarded: Guarded) -> None:
    """Also in a session that began before the ACL was removed."""
    root = Principal("User", "root")
    await guarded.ask(produce(guarded, "t", "u"), root)
    guarded.let(Operation.READ, Resource.TOPIC, "t")
    first = await guarded.ask(fetch(11, 0, 0, "t", "u", "v"))
    assert fetched(first) == {
        "t": (ErrorCode.none, True),
        "u": (TOPIC_DENIED, False),
        "v": (TOPIC_DENIED, False),  # nobody learns that it does not exist
    }
    guarded.let(Operation.READ, Resource.TOPIC, "t", Permission.DENY)
    second = await guarded.ask(fetch(11, first.session_id, 1, "t"))
    assert fetched(second)["t"] == (TOPIC_DENIED, False)


def metadata(*names: str, version: int = 9, create: bool = False) -> Any:
    build = messages_of(METADATA, version, "request")
    topics = tuple(build.MetadataRequestTopic(name=name) for name in names)
    return build.MetadataRequest(
        topics=topics or None,
        allow_auto_topic_creation=create,
        include_topic_authorized_operations=True,
        include_cluster_authorized_operations=True,
    )


async def test_what_may_not_be_described_is_hidden(guarded: Guarded) -> None:
    guarded.let(Operation.READ, Resource.TOPIC, "t")
    response = await guarded.ask(metadata())
    assert [each.name for each in response.topics] == ["t"]
    assert response.brokers
    operations = response.topics[0].topic_authorized_operations
    assert operations == (1 << Operation.READ) | (1 << Operation.DESCRIBE)
    assert response.cluster_authorized_operations == 0
    named = await guarded.ask(metadata("u", "t", "none"))
    codes = {each.name: each.error_code for each in named.topics}
    assert codes == {"t": ErrorCode.none, "u": TOPIC_DENIED, "none": TOPIC_DENIED}
    everything = await guarded.ask(metadata(), Principal("User", "root"))
    assert {each.name for each in everything.topics} == {"t", "u"}
    assert everything.topics[0].topic_authorized_operations == 3576
    assert everything.cluster_authorized_operations == 8096


async def test_a_topic_is_made_only_by_who_may_create_it(guarded: Guarded) -> None:
    guarded.let(Operation.DESCRIBE, Resource.TOPIC, "new")
    response = await guarded.ask(metadata("new", create=True))
    assert [each.error_code for each in response.topics] == [TOPIC_DENIED]
    assert "new" not in guarded.call.node.image.topics
    guarded.let(Operation.CREATE, Resource.CLUSTER, CLUSTER_NAME)
    await guarded.ask(metadata("new", create=True))
    assert "new" in guarded.call.node.image.topics


def delete(*topics: Any) -> Any:
    build = messages_of(DELETE_TOPICS, 6, "request")
    wanted = tuple(
        build.DeleteTopicState(name=each)
        if isinstance(each, str)
        else build.DeleteTopicState(name=None, topic_id=each)
        for each in topics
    )
    return build.DeleteTopicsRequest(topics=wanted, timeout=5_000)


async def test_a_refused_id_has_a_name_for_who_may_describe_the_topic(guarded: Guarded) -> None:
    topics = guarded.call.node.image.topics
    guarded.let(Operation.DESCRIBE, Resource.TOPIC, "t")
    response = await guarded.ask(delete(topics["t"].topic_id, topics["u"].topic_id))
    assert {each.name for each in response.responses} == {"t", None}
    assert codes_in(response) == {TOPIC_DENIED}


async def test_a_topic_is_deleted_with_all_on_the_cluster(guarded: Guarded) -> None:
    guarded.let(Operation.ALTER, Resource.CLUSTER, CLUSTER_NAME)
    assert codes_in(await guarded.ask(delete("t"))) == {TOPIC_DENIED}
    guarded.let(Operation.ALL, Resource.CLUSTER, CLUSTER_NAME)
    assert codes_in(await guarded.ask(delete("t"))) == {ErrorCode.none}


async def test_the_end_of_an_epoch_is_told_with_cluster_action(guarded: Guarded) -> None:
    build = messages_of(OFFSET_FOR_LEADER_EPOCH, 4, "request")
    partition = build.OffsetForLeaderPartition(partition=0, current_leader_epoch=-1, leader_epoch=0)
    topic = build.OffsetForLeaderTopic(topic="t", partitions=(partition,))

    async def codes() -> set[ErrorCode]:
        request = build.OffsetForLeaderEpochRequest(replica_id=-1, topics=(topic,))
        return codes_in(await guarded.ask(request))

    assert await codes() == {TOPIC_DENIED}
    guarded.let(Operation.CLUSTER_ACTION, Resource.CLUSTER, CLUSTER_NAME)
    assert await codes() == {ErrorCode.none}


async def test_each_topic_of_an_offset_delete_is_decided_alone(guarded: Guarded) -> None:
    build = messages_of(OFFSET_DELETE, 0, "request")
    partition = build.OffsetDeleteRequestPartition(partition_index=0)
    topics = tuple(
        build.OffsetDeleteRequestTopic(name=name, partitions=(partition,)) for name in ("t", "u")
    )
    guarded.let(Operation.DELETE, Resource.GROUP, "g")
    response = await guarded.ask(build.OffsetDeleteRequest(group_id="g", topics=topics))
    assert {each.name for each in response.topics} == {"t", "u"}
    assert codes_in(response) == {TOPIC_DENIED, ErrorCode.none}


def init() -> Any:
    return messages_of(INIT_PRODUCER_ID, 4, "request").InitProducerIdRequest(
        transactional_id=None, transaction_timeout=1_000, producer_id=-1, producer_epoch=-1
    )


async def test_who_may_write_a_topic_may_be_idempotent(guarded: Guarded) -> None:
    assert (await guarded.ask(init())).error_code is CLUSTER_DENIED
    guarded.let(Operation.WRITE, Resource.TOPIC, "t")
    assert (await guarded.ask(init())).error_code is ErrorCode.none
    guarded.let(Operation.READ, Resource.TOPIC, "t")
    assert (await guarded.ask(init())).error_code is CLUSTER_DENIED
    guarded.let(Operation.IDEMPOTENT_WRITE, Resource.CLUSTER, CLUSTER_NAME)
    assert (await guarded.ask(init())).error_code is ErrorCode.none


async def test_partitions_are_added_to_a_transaction_all_or_none(guarded: Guarded) -> None:
    guarded.let(Operation.WRITE, Resource.TRANSACTIONAL_ID, "x")
    guarded.let(Operation.WRITE, Resource.TOPIC, "t")
    build = messages_of(ADD_PARTITIONS, 3, "request")
    response = await guarded.ask(
        build.AddPartitionsToTxnRequest(
            v3_and_below_transactional_id="x",
            v3_and_below_producer_id=1,
            v3_and_below_producer_epoch=0,
            v3_and_below_topics=tuple(
                build.AddPartitionsToTxnTopic(name=name, partitions=(0,)) for name in ("t", "u")
            ),
        )
    )
    codes = {
        each.name: each.results_by_partition[0].partition_error_code
        for each in response.results_by_topic_v3_and_below
    }
    assert codes == {"t": ErrorCode.operation_not_attempted, "u": TOPIC_DENIED}


async def test_denials_are_counted_and_logged_once_a_minute(
    guarded: Guarded, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(3):
        await guarded.ask(metadata("u"))
    lines = [line for line in caplog.messages if "User:alice lacks Describe on Topic 'u'" in line]
    assert len(lines) == 1
    assert guarded.authorization.denied[Operation.DESCRIBE, Resource.TOPIC] == 3


async def test_a_broker_of_the_cluster_is_asked_for_no_acl(guarded: Guarded) -> None:
    session = ClientSession(1, "127.0.0.1", "PLAINTEXT", "", 0)
    allows = guarded.authorization.allows
    asked = (Operation.CREATE, Resource.CLUSTER, CLUSTER_NAME)
    assert not allows(session, *asked)
    session.broker_id = 2
    assert allows(session, *asked)
    # Who has authenticated needs ClusterAction as well.
    session.principal = ALICE
    assert not allows(session, *asked)
    guarded.let(Operation.CLUSTER_ACTION, Resource.CLUSTER, CLUSTER_NAME)
    assert allows(session, *asked)


async def beat(guarded: Guarded, principal: Principal = ALICE, **fields: Any) -> Any:
    """A heartbeat of a consumer group's only member, which joins unless it says more; again until
    the coordinator is there."""
    build = messages_of(68, 1, "request")
    request = {
        "group_id": "g",
        "member_id": "m",
        "member_epoch": 0,
        "rebalance_timeout": 60_000,
        "topic_partitions": (),
    }
    while True:
        answer = await guarded.ask(
            build.ConsumerGroupHeartbeatRequest(**(request | fields)), principal
        )
        if answer.error_code is not ErrorCode.coordinator_load_in_progress:
            return answer
        await asyncio.sleep(0.01)


async def test_a_member_reads_only_topics_that_it_may_describe(guarded: Guarded) -> None:
    root = Principal("User", "root")
    find = messages_of(10, 3, "request").FindCoordinatorRequest(key="g")
    await guarded.ask(find, root)
    assert (await beat(guarded, subscribed_topic_names=("t",))).error_code is GROUP_DENIED
    guarded.let(Operation.READ, Resource.GROUP, "g")
    guarded.let(Operation.DESCRIBE, Resource.TOPIC, "t")
    assert (await beat(guarded, subscribed_topic_names=("t", "u"))).error_code is TOPIC_DENIED
    joined = await beat(guarded, subscribed_topic_regex="t|u|__.*")
    assert joined.error_code is ErrorCode.none
    told = joined
    while not told.assignment.topic_partitions:
        await asyncio.sleep(0.01)
        told = await beat(
            guarded, member_epoch=told.member_epoch, subscribed_topic_regex="t|u|__.*"
        )
    image = guarded.call.node.image
    assert [each.topic_id for each in told.assignment.topic_partitions] == [
        image.topic("t").topic_id
    ]


async def test_a_group_with_a_hidden_topic_is_not_described(guarded: Guarded) -> None:
    root = Principal("User", "root")
    find = messages_of(10, 3, "request").FindCoordinatorRequest(key="g")
    await guarded.ask(find, root)
    await beat(guarded, root, subscribed_topic_names=("t", "u"))
    guarded.let(Operation.DESCRIBE, Resource.GROUP, "g")
    guarded.let(Operation.DESCRIBE, Resource.TOPIC, "t")
    describe = messages_of(69, 1, "request").ConsumerGroupDescribeRequest(
        group_ids=("g", "h"), include_authorized_operations=True
    )
    found = {each.group_id: each for each in (await guarded.ask(describe)).groups}
    assert (found["g"].error_code, found["g"].members) == (TOPIC_DENIED, ())
    assert "not authorized to describe" in found["g"].error_message
    assert found["h"].error_code is GROUP_DENIED
    guarded.let(Operation.DESCRIBE, Resource.TOPIC, "u")
    (shown, _) = (await guarded.ask(describe)).groups
    assert (shown.error_code, len(shown.members)) == (ErrorCode.none, 1)
    assert shown.authorized_operations == 1 << Operation.DESCRIBE


async def test_share_groups_and_hidden_topics(guarded: Guarded) -> None:
    root = Principal("User", "root")
    find = messages_of(10, 3, "request").FindCoordinatorRequest(key="g")
    await guarded.ask(find, root)
    build = messages_of(76, 1, "request")

    async def beat(principal: Principal, *topics: str) -> Any:
        request = build.ShareGroupHeartbeatRequest(
            group_id="g", member_id="m", member_epoch=0, subscribed_topic_names=topics
        )
        while True:
            answer = await guarded.ask(request, principal)
            if answer.error_code is not ErrorCode.coordinator_load_in_progress:
                return answer
            await asyncio.sleep(0.01)

    assert (await beat(ALICE, "t")).error_code is GROUP_DENIED
    guarded.let(Operation.READ, Resource.GROUP, "g")
    guarded.let(Operation.DESCRIBE, Resource.TOPIC, "t")
    assert (await beat(ALICE, "t", "u")).error_code is TOPIC_DENIED
    assert (await beat(ALICE, "t")).error_code is ErrorCode.none
    describe = messages_of(77, 1, "request").ShareGroupDescribeRequest(
        group_ids=("g", "h"), include_authorized_operations=True
    )
    found = {each.group_id: each for each in (await guarded.ask(describe)).groups}
    assert (found["g"].error_code, len(found["g"].members)) == (ErrorCode.none, 1)
    assert found["h"].error_code is GROUP_DENIED


async def test_streams_groups_and_hidden_topics(guarded: Guarded) -> None:
    root = Principal("User", "root")
    await guarded.ask(messages_of(10, 3, "request").FindCoordinatorRequest(key="g"), root)
    build = messages_of(88, 0, "request")

    async def beat(*topics: str, changelog: str | None = None) -> Any:
        infos = () if changelog is None else (build.TopicInfo(name=changelog, topic_configs=()),)
        subtopology = build.Subtopology(
            subtopology_id="0",
            source_topics=topics,
            state_changelog_topics=infos,
            repartition_source_topics=(),
            copartition_groups=(),
        )
        request = build.StreamsGroupHeartbeatRequest(
            group_id="g",
            member_id="m",
            member_epoch=0,
            rebalance_timeout=1_000,
            topology=build.Topology(epoch=0, subtopologies=(subtopology,)),
            active_tasks=(),
            standby_tasks=(),
            warmup_tasks=(),
            process_id="p",
        )
        while True:
            answer = await guarded.ask(request, ALICE)
            if answer.error_code is not ErrorCode.coordinator_load_in_progress:
                return answer
            await asyncio.sleep(0.01)

    assert (await beat("t")).error_code is GROUP_DENIED
    guarded.let(Operation.READ, Resource.GROUP, "g")
    guarded.let(Operation.DESCRIBE, Resource.TOPIC, "t")
    assert (await beat("t", "u")).error_code is TOPIC_DENIED
    # Names that no topic can have are refused first.
    assert (await beat("t", "u v")).error_code is ErrorCode.streams_invalid_topology
    guarded.let(Operation.DESCRIBE, Resource.TOPIC, "c")
    (status, *others) = (await beat("t", changelog="c")).status
    told = next(each for each in (status, *others) if each.status_code == 3)
    assert told.status_detail == (
        "Internal topics are missing: c; Unauthorized to CREATE on topics c."
    )
    assert "c" not in guarded.call.node.image.topics
    describe = messages_of(89, 0, "request").StreamsGroupDescribeRequest(
        group_ids=("g", "h"), include_authorized_operations=True
    )
    found = {each.group_id: each for each in (await guarded.ask(describe)).groups}
    assert (found["g"].error_code, len(found["g"].members)) == (ErrorCode.none, 1)
    assert found["h"].error_code is GROUP_DENIED
    guarded.let(Operation.CREATE, Resource.CLUSTER, "kafka-cluster")
    assert (await beat("t", changelog="c")).error_code is ErrorCode.none
    while "c" not in guarded.call.node.image.topics:
        await asyncio.sleep(0.01)


async def test_a_streams_group_with_topics_that_the_client_may_not_describe(
    guarded: Guarded,
) -> None:
    root = Principal("User", "root")
    await guarded.ask(messages_of(10, 3, "request").FindCoordinatorRequest(key="g"), root)
    build = messages_of(88, 0, "request")
    subtopology = build.Subtopology(
        subtopology_id="0",
        source_topics=("t",),
        state_changelog_topics=(),
        repartition_source_topics=(),
        copartition_groups=(),
    )
    request = build.StreamsGroupHeartbeatRequest(
        group_id="g",
        member_id="m",
        member_epoch=0,
        rebalance_timeout=1_000,
        topology=build.Topology(epoch=0, subtopologies=(subtopology,)),
        process_id="p",
    )
    while True:
        answer = await guarded.ask(request, root)
        if answer.error_code is not ErrorCode.coordinator_load_in_progress:
            break
        await asyncio.sleep(0.01)
    assert answer.error_code is ErrorCode.none
    guarded.let(Operation.DESCRIBE, Resource.GROUP, "g")
    describe = messages_of(89, 0, "request").StreamsGroupDescribeRequest(group_ids=("g",))
    (group,) = (await guarded.ask(describe)).groups
    assert (group.error_code, group.members, group.topology) == (TOPIC_DENIED, (), None)
    assert "not authorized to describe" in group.error_message


def described_topology(*sinks: str) -> Any:
    """Reads `t`, writes to these, and has a global store of `u`."""
    build = messages_of(89, 1)

    def node(kind: int, *sources: str, sink: str | None = None) -> Any:
        return build.TopologyDescriptionNode(
            name="n",
            node_type=kind,
            source_topics=sources,
            sink_topic=sink,
            stores=(),
            successors=(),
        )

    nodes = (node(1, "t"), *(node(3, sink=sink) for sink in sinks))
    subtopology = build.TopologyDescriptionSubtopology(subtopology_id="0", nodes=nodes)
    store = build.TopologyDescriptionGlobalStore(source=node(1, "u"), processor=node(2))
    return build.TopologyDescription(subtopologies=(subtopology,), global_stores=(store,))


async def test_the_description_of_a_topology_names_no_hidden_topic(guarded: Guarded) -> None:
    build = messages_of(89, 1)

    async def answer(request: Any, context: Any) -> Any:
        group = build.DescribedGroup(
            error_code=ErrorCode.none,
            error_message=None,
            group_id="g",
            group_state="Stable",
            group_epoch=1,
            assignment_epoch=1,
            topology=None,
            members=(),
            authorized_operations=0,
            topology_description=described_topology("out"),
            topology_description_status=3,
        )
        return build.StreamsGroupDescribeResponse(groups=(group,))

    request = messages_of(89, 1, "request").StreamsGroupDescribeRequest(group_ids=("g",))
    session = ClientSession(1, "127.0.0.1", "PLAINTEXT", "127.0.0.1", 9092, ALICE)
    context: Any = RequestContext(guarded.call.node, session, 1, "tests", build)
    guarded.let(Operation.DESCRIBE, Resource.GROUP, "g")
    for topic in ("t", "u", "out"):
        (group,) = (await streams_group_describe(request, context, answer)).groups
        assert (group.topology_description, group.topology_description_status) == (None, 2)
        guarded.let(Operation.DESCRIBE, Resource.TOPIC, topic)
    (group,) = (await streams_group_describe(request, context, answer)).groups
    assert (group.topology_description, group.topology_description_status) == (
        described_topology("out"),
        3,
    )


async def ask_json(guarded: Guarded, key: int, principal: Principal, body: bytes) -> Any:
    """The answer to one of Ottla's own requests."""
    handler = guarded.handlers.find(key)
    assert handler is not None
    session = ClientSession(1, "127.0.0.1", "PLAINTEXT", "127.0.0.1", 9092, principal)
    messages = messages_of(3, 0)  # it has none of its own
    context: Any = RequestContext(guarded.call.node, session, 0, "tests", messages)
    return json.loads(await handler.answer(body, context))


async def test_the_history_of_a_group_needs_describe_on_it(guarded: Guarded) -> None:
    question = b'{"group_history":1,"group":"g"}'
    refused = await ask_json(guarded, GROUP_HISTORY, ALICE, question)
    assert refused["error"]["code"] == "not_authorized"
    assert "needs Describe on group g" in refused["error"]["message"]
    assert (await ask_json(guarded, GROUP_HISTORY, ALICE, b"[]"))["error"]["code"] == "bad_request"
    root = Principal("User", "root")
    assert (await ask_json(guarded, GROUP_HISTORY, root, question))["entries"] == []


async def test_the_history_of_a_group_names_no_hidden_topic(guarded: Guarded) -> None:
    def entry(kind: str, *topics: str) -> dict[str, Any]:
        return {
            "type": kind,
            "causes": [{"why": "topics_changed", "details": ["u: 1 to 2 partitions"]}],
            "moves": [{"topic": topic} for topic in topics],
            "is_complete": True,
        }

    async def answer(request: Any, context: Any) -> bytes:
        return json.dumps(
            {"entries": [entry("consumer", "t", "u"), entry("streams", "0")]}
        ).encode()

    async def ask() -> Any:
        session = ClientSession(1, "127.0.0.1", "PLAINTEXT", "127.0.0.1", 9092, ALICE)
        context: Any = RequestContext(guarded.call.node, session, 0, "tests", messages_of(3, 0))
        body = b'{"group_history":1,"group":"g"}'
        return json.loads(await group_history(body, context, answer))["entries"]

    guarded.let(Operation.DESCRIBE, Resource.GROUP, "g")
    guarded.let(Operation.DESCRIBE, Resource.TOPIC, "t")
    of_topics, of_tasks = await ask()
    assert (of_topics["moves"], of_topics["is_complete"]) == ([{"topic": "t"}], False)
    assert (of_tasks["moves"], of_tasks["is_complete"]) == ([{"topic": "0"}], True)
    assert of_topics["causes"] == of_tasks["causes"] == [{"why": "topics_changed"}]
    guarded.let(Operation.DESCRIBE, Resource.CLUSTER, CLUSTER_NAME)
    assert await ask() == [entry("consumer", "t", "u"), entry("streams", "0")]


async def test_the_offsets_of_a_key_need_read_on_the_topic(guarded: Guarded) -> None:
    fields = {"partition": 0, "key": "", "begin": 0, "end": 9, "from_end": True, "most": 1}
    question = json.dumps({"key_offsets": 1, "topic": "t", **fields}).encode()
    refused = await ask_json(guarded, KEY_OFFSETS, ALICE, question)
    assert refused["error"]["code"] == "not_authorized"
    assert "needs Read on topic t" in refused["error"]["message"]
    for body in (b"[]", b"{", b'{"topic": 5}'):
        answer = await ask_json(guarded, KEY_OFFSETS, ALICE, body)
        assert answer["error"]["code"] == "bad_request"
    guarded.let(Operation.READ, Resource.TOPIC, "t")
    assert (await ask_json(guarded, KEY_OFFSETS, ALICE, question))["offsets"] == []


async def test_the_segments_of_a_topic_need_describe_on_it(guarded: Guarded) -> None:
    question = b'{"segments":1,"topic":"t","partition":0}'
    refused = await ask_json(guarded, SEGMENTS, ALICE, question)
    assert "needs Describe on topic t" in refused["error"]["message"]
    guarded.let(Operation.DESCRIBE, Resource.TOPIC, "t")
    (segment,) = (await ask_json(guarded, SEGMENTS, ALICE, question))["listed"]
    assert (segment["base_offset"], segment["is_active"]) == (0, True)


async def test_elections_need_describe_on_the_cluster_and_on_their_topics(guarded: Guarded) -> None:
    elections = guarded.call.node.controller.elections
    for name in ("t", "hidden"):
        state = PartitionState(1, 5, (1,), (1,), 0)
        before, after = (
            TopicImage(name, UUID(int=9), (each,), {})
            for each in (state, state._replace(leader_epoch=6))
        )
        elections._image = ClusterImage("other")
        elections._image.apply(TopicCreated(before))
        elections.before(PartitionsChanged(after, (0,)))
    question = b'{"elections":1}'
    refused = await ask_json(guarded, ELECTIONS, ALICE, question)
    assert "needs Describe on the cluster" in refused["error"]["message"]
    guarded.let(Operation.DESCRIBE, Resource.CLUSTER, "kafka-cluster")
    assert (await ask_json(guarded, ELECTIONS, ALICE, question))["leaders"] == []
    guarded.let(Operation.DESCRIBE, Resource.TOPIC, "t")
    (seen,) = (await ask_json(guarded, ELECTIONS, ALICE, question))["leaders"]
    assert (seen["topic"], seen["leader_epoch"]) == ("t", 6)
    assert (await ask_json(guarded, ELECTIONS, ALICE, b"{"))["error"]["code"] == "bad_request"
