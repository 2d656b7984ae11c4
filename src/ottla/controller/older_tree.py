"""What must not go back when the tree is an older copy of itself.

A copy may lack the last changes. Topics, settings and deletions among them are lost, and the broker
keeps all records (`cluster.strays`). Two numbers that others remember must still only grow:

- producer ids: an id given twice would make one producer's batches duplicates of another's;
- leader epochs: a client that knows a later epoch than its leader has waits for that for ever, and
  a log whose epochs go back cannot be truncated rightly.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ottla.controller import layout
from ottla.controller.image import ClusterImage, ProducerIdsReserved
from ottla.controller.partition_changes import PartitionChanges
from ottla.controller.plan import Plan, PlanBuilder
from ottla.coordination.tree import Create, SetData

SKIPPED_PRODUCER_IDS: Final = 1_000_000
"""A thousand blocks: far more than a broker reserves between two copies."""


def make_up(
    image: ClusterImage, broker_id: int, log_epochs: Mapping[tuple[str, int], int]
) -> Plan[int]:
    """Raises both numbers above all that may have been used. `log_epochs`: the latest leader epoch
    in the log of each partition. The reply: how many partitions get another epoch.
    """
    builder = PlanBuilder()
    changes = PartitionChanges(image)
    raised = 0
    for (name, index), epoch in log_epochs.items():
        topic = image.topics[name]
        state = topic.partitions[index]
        if epoch > state.leader_epoch:
            changes.put(topic, index, state._replace(leader_epoch=epoch + 1))
            raised += 1
    changes.add_to(builder)
    first = image.next_producer_id + SKIPPED_PRODUCER_IDS
    data = layout.write_producer_ids(broker_id, first - 1, first - 1)
    version = image.producer_ids_version
    if version is None:
        builder.writes.append(Create(layout.PRODUCER_ID_BLOCK, data))
    else:
        builder.writes.append(SetData(layout.PRODUCER_ID_BLOCK, data, version))
    version = 0 if version is None else version + 1
    builder.deltas.append(ProducerIdsReserved(first, version))
    return builder.plan(raised)
