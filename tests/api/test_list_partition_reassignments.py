from typing import Any

import pytest

from ottla.controller.image import PartitionsChanged
from ottla.controller.topics import NewTopic
from ottla.protocol.errors import ErrorCode

KEY = 46


async def ask(cluster: Any, wanted: dict[str, tuple[int, ...]] | None = None) -> dict[str, Any]:
    build = cluster.request(KEY, 0)
    topics = None
    if wanted is not None:
        topics = tuple(
            build.ListPartitionReassignmentsTopics(name=name, partition_indexes=indexes)
            for name, indexes in wanted.items()
        )
    answer = await cluster.ask(build.ListPartitionReassignmentsRequest(topics=topics))
    assert answer.error_code is ErrorCode.none
    return {
        topic.name: [
            (
                each.partition_index,
                tuple(each.replicas),
                tuple(each.adding_replicas),
                tuple(each.removing_replicas),
            )
            for each in topic.partitions
        ]
        for topic in answer.topics
    }


@pytest.fixture
async def moving(cluster: Any) -> Any:
    """Partition 1 of t is on its way from broker 1 to broker 2."""
    await cluster.create(NewTopic("t", 2, 1), NewTopic("still", 1, 1))
    topic = cluster.image.topics["t"]
    state = topic.partitions[1]._replace(replicas=(2, 1), adding=(2,), removing=(1,))
    changed = type(topic)(topic.name, topic.topic_id, (topic.partitions[0], state), topic.overrides)
    await cluster.node.view.apply([PartitionsChanged(changed, (1,))])
    return cluster


MOVE = {"t": [(1, (2, 1), (2,), (1,))]}


async def test_no_reassignments(cluster: Any) -> None:
    await cluster.create(NewTopic("t", 2, 1))
    assert await ask(cluster) == {}
    assert await ask(cluster, {"t": (0, 1)}) == {}


@pytest.mark.parametrize("wanted", [None, {"t": (0, 1), "still": (0,)}, {"t": (1, 9), "u": (0,)}])
async def test_reassignments_are_listed(moving: Any, wanted: Any) -> None:
    assert await ask(moving, wanted) == MOVE


async def test_other_partitions_are_not_listed(moving: Any) -> None:
    assert await ask(moving, {"t": (0,), "still": (0,)}) == {}
    assert await ask(moving, {}) == {}
