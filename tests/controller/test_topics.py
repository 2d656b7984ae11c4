from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest

from ottla.config.broker import BrokerConfig
from ottla.config.listener import Endpoint
from ottla.config.topic import TopicConfig
from ottla.controller import layout
from ottla.controller.image import (
    BrokerAppeared,
    BrokerImage,
    BrokerVanished,
    ClusterImage,
    DirectoryChanged,
    DirectoryImage,
    PartitionsAdded,
    TopicCreated,
)
from ottla.controller.loading import first_writes
from ottla.controller.plan import decided
from ottla.controller.topics import (
    PARTITIONS_PER_REQUEST_MAX,
    TOPICS_PER_PLAN,
    CreationSoFar,
    MorePartitions,
    NewTopic,
    TopicResult,
    add_partitions,
    create_topics,
    in_parts,
)
from ottla.coordination.embedded_store import EmbeddedStore
from ottla.coordination.tree import Create, SetData
from ottla.protocol.errors import ErrorCode

NewId = Callable[[], UUID]


@pytest.fixture
def create(
    image: ClusterImage, config: BrokerConfig, new_id: NewId
) -> Callable[..., dict[str, TopicResult]]:
    def work(*wanted: NewTopic, **more: Any) -> dict[str, TopicResult]:
        plan = decided(create_topics(wanted, image, config, new_id=new_id, start=0, **more))
        for delta in plan.deltas:
            image.apply(delta)
        return {result.name: result for result in plan.reply}

    return work


def test_a_topic_is_written_as_kafka_writes_it(
    image: ClusterImage, config: BrokerConfig, new_id: NewId
) -> None:
    requested = NewTopic("t", 2, 2, configs=(("retention.ms", "5"),))
    plan = decided(create_topics([requested], image, config, new_id=new_id, start=0))
    writes = {write.path: write.data for write in plan.writes if isinstance(write, Create)}
    assert writes["/config/topics/t"] == b'{"version":1,"config":{"retention.ms":"5"}}'
    assert writes["/brokers/topics/t"] == (
        b'{"version":3,"topic_id":"AAAAAAAAAAAAAAAAAAAAAQ",'
        b'"partitions":{"0":[1,2],"1":[2,3]},"adding_replicas":{},"removing_replicas":{}}'
    )
    assert writes["/brokers/topics/t/partitions/0/state"] == (
        b'{"version":1,"leader":1,"leader_epoch":0,"controller_epoch":7,"isr":[1,2]}'
    )
    assert isinstance(plan.deltas[0], TopicCreated)
    assert plan.deltas[0].topic.overrides == {"retention.ms": "5"}


def test_the_writes_of_a_plan_fit_the_tree(
    image: ClusterImage, config: BrokerConfig, new_id: NewId
) -> None:
    store = EmbeddedStore(None)
    store.multi(first_writes({}, "cluster"), 1)
    plan = decided(create_topics([NewTopic("t", 3, 1)], image, config, new_id=new_id, start=0))
    store.multi(plan.writes, 1)
    image.apply(plan.deltas[0])
    more = decided(add_partitions([MorePartitions("t", 5)], image, start=0))
    store.multi(more.writes, 1)
    assert len(store.children("/brokers/topics/t/partitions")) == 5
    store.close()


def test_defaults_come_from_the_brokers_settings(image: ClusterImage, new_id: NewId) -> None:
    config = BrokerConfig({"num.partitions": "4", "default.replication.factor": "3"})
    plan = decided(create_topics([NewTopic("t")], image, config, new_id=new_id, start=0))
    assert isinstance(plan.deltas[0], TopicCreated)
    partitions = plan.deltas[0].topic.partitions
    assert len(partitions) == 4
    assert all(len(state.replicas) == 3 for state in partitions)


def test_explicit_assignments_are_kept(create: Callable[..., dict[str, TopicResult]]) -> None:
    results = create(NewTopic("t", assignments=((1, (3, 1)), (0, (2, 3)))))
    topic = results["t"].topic
    assert topic is not None
    assert [state.replicas for state in topic.partitions] == [(2, 3), (3, 1)]
    assert [state.leader for state in topic.partitions] == [2, 3]


@pytest.mark.parametrize(
    ("topic", "code", "message"),
    [
        (NewTopic("a b", 1, 1), ErrorCode.invalid_topic_exception, "Topic name is invalid: "),
        (NewTopic("t", 0, 1), ErrorCode.invalid_partitions, "invalid non-positive value"),
        (NewTopic("t", -2, 1), ErrorCode.invalid_partitions, "invalid non-positive value"),
        (NewTopic("t", 1, 0), ErrorCode.invalid_replication_factor, "must be larger than 0"),
        (
            NewTopic("t", 1, 4),
            ErrorCode.invalid_replication_factor,
            "Unable to replicate the partition 4 time(s): The target replication factor of 4 "
            "cannot be reached because only 3 broker(s) are registered.",
        ),
        (
            NewTopic("t", PARTITIONS_PER_REQUEST_MAX + 1, 1),
            ErrorCode.policy_violation,
            "Excessively large number of partitions",
        ),
        (
            NewTopic("t", 1, -1, ((0, (1,)),)),
            ErrorCode.invalid_request,
            "numPartitions was not set to -1",
        ),
        (
            NewTopic("t", -1, 1, ((0, (1,)),)),
            ErrorCode.invalid_request,
            "replication factor was not set to -1",
        ),
        (
            NewTopic("t", assignments=((0, (1,)), (0, (2,)))),
            ErrorCode.invalid_replica_assignment,
            "Found multiple manual partition assignments for partition 0",
        ),
        (
            NewTopic("t", assignments=((0, (1,)), (2, (2,)))),
            ErrorCode.invalid_replica_assignment,
            "consecutive 0-based",
        ),
        (
            NewTopic("t", assignments=((0, (1,)), (1, (2, 3)))),
            ErrorCode.invalid_replica_assignment,
            "not consistent with previous partitions, which have 1 replica(s)",
        ),
        (
            NewTopic("t", configs=(("retention.ms", None),)),
            ErrorCode.invalid_config,
            "Null value not supported for topic configs: retention.ms",
        ),
        (
            NewTopic("t", configs=(("nonsense.setting", "1"),)),
            ErrorCode.invalid_config,
            "Unknown topic config name: nonsense.setting",
        ),
        (
            NewTopic("t", configs=(("retention.ms", " " * 32_767 + "1"),)),
            ErrorCode.invalid_config,
            "exceeds the maximum value size of 32767 bytes",
        ),
        (
            NewTopic(
                "t",
                configs=tuple(
                    (name, " " * 32_766 + "7")
                    for name in TopicConfig.definitions
                    if name.endswith(".ms")
                ),
            ),
            ErrorCode.invalid_config,
            "at most 250000 are allowed",
        ),
    ],
)
def test_refusals_have_kafkas_messages(
    create: Callable[..., dict[str, TopicResult]],
    image: ClusterImage,
    topic: NewTopic,
    code: ErrorCode,
    message: str,
) -> None:
    result = create(topic)[topic.name]
    assert result.outcome.code is code
    assert message in (result.outcome.message or "")
    assert result.topic is None
    assert image.topics == {}


def test_one_invalid_topic_does_not_affect_others(
    create: Callable[..., dict[str, TopicResult]], image: ClusterImage
) -> None:
    results = create(NewTopic("good", 1, 1), NewTopic("bad", 0, 1), NewTopic("fine", 1, 1))
    assert {name: result.outcome.code for name, result in results.items()} == {
        "good": ErrorCode.none,
        "bad": ErrorCode.invalid_partitions,
        "fine": ErrorCode.none,
    }
    assert set(image.topics) == {"good", "fine"}


def test_existing_and_colliding_names(create: Callable[..., dict[str, TopicResult]]) -> None:
    create(NewTopic("a.b", 1, 1))
    results = create(
        NewTopic("a.b", 1, 1), NewTopic("a_b", 1, 1), NewTopic("c_d", 1, 1), NewTopic("c.d", 1, 1)
    )
    assert results["a.b"].outcome.code is ErrorCode.topic_already_exists
    assert results["a.b"].outcome.message == "Topic 'a.b' already exists."
    assert results["a_b"].outcome.code is ErrorCode.invalid_topic_exception
    assert results["a_b"].outcome.message == "Topic 'a_b' collides with existing topic: a.b"
    assert results["c_d"].outcome.code is ErrorCode.none
    assert results["c.d"].outcome.code is ErrorCode.invalid_topic_exception


def test_the_topic_of_kraft_cannot_be_created(
    create: Callable[..., dict[str, TopicResult]], image: ClusterImage
) -> None:
    """A start passes over a folder of that name: its records would be gone."""
    (result,) = create(NewTopic("__cluster_metadata", 1, 1)).values()
    assert result.outcome == (
        ErrorCode.invalid_request,
        "Creation of internal topic __cluster_metadata is prohibited.",
    )
    assert not image.topics


def test_a_name_given_twice_is_refused_once(
    create: Callable[..., dict[str, TopicResult]], image: ClusterImage
) -> None:
    results = create(NewTopic("t", 1, 1), NewTopic("t", 2, 1), NewTopic("u", 1, 1))
    assert results["t"].outcome.code is ErrorCode.invalid_request
    assert results["t"].outcome.message == "Duplicate topic name."
    assert set(image.topics) == {"u"}


def test_validate_only_returns_the_result_without_writes(
    image: ClusterImage, config: BrokerConfig, new_id: NewId
) -> None:
    plan = decided(
        create_topics(
            [NewTopic("t", 3, 1), NewTopic("bad", 0)],
            image,
            config,
            new_id=new_id,
            start=0,
            validate_only=True,
        )
    )
    assert (plan.writes, plan.deltas) == ((), ())
    results = {result.name: result for result in plan.reply}
    assert results["t"].topic is not None
    assert len(results["t"].topic.partitions) == 3
    assert results["bad"].outcome.failed


def test_more_partitions_are_appended_under_the_topics_version(
    image: ClusterImage, add_topic: Callable[[NewTopic], None]
) -> None:
    add_topic(NewTopic("t", 2, 1))
    before = image.topics["t"]
    plan = decided(add_partitions([MorePartitions("t", 4)], image, start=0))
    assert isinstance(plan.writes[0], SetData)
    assert (plan.writes[0].path, plan.writes[0].version) == (layout.topic_path("t"), 0)
    (delta,) = plan.deltas
    assert isinstance(delta, PartitionsAdded)
    assert delta.first == 2
    image.apply(delta)
    after = image.topics["t"]
    assert after.partitions[:2] == before.partitions
    assert [state.leader for state in after.partitions] == [1, 2, 3, 1]
    assert after.node_version == 1


@pytest.mark.parametrize(
    ("requested", "code", "message"),
    [
        (MorePartitions("none", 4), ErrorCode.unknown_topic_or_partition, "does not host"),
        (MorePartitions("t", 2), ErrorCode.invalid_partitions, "already has 2 partition(s)."),
        (MorePartitions("t", 1), ErrorCode.invalid_partitions, "1 would not be an increase."),
        (
            MorePartitions("t", 4, ((1,),)),
            ErrorCode.invalid_replica_assignment,
            "Attempted to add 2 additional partition(s), but only 1 assignment(s)",
        ),
        (
            MorePartitions("t", 3, ((1, 2),)),
            ErrorCode.invalid_replica_assignment,
            "not consistent with previous partitions",
        ),
        (
            MorePartitions("t", 3, ((9,),)),
            ErrorCode.invalid_replica_assignment,
            "includes broker 9, but no such broker is registered.",
        ),
        (MorePartitions("t", 20_000), ErrorCode.policy_violation, "Excessively large"),
    ],
)
def test_add_partitions_refusals_have_kafkas_messages(
    image: ClusterImage,
    add_topic: Callable[[NewTopic], None],
    requested: MorePartitions,
    code: ErrorCode,
    message: str,
) -> None:
    add_topic(NewTopic("t", 2, 1))
    plan = decided(add_partitions([requested], image, start=0))
    assert plan.reply[0].outcome.code is code
    assert message in (plan.reply[0].outcome.message or "")
    assert plan.writes == ()


def test_more_partitions_with_an_assignment(
    image: ClusterImage, add_topic: Callable[[NewTopic], None]
) -> None:
    add_topic(NewTopic("t", 1, 2))
    plan = decided(
        add_partitions(
            [
                MorePartitions("t", 3, ((3, 1), (2, 3))),
                MorePartitions("u", 1),
                MorePartitions("u", 2),
            ],
            image,
            start=0,
            validate_only=True,
        )
    )
    results = {result.name: result for result in plan.reply}
    topic = results["t"].topic
    assert topic is not None
    assert [state.replicas for state in topic.partitions[1:]] == [(3, 1), (2, 3)]
    assert results["u"].outcome.message == "Duplicate topic name."
    assert plan.writes == ()


@pytest.mark.parametrize(("brokers", "factor"), [(1, 1), (2, 2), (3, 3), (5, 3)])
def test_the_offsets_topic_has_three_replicas_on_three_brokers(
    brokers: int, factor: int, new_id: Callable[[], UUID], config: BrokerConfig
) -> None:
    image = ClusterImage("cluster")
    for number in range(brokers):
        image.apply(BrokerAppeared(BrokerImage(number, (Endpoint("PLAINTEXT", "h", 1),))))
    wanted = [NewTopic("__consumer_offsets", 50)]
    plan = decided(create_topics(wanted, image, config, new_id=new_id, start=0))
    topic = plan.reply[0].topic
    assert topic is not None
    assert {len(state.replicas) for state in topic.partitions} == {factor}


def test_the_offsets_topic_waits_for_brokers_that_are_away(
    create: Callable[..., dict[str, TopicResult]], image: ClusterImage
) -> None:
    for number in (1, 2, 3):
        image.apply(DirectoryChanged(number, DirectoryImage(f"folder {number}", 1, 0)))
    for number in (2, 3):
        image.apply(BrokerVanished(number))
    requested = NewTopic("__consumer_offsets", 50)
    refused = create(requested)["__consumer_offsets"].outcome
    assert refused.code is ErrorCode.invalid_replication_factor
    for number in (2, 3):
        image.apply(BrokerAppeared(BrokerImage(number, (Endpoint("PLAINTEXT", "h", 1),))))
    create(requested)
    topic = image.topics["__consumer_offsets"]
    assert {len(state.replicas) for state in topic.partitions} == {3}


def test_a_broker_that_shuts_down_gets_no_replica(
    create: Callable[..., dict[str, TopicResult]], image: ClusterImage
) -> None:
    results = create(NewTopic("t", 4, 2), NewTopic("wide", 1, 3), shutting_down={2})
    placed = {broker for state in image.topics["t"].partitions for broker in state.replicas}
    assert placed == {1, 3}
    assert results["wide"].outcome.code is ErrorCode.invalid_replication_factor
    plan = decided(add_partitions([MorePartitions("t", 8)], image, start=0, shutting_down={1, 2}))
    assert plan.reply[0].outcome.code is ErrorCode.invalid_replication_factor


def test_a_named_broker_that_shuts_down_is_not_in_sync(
    create: Callable[..., dict[str, TopicResult]], image: ClusterImage
) -> None:
    results = create(
        NewTopic("t", assignments=((0, (2, 1)), (1, (3, 2)))),
        NewTopic("none", assignments=((0, (2,)),)),
        shutting_down={2},
    )
    assert [(each.leader, each.isr) for each in image.topics["t"].partitions] == [
        (1, (1,)),
        (3, (3,)),
    ]
    assert results["none"].outcome.code is ErrorCode.invalid_replica_assignment
    assert "in controlled shutdown" in (results["none"].outcome.message or "")
    requested = MorePartitions("t", 4, ((2, 3), (2, 1)))
    plan = decided(add_partitions([requested], image, start=0, shutting_down={1, 2}))
    assert "for partition 3 are fenced" in (plan.reply[0].outcome.message or "")


def test_many_topics_come_in_parts_and_repeated_names_together() -> None:
    wanted = [NewTopic(f"t{number}", 1, 1) for number in range(2 * TOPICS_PER_PLAN + 1)]
    again = NewTopic("again", 1, 1)
    found = list(in_parts([again, *wanted, again]))
    parts = [[each.name for each in part] for part in found if part is not None]
    assert len(parts) == len(found)
    names = [each.name for each in wanted]
    assert parts == [
        ["again", "again", *names[:TOPICS_PER_PLAN]],
        names[TOPICS_PER_PLAN : 2 * TOPICS_PER_PLAN],
        names[2 * TOPICS_PER_PLAN :],
    ]
    assert list(in_parts([])) == [[]]


def test_the_parts_of_a_request_share_its_limits(
    create: Callable[..., dict[str, TopicResult]],
) -> None:
    so_far = CreationSoFar()
    create(NewTopic("a.b", PARTITIONS_PER_REQUEST_MAX - 1, 1), so_far=so_far, validate_only=True)
    results = create(NewTopic("a_b", 1, 1), NewTopic("c", 2, 1), so_far=so_far)
    assert results["a_b"].outcome.code is ErrorCode.invalid_topic_exception
    assert results["c"].outcome.code is ErrorCode.policy_violation
