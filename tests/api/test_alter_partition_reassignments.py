from typing import Any

import pytest

from ottla.controller import layout
from ottla.controller.topics import NewTopic
from ottla.protocol.errors import ErrorCode

KEY, LIST = 45, 46


async def ask(
    cluster: Any, *wanted: tuple[str, dict[int, Any]], version: int = 1, **more: Any
) -> Any:
    """The whole answer; a target of None cancels."""
    build = cluster.request(KEY, version)
    topics = tuple(
        build.ReassignableTopic(
            name=name,
            partitions=tuple(
                build.ReassignablePartition(partition_index=index, replicas=replicas)
                for index, replicas in targets.items()
            ),
        )
        for name, targets in wanted
    )
    return await cluster.ask(build.AlterPartitionReassignmentsRequest(topics=topics, **more))


def codes(answer: Any) -> dict[str, dict[int, ErrorCode]]:
    assert answer.error_code is ErrorCode.none
    return {
        topic.name: {each.partition_index: each.error_code for each in topic.partitions}
        for topic in answer.responses
    }


def state(cluster: Any, index: int = 0) -> Any:
    return cluster.image.topics["t"].partitions[index]


@pytest.fixture
async def three(cluster: Any) -> Any:
    """Brokers 1 to 3, of which the first holds both partitions of t."""
    assert cluster.config.id == 1
    await cluster.create(NewTopic("t", 2, 1))
    await cluster.others_are(2, 3)
    return cluster


@pytest.mark.parametrize("version", [0, 1])
async def test_every_version_begins_a_reassignment(three: Any, version: int) -> None:
    answer = await ask(three, ("t", {0: (2, 1), 1: (3,)}), version=version)
    assert codes(answer) == {"t": {0: ErrorCode.none, 1: ErrorCode.none}}
    assert (state(three).replicas, state(three).adding) == ((2, 1), (2,))
    assert (state(three, 1).replicas, state(three, 1).removing) == ((3, 1), (1,))
    assert (state(three, 1).leader, state(three, 1).isr) == (1, (1,))
    node = await three.node.membership.session.get(layout.topic_path("t"))
    assert b'"adding_replicas":{"0":[2],"1":[3]}' in node.data.replace(b" ", b"")


async def test_a_reassignment_is_listed_and_cancelled(three: Any) -> None:
    await ask(three, ("t", {0: (2, 3)}))
    build = three.request(LIST, 0)
    listed = await three.ask(build.ListPartitionReassignmentsRequest(topics=None))
    assert [each.partition_index for each in listed.topics[0].partitions] == [0]
    assert codes(await ask(three, ("t", {0: None}))) == {"t": {0: ErrorCode.none}}
    assert (state(three).replicas, state(three).is_reassigning) == ((1,), False)
    listed = await three.ask(build.ListPartitionReassignmentsRequest(topics=None))
    assert listed.topics == ()


async def test_errors_are_by_partition_and_do_not_affect_others(three: Any) -> None:
    answer = await ask(
        three,
        ("t", {0: (1, 9), 1: (1, 2), 7: (1,)}),
        ("none", {0: (1,)}),
    )
    assert codes(answer) == {
        "t": {
            0: ErrorCode.invalid_replica_assignment,
            1: ErrorCode.none,
            7: ErrorCode.unknown_topic_or_partition,
        },
        "none": {0: ErrorCode.unknown_topic_or_partition},
    }
    reasons = [each.error_message for each in answer.responses[0].partitions]
    assert "broker 9" in reasons[0]
    assert reasons[1] is None
    assert state(three).replicas == (1,)
    assert state(three, 1).adding == (2,)


@pytest.mark.parametrize("replicas", [(), (1, 1)])
async def test_empty_and_duplicate_replicas_are_refused(
    three: Any, replicas: tuple[int, ...]
) -> None:
    answer = await ask(three, ("t", {0: replicas}))
    assert codes(answer) == {"t": {0: ErrorCode.invalid_replica_assignment}}


async def test_nothing_to_cancel_is_an_error(three: Any) -> None:
    answer = await ask(three, ("t", {0: None}))
    assert codes(answer) == {"t": {0: ErrorCode.no_reassignment_in_progress}}


async def test_a_change_of_the_replication_factor_can_be_forbidden(three: Any) -> None:
    answer = await ask(three, ("t", {0: (2, 3), 1: (2,)}), allow_replication_factor_change=False)
    assert answer.allow_replication_factor_change is False
    assert codes(answer) == {"t": {0: ErrorCode.invalid_replication_factor, 1: ErrorCode.none}}
    # The previous version does not have the field.
    answer = await ask(three, ("t", {0: (2, 3)}), version=0)
    assert codes(answer) == {"t": {0: ErrorCode.none}}


async def test_a_deposed_controller_begins_none(three: Any) -> None:
    three.controller.resign("for the test")
    answer = await ask(three, ("t", {0: (2,)}))
    assert (answer.error_code, answer.responses) == (ErrorCode.not_controller, ())
    assert state(three).replicas == (1,)
