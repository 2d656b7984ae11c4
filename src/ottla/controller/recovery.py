"""What a new controller repairs, because its predecessor may have stopped between two writes.

1. `healing_writes(tree)`: nodes that are missing or half deleted; then the tree is read again
2. `load_image`
3. `recovered(image)`: unfinished elections, reassignments and data folders
"""

from __future__ import annotations

from collections.abc import Mapping

from ottla.controller import layout
from ottla.controller.deletion_notes import deletion_note
from ottla.controller.loading import children
from ottla.controller.topics import first_state
from ottla.coordination.tree import Create, Delete, Operation, TreeNode


def healing_writes(tree: Mapping[str, TreeNode]) -> tuple[Operation, ...]:
    """Writes after which `load_image` finds all that it needs; empty if nothing is wrong.

    A topic that was being deleted is deleted. A topic that was being created is completed (its
    client got no answer or an error, and may find the topic there, as in Kafka). Settings without a
    topic are deleted. Raises LayoutError.
    """
    writes: list[Operation] = []
    marked = children(tree, layout.DELETED_TOPICS)
    names = children(tree, layout.TOPICS)
    below: dict[str, list[str]] = {name: [] for name in marked}
    for path in tree:
        if path.startswith(layout.TOPICS + "/"):
            name = path[len(layout.TOPICS) + 1 :].partition("/")[0]
            if name in below:
                below[name].append(path)
    for name in marked:
        writes += _note(tree, name)
        # Children before parents.
        for path in sorted(below[name], key=lambda each: each.count("/"), reverse=True):
            writes.append(Delete(path, tree[path].version))
    for name in names:
        if name not in below:
            writes += _missing_states(tree, name)
    for name in children(tree, layout.TOPIC_CONFIGS):
        if name in below or name not in names:
            path = layout.topic_config_path(name)
            writes.append(Delete(path, tree[path].version))
    writes += (Delete(layout.deleted_topic_path(name)) for name in marked)
    return tuple(writes)


def _note(tree: Mapping[str, TreeNode], name: str) -> list[Operation]:
    """The note of a deletion that was interrupted before it was noted, or that Kafka's own
    controller began.
    """
    node = tree.get(layout.topic_path(name))
    if node is None:
        return []
    topic_id, _ = layout.read_topic(name, node.data)
    return [] if layout.deletion_path(topic_id) in tree else [deletion_note(name, topic_id)]


def _missing_states(tree: Mapping[str, TreeNode], name: str) -> list[Operation]:
    data = tree[layout.topic_path(name)].data
    _, partitions = layout.read_topic(name, data)
    epoch = int(tree[layout.CONTROLLER_EPOCH].data)
    writes: list[Operation] = []
    if layout.partitions_path(name) not in tree:
        writes.append(Create(layout.partitions_path(name)))
    for index, assignment in enumerate(partitions):
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
