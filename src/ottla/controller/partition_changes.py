"""Collects changes to many partitions in one plan: one write a partition, one delta a topic.

A topic's partition states are written before its assignment. If a controller stops in between,
the tree does not show the reassignment as begun, or as complete, and the next one continues it.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace

from ottla.controller import layout
from ottla.controller.image import (
    ClusterImage,
    PartitionsChanged,
    PartitionState,
    TopicImage,
    shared_state,
)
from ottla.controller.plan import PlanBuilder, Step, decided
from ottla.coordination.tree import SetData


class PartitionChanges:
    """The partition changes of one plan. Later changes to a partition build on earlier ones."""

    def __init__(self, image: ClusterImage) -> None:
        self._controller_epoch = image.controller_epoch
        self._topics: dict[str, TopicImage] = {}
        self._changed: dict[str, dict[int, PartitionState]] = {}

    def state(self, topic: TopicImage, index: int) -> PartitionState:
        """The partition's state with the changes so far."""
        return self._changed.get(topic.name, {}).get(index) or topic.partitions[index]

    def put(self, topic: TopicImage, index: int, state: PartitionState) -> PartitionState:
        """Record the new state; returns it with the partition epoch that the write will give it.

        The delta shows `topic` with its new states, on top of the plan's earlier deltas.
        """
        epoch = topic.partitions[index].partition_epoch + 1
        state = shared_state(state._replace(partition_epoch=epoch))
        self._topics[topic.name] = topic
        self._changed.setdefault(topic.name, {})[index] = state
        return state

    def add_to(self, builder: PlanBuilder) -> None:
        """Add the writes and the deltas."""
        decided(self.add_in_steps(builder))

    def add_in_steps(self, builder: PlanBuilder) -> Generator[None, None, None]:
        """The same, with pauses; see `plan`."""
        step = Step()
        for name, changed in self._changed.items():
            topic = self._topics[name]
            if step.is_full(10 + len(topic.partitions) + 5 * len(changed)):
                yield
            self._add_topic_to(builder, topic, changed)

    def _add_topic_to(
        self, builder: PlanBuilder, topic: TopicImage, changed: dict[int, PartitionState]
    ) -> None:
        states = list(topic.partitions)
        reassigned = False
        for index, state in changed.items():
            before = states[index]
            data = layout.write_state(state, self._controller_epoch)
            path = layout.state_path(topic.name, index)
            builder.writes.append(SetData(path, data, before.partition_epoch))
            reassigned |= _assignment(before) != _assignment(state)
            states[index] = state
        version = topic.node_version
        if reassigned:
            data = layout.write_topic(topic.topic_id, states)
            builder.writes.append(SetData(layout.topic_path(topic.name), data, version))
            version += 1
        image = replace(topic, partitions=tuple(states), node_version=version)
        builder.deltas.append(PartitionsChanged(image, tuple(sorted(changed))))


def _assignment(state: PartitionState) -> tuple[tuple[int, ...], ...]:
    return state.replicas, state.adding, state.removing
