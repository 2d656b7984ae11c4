"""What a new controller finds when the previous one stopped in the middle."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest

from ottla.controller import layout
from ottla.controller.deletion import TopicToDelete, delete_topics
from ottla.controller.layout import LayoutError
from ottla.controller.plan import Plan, decided
from ottla.controller.recovery import healing_writes
from ottla.controller.topics import NewTopic, create_topics
from ottla.coordination.tree import Create, SetData

World = Any


def test_a_creation_is_completed(world: World, new_id: Callable[[], UUID]) -> None:
    wanted = [NewTopic("t", 2, 2, configs=(("retention.ms", "5"),))]
    plan = decided(create_topics(wanted, world.image, world.config, new_id=new_id, start=0))
    for writes in range(len(plan.writes) + 1):
        other = world.after_crash(plan, writes)
        assert decided(healing_writes(other.tree())) == ()
        if writes < 2:
            # Settings alone are not a topic; it can be created again.
            assert other.image.topics == {}
            other.do(
                decided(create_topics(wanted, other.image, other.config, new_id=new_id, start=0))
            )
        assert other.show() == ["1@0 1,2 | 1,2", "2@0 2,3 | 2,3"]
        assert other.image.topics["t"].overrides == {"retention.ms": "5"}


def test_a_deletion_is_finished_while_a_broker_is_down(world: World) -> None:
    world.topic("t", "1@4 1,2 | 1,2", "2@4 2,3 | 2,3", retention_ms="5")
    world.topic("u", "1@4 1,2 | 1,2")
    world.down(2)
    note = layout.deletion_path(world.image.topics["t"].topic_id)
    plan = decided(delete_topics([TopicToDelete("t")], world.image, world.config))
    for writes in range(len(plan.writes) + 1):
        other = world.after_crash(plan, writes)
        assert list(other.image.topics) == (["t", "u"] if writes == 0 else ["u"])
        assert decided(healing_writes(other.tree())) == ()
        assert (note in other.tree()) is (writes > 0), "a broker that was away needs the proof"
        left = [path for path in other.tree() if path.endswith("/t")]
        assert bool(left) is (writes == 0)


def test_replicas_that_died_meanwhile_leave_a_completed_topic(
    world: World, new_id: Callable[[], UUID]
) -> None:
    wanted = [NewTopic("t", 1, 2)]
    plan = decided(create_topics(wanted, world.image, world.config, new_id=new_id, start=0))
    del world.live[1]
    other = world.after_crash(plan, 2)
    reply = other.check()
    assert reply.elections == (("t", 0, 1, 2, 1, False),)
    assert other.show() == ["2@1 1,2 | 2"]


def test_added_partitions_get_their_states(world: World) -> None:
    world.topic("t", "1@4 1,2 | 1,2")
    assignments = [layout.Assignment((1, 2)), layout.Assignment((2, 3))]
    path = layout.topic_path("t")
    world.write([SetData(path, layout.write_topic(UUID(int=1), assignments), 0)])
    (partition, state) = decided(healing_writes(world.tree()))
    assert (partition.path, state.path) == (
        "/brokers/topics/t/partitions/1",
        "/brokers/topics/t/partitions/1/state",
    )


def test_a_mark_without_a_topic_is_removed(world: World) -> None:
    world.write([Create(layout.deleted_topic_path("t"))])
    (write,) = decided(healing_writes(world.tree()))
    assert write.path == "/admin/delete_topics/t"


def test_an_invalid_node_is_named(world: World) -> None:
    world.write([Create(layout.topic_path("t"), b"{}")])
    with pytest.raises(LayoutError, match="/brokers/topics/t"):
        decided(healing_writes(world.tree()))


def test_a_healthy_tree_needs_no_writes(world: World) -> None:
    world.topic("t", "1@4 1,2 | 1,2")
    before = len(world.history)
    other = world.after_crash(Plan(None), 0)
    other.check()
    assert len(other.history) == before
