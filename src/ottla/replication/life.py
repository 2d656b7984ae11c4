"""Whether an image speaks of a broker's present life, or of a former one.

A broker that begins anew may have lost its disk. Should it lead on in the epoch of its former life,
followers would cut what they alone have. And its first image may come from a controller that was
deposed without knowing: what is placed elsewhere or deleted by that one may be here and in sync. So
a broker takes a role, and deletes what it holds, only by an image whose controller has taken in its
registration. (Kafka's controller sends the broker's epoch with LeaderAndIsr and StopReplica for the
same reason: KIP-380.)

That a broker is among the registered shows nothing: a controller that was just elected has read the
registrations and has not decided anything yet. What shows it is the broker's directory, which the
controller notes after the partitions, in the tree (`controller.broker_changes`) as in the deltas.
"""

from __future__ import annotations

from ottla.controller.image import NO_LEADER, ClusterImage, PartitionState


def knows_this_life(
    image: ClusterImage, broker_id: int, first_epoch: int, directory_id: str | None = None
) -> bool:
    """True where the controller has decided in the knowledge of this life of the broker.

    `first_epoch` is the broker epoch of the first registration of this life, -1 before it. A later
    registration of the same life (its session had expired) has lost nothing. `directory_id` is that
    of its data folder, where there is one: another in the image means that a broker with another
    disk has taken the number since, and the image speaks of that one.
    """
    directory = image.directories.get(broker_id)
    return (
        directory is not None
        and 0 <= first_epoch <= directory.epoch
        and directory_id in (None, directory.directory_id)
    )


def in_this_life(
    state: PartitionState,
    image: ClusterImage,
    broker_id: int,
    first_epoch: int,
    directory_id: str | None = None,
) -> PartitionState:
    """The state as this broker may believe it: without a leader, where it may be of a former life.

    A partition without other replicas keeps its leader: nobody can be misled there.
    """
    if len(state.replicas) == 1 or knows_this_life(image, broker_id, first_epoch, directory_id):
        return state
    return state._replace(leader=NO_LEADER)
