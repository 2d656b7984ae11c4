"""Whether an image was decided for a broker's current incarnation, or for an earlier one.

A broker that restarts may have lost its disk. If it went on leading in the epoch of its earlier
incarnation, followers would truncate records that only they have. Also, its first image may come
from a deposed controller that does not know it yet: partitions which that controller places
elsewhere, or deletes, may be here and in sync. So a broker takes a role, and deletes partitions,
only if the image's controller has processed its registration. (Kafka's controller sends the
broker's epoch with LeaderAndIsr and StopReplica for the same reason: KIP-380.)

A broker's presence in the image proves nothing: a newly elected controller has read the
registrations and has not decided anything yet. The proof is the broker's directory, which the
controller writes after the partitions, in the tree (`controller.broker_changes`) and in the deltas.
"""

from __future__ import annotations

from ottla.controller.image import NO_LEADER, ClusterImage, PartitionState


def knows_this_incarnation(
    image: ClusterImage, broker_id: int, first_epoch: int, directory_id: str | None = None
) -> bool:
    """True if the controller has processed this incarnation of the broker.

    `first_epoch` is the broker epoch of this incarnation's first registration, -1 before it. A
    later registration of the same incarnation (after its session expired) has lost nothing.
    `directory_id` is that of its data folder, if it has one: another id in the image means that a
    broker with another disk has registered under the same number, and the image is about that one.
    """
    directory = image.directories.get(broker_id)
    return (
        directory is not None
        and 0 <= first_epoch <= directory.epoch
        and directory_id in (None, directory.directory_id)
    )


def in_this_incarnation(
    state: PartitionState,
    image: ClusterImage,
    broker_id: int,
    first_epoch: int,
    directory_id: str | None = None,
    *,
    previous_epoch: int = -1,
) -> PartitionState:
    """The state as this broker may use it: without a leader if it may belong to an earlier
    incarnation.

    After a clean stop in `previous_epoch` a partition without other replicas keeps its leader at
    once: there is no follower to mislead, no record is missing, and the controller will not change
    its epoch (`controller.broker_changes`).
    """
    if knows_this_incarnation(image, broker_id, first_epoch, directory_id) or (
        len(state.replicas) == 1
        and knows_this_incarnation(image, broker_id, previous_epoch, directory_id)
        and image.directories[broker_id].epoch == previous_epoch
    ):
        return state
    return state._replace(leader=NO_LEADER)
