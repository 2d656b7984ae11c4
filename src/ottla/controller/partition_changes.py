"""New states of many partitions, gathered into one plan: each written once, one delta a topic.

The states of a topic's partitions are written before its assignment. Whoever stops in between
leaves a reassignment that is not noted as begun, or not as complete, and can go on with it.
"""

from __future__ import annotations

from dataclasses import replace

from ottla.controller import layout
from ottla.controller.image import ClusterImage, PartitionsChanged, PartitionState, TopicImage
from ottla.controller.plan import Draft
from ottla.coordination.tree import SetData


class PartitionChanges:
    """See the module's text. Later changes of a partition stand on the earlier ones."""

    def __init__(self, image: ClusterImage) -> None:
        self._controller_epoch = image.controller_epoch
        self._topics: dict[str, TopicImage] = {}
        self._changed: dict[str, dict[int, PartitionState]] = {}

    def state(self, topic: TopicImage, index: int) -> PartitionState:
        """The partition's state with the changes so far."""
        return self._changed.get(topic.name, {}).get(index) or topic.partitions[index]

    def put(self, topic: TopicImage, index: int, state: PartitionState) -> PartitionState:
        """Note the new state; returns it with the partition epoch that the write will give it.

        The delta shows `topic` with its new states, on top of the plan's earlier deltas.
        """
        epoch = topic.partitions[index].partition_epoch + 1
        state = state._replace(partition_epoch=epoch)
        self._topics[topic.name] = topic
        self._changed.setdefault(topic.name, {})[index] = state
        return state

    def into(self, draft: Draft) -> None:
        """Add the writes and the deltas."""
        for name, changed in self._changed.items():
            self._topic_into(draft, self._topics[name], changed)

    def _topic_into(
        self, draft: Draft, topic: TopicImage, changed: dict[int, PartitionState]
    ) -> None:
        states = list(topic.partitions)
        reassigned = False
        for index, state in changed.items():
            before = states[index]
            data = layout.write_state(state, self._controller_epoch)
            path = layout.state_path(topic.name, index)
            draft.writes.append(SetData(path, data, before.partition_epoch))
            reassigned |= _assignment(before) != _assignment(state)
            states[index] = state
        version = topic.node_version
        if reassigned:
            data = layout.write_topic(topic.topic_id, states)
            draft.writes.append(SetData(layout.topic_path(topic.name), data, version))
            version += 1
        image = replace(topic, partitions=tuple(states), node_version=version)
        draft.deltas.append(PartitionsChanged(image, tuple(sorted(changed))))


def _assignment(state: PartitionState) -> tuple[tuple[int, ...], ...]:
    return state.replicas, state.adding, state.removing
