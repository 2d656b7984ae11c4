"""Which topics were deleted by request: the proof that a broker needs to delete a folder.

A broker that was away finds folders whose topics no longer exist. That alone proves nothing: the
tree may be damaged, or restored from an older backup. So each deletion notes the topic's id under
/ottla/deletions, in the same write as the deletion of the topic's node or before it. A folder
whose topic id is noted is deleted; another one is kept (`cluster.strays`).

Kafka's ZooKeeper mode keeps its mark under /admin/delete_topics until every replica has confirmed
(TopicDeletionManager), so a dead broker delays the end of a deletion. Its KRaft mode keeps every
folder without a topic as a stray (LogManager.isStrayReplica), so the disk of a broker that was away
keeps deleted topics.

The newest MAX_NOTES are kept. A broker that was away for more deletions keeps the older ones'
folders as strays.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final
from uuid import UUID

from ottla.controller import layout
from ottla.controller.plan import Plan
from ottla.coordination.tree import Create, Delete, TreeNode
from ottla.protocol.kafka_uuid import uuid_from_text

MAX_NOTES: Final = 10_000
SLACK: Final = 500
"""So many above MAX_NOTES are removed together."""


def deletion_note(topic: str, topic_id: UUID) -> Create:
    """The write that notes a deletion."""
    return Create(layout.deletion_path(topic_id), layout.write_deletion(topic))


def noted_ids(names: Iterable[str]) -> frozenset[UUID]:
    """The topic ids of the nodes under DELETIONS. Other names, which are not ours, are ignored."""
    found = set()
    for name in names:
        try:
            found.add(uuid_from_text(name))
        except ValueError:
            continue
    return frozenset(found)


def notes_by_age(tree: Mapping[str, TreeNode]) -> list[str]:
    """The paths of the notes in the tree, the oldest first."""
    prefix = layout.DELETIONS + "/"
    paths = (path for path in tree if path.startswith(prefix))
    return sorted(paths, key=lambda path: (tree[path].created, path))


def are_too_many(notes: list[str]) -> bool:
    """Whether it is time for `forget_oldest`."""
    return len(notes) > MAX_NOTES + SLACK


def forget_oldest(notes: list[str]) -> Plan[list[str]]:
    """The plan that leaves the newest MAX_NOTES notes; its reply is what is left."""
    cut = max(0, len(notes) - MAX_NOTES)
    return Plan(notes[cut:], tuple(Delete(path) for path in notes[:cut]))
