"""What a new controller repairs, because its predecessor may have stopped between two writes.

1. `healing_writes(tree)`: nodes that are missing or half deleted; then the tree is read again
2. `load_image`
3. `recovered(image)`: unfinished elections, reassignments and data folders
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from itertools import islice
from typing import Final

from ottla.controller import layout
from ottla.controller.deletion_notes import deletion_note
from ottla.controller.loading import NODES_A_STEP, TOPIC_US, children
from ottla.controller.plan import Step
from ottla.controller.topics import first_state
from ottla.coordination.tree import Create, Delete, Operation, TreeNode

LOOK_UP_US: Final = 2
"""What it takes to look for a partition's nodes, about."""


def healing_writes(tree: Mapping[str, TreeNode]) -> Generator[None, None, tuple[Operation, ...]]:
    """Writes after which `load_image` finds all that it needs; empty if nothing is wrong. In steps
    (see `plan`).

    A topic that was being deleted is deleted. A topic that was being created is completed (its
    client got no answer or an error, and may find the topic there, as in Kafka). Settings without a
    topic are deleted. Raises LayoutError.
    """
    writes: list[Operation] = []
    parents = (layout.DELETED_TOPICS, layout.TOPICS, layout.TOPIC_CONFIGS)
    marked, names, configs = yield from children(tree, parents)
    below = yield from _below(tree, marked)
    step = Step()
    for name in marked:
        if step.is_full(TOPIC_US + LOOK_UP_US * len(below[name])):
            yield
        writes += _note(tree, name)
        # Children before parents.
        for path in sorted(below[name], key=lambda each: each.count("/"), reverse=True):
            writes.append(Delete(path, tree[path].version))
    for name in names:
        if name not in below:
            writes += yield from _missing_states(tree, name, step)
    for name in configs:
        if name in below or name not in names:
            path = layout.topic_config_path(name)
            writes.append(Delete(path, tree[path].version))
    writes += (Delete(layout.deleted_topic_path(name)) for name in marked)
    return tuple(writes)


def _below(
    tree: Mapping[str, TreeNode], topics: Mapping[str, None]
) -> Generator[None, None, dict[str, list[str]]]:
    """The paths of each topic and below it."""
    found: dict[str, list[str]] = {name: [] for name in topics}
    prefix = layout.TOPICS + "/"
    paths = iter(tree) if topics else iter(())
    while part := list(islice(paths, NODES_A_STEP)):
        yield
        for path in part:
            if path.startswith(prefix):
                name = path[len(prefix) :].partition("/")[0]
                if name in found:
                    found[name].append(path)
    return found


def _note(tree: Mapping[str, TreeNode], name: str) -> list[Operation]:
    """The note of a deletion that was interrupted before it was noted, or that Kafka's own
    controller began.
    """
    node = tree.get(layout.topic_path(name))
    if node is None:
        return []
    topic_id, _ = layout.read_topic(name, node.data)
    return [] if layout.deletion_path(topic_id) in tree else [deletion_note(name, topic_id)]


def _missing_states(
    tree: Mapping[str, TreeNode], name: str, step: Step
) -> Generator[None, None, list[Operation]]:
    if step.is_full(TOPIC_US):
        yield
    data = tree[layout.topic_path(name)].data
    _, partitions = layout.read_topic(name, data)
    epoch = int(tree[layout.CONTROLLER_EPOCH].data)
    writes: list[Operation] = []
    if layout.partitions_path(name) not in tree:
        writes.append(Create(layout.partitions_path(name)))
    for index, assignment in enumerate(partitions):
        if step.is_full(LOOK_UP_US):
            yield
        path = layout.partition_path(name, index)
        if path not in tree:
            writes.append(Create(path))
        if layout.state_path(name, index) in tree:
            continue
        # No broker ever learned of this partition, so none has a record of it. Dead replicas leave
        # the ISR when the image is recovered.
        state = layout.write_state(first_state(assignment.replicas), epoch)
        writes.append(Create(layout.state_path(name, index), state))
    return writes
