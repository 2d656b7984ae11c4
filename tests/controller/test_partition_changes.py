from __future__ import annotations

from dataclasses import replace
from typing import Any

from ottla.controller.image import PartitionsChanged
from ottla.controller.partition_changes import PartitionChanges
from ottla.controller.plan import PlanBuilder
from ottla.coordination.tree import SetData

World = Any


def test_a_state_is_written_once_with_its_expected_version(world: World) -> None:
    world.topic("t", "1@4 1,2 | 1,2", "2@4 2,1 | 1,2")
    topic = world.image.topics["t"]
    changes = PartitionChanges(world.image)
    first = changes.state(topic, 1)._replace(isr=(2,))
    assert changes.put(topic, 1, first).partition_epoch == 1
    assert changes.state(topic, 1).isr == (2,)
    assert changes.put(topic, 1, first._replace(leader_epoch=9)).partition_epoch == 1
    builder = PlanBuilder()
    changes.add_to(builder)
    assert [(type(each), each.path) for each in builder.writes] == [
        (SetData, "/brokers/topics/t/partitions/1/state")
    ]
    world.do(builder.plan(None))
    assert world.show() == ["1@4 1,2 | 1,2", "2@9 2,1 | 2"]


def test_a_changed_assignment_is_written_after_the_states(world: World) -> None:
    world.topic("t", "1@4 1,2 | 1,2", "2@4 2,1 | 1,2")
    topic = world.image.topics["t"]
    changes = PartitionChanges(world.image)
    for index, state in enumerate(topic.partitions):
        changes.put(topic, index, state._replace(replicas=(*state.replicas, 3), adding=(3,)))
    builder = PlanBuilder()
    changes.add_to(builder)
    assert [each.path for each in builder.writes] == [
        "/brokers/topics/t/partitions/0/state",
        "/brokers/topics/t/partitions/1/state",
        "/brokers/topics/t",
    ]
    world.do(builder.plan(None))
    assert world.image.topics["t"].node_version == 1


def test_the_deltas_keep_earlier_changes_of_the_plan(world: World) -> None:
    world.topic("t", "1@4 1,2 | 1,2")
    topic = replace(world.image.topics["t"], overrides={"a": "b"}, config_version=1)
    changes = PartitionChanges(world.image)
    changes.put(topic, 0, topic.partitions[0]._replace(isr=(1,)))
    builder = PlanBuilder()
    changes.add_to(builder)
    (delta,) = builder.deltas
    assert isinstance(delta, PartitionsChanged)
    assert (delta.topic.overrides, delta.topic.config_version) == ({"a": "b"}, 1)
