"""Brokers that vanish, appear, or come back in another life: one plan for all partitions touched.

A *bounced* broker has another epoch than the one known: it was away in between, whether anybody saw
it or not. One that only registered again, because its session was over, is none where nobody acted
on its absence: its process has all that it had, and leads on.

A broker that comes back with another data folder has lost what it had: it leaves the in-sync
replicas before anybody is elected. Where it was the only one, the partition has no in-sync replica
from then on and waits, unless an unclean election is allowed or asked for.

The same pass over all partitions heals what a former controller left unfinished.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from ottla.config.broker import BrokerConfig
from ottla.controller import layout
from ottla.controller.image import (
    NO_LEADER,
    BrokerAppeared,
    BrokerImage,
    BrokerVanished,
    ClusterImage,
    DirectoryChanged,
    DirectoryImage,
    PartitionState,
)
from ottla.controller.leadership import Brokers, Election, is_unclean, unclean_allowed
from ottla.controller.partition_changes import PartitionChanges
from ottla.controller.plan import Draft, Plan
from ottla.controller.reassignment import settled
from ottla.coordination.tree import Create, SetData


@dataclass(frozen=True, slots=True)
class BrokersChanged:
    """What became of the brokers and, by that, of the partitions."""

    vanished: tuple[int, ...]
    """Without the bounced ones."""
    appeared: tuple[int, ...]
    bounced: tuple[int, ...]
    without_disk: tuple[int, ...]
    """Came back with another data folder than they had."""
    elections: tuple[Election, ...]
    offline: tuple[tuple[str, int], ...]
    """Partitions that lost their leader and have no other."""


def brokers_changed(
    live: Mapping[int, BrokerImage],
    image: ClusterImage,
    config: BrokerConfig,
    *,
    shutting_down: Collection[int] = (),
) -> Plan[BrokersChanged]:
    """What follows when exactly the brokers in `live` are registered.

    `config` has the default of unclean.leader.election.enable. Whoever is in `shutting_down` is not
    chosen to lead; a bounced broker counts as having begun anew. Linear in the partitions.

    Unlike other plans, this one may have deltas without writes: brokers register themselves.
    """
    draft = Draft()
    known = image.brokers
    vanished = tuple(number for number in known if number not in live)
    appeared = tuple(number for number in live if number not in known)
    bounced = tuple(
        number
        for number, broker in live.items()
        if number in known and not broker.is_same_life(known[number].epoch)
    )
    seen = image.directories
    without_disk = tuple(
        number
        for number, broker in live.items()
        if number in seen and broker.directory_id not in (None, seen[number].directory_id)
    )
    # Began anew while no controller looked, or the one that did could not finish.
    unseen = (
        number
        for number, broker in live.items()
        if number in seen and not broker.is_same_life(seen[number].epoch)
    )
    draft.deltas += map(BrokerVanished, vanished + bounced)
    draft.deltas += (BrokerAppeared(each) for n, each in live.items() if known.get(n) != each)
    brokers = Brokers(
        live=frozenset(live),
        shutting_down=frozenset(shutting_down) - frozenset(bounced),
        gone=frozenset((*vanished, *bounced, *unseen)),
        without_disk=frozenset(without_disk),
    )
    elections, offline = settle_all(draft, image, config, brokers)
    # These come last: whoever stops before them leaves folders and epochs to be seen as new again.
    _note_directories(draft, live, image)
    return draft.plan(BrokersChanged(vanished, appeared, bounced, without_disk, elections, offline))


def settle_all(
    draft: Draft, image: ClusterImage, config: BrokerConfig, brokers: Brokers
) -> tuple[tuple[Election, ...], tuple[tuple[str, int], ...]]:
    """Give every partition the leader and in-sync replicas that it must have now.

    Returns the elections, and the partitions that are offline by it.
    """
    changes = PartitionChanges(image)
    elections: list[Election] = []
    offline: list[tuple[str, int]] = []
    # Most partitions share a few states, apart from their epochs: each is thought about once.
    decided: dict[tuple[PartitionState, bool], PartitionState] = {}
    for topic in image.topics.values():
        unclean = unclean_allowed(topic, config.unclean_leader_election_enable)
        for index, state in enumerate(topic.partitions):
            key = (state, unclean)
            after = decided.get(key)
            if after is None:
                after = decided[key] = settled(state, brokers, unclean=unclean)
            if after == state:
                continue
            changes.put(topic, index, after)
            if after.leader_epoch == state.leader_epoch:
                continue
            if after.leader == NO_LEADER:
                offline.append((topic.name, index))
                continue
            elections.append(
                Election(
                    topic.name,
                    index,
                    state.leader,
                    after.leader,
                    after.leader_epoch,
                    is_unclean(state, after, brokers),
                )
            )
    changes.into(draft)
    return tuple(elections), tuple(offline)


def _note_directories(draft: Draft, live: Mapping[int, BrokerImage], image: ClusterImage) -> None:
    for number, broker in live.items():
        directory_id, epoch = broker.directory_id, broker.epoch
        before = image.directories.get(number)
        if directory_id is None:
            continue
        path, data = layout.directory_path(number), layout.write_directory(directory_id, epoch)
        if before is None:
            version = 0
            draft.writes.append(Create(path, data))
        elif (before.directory_id, before.epoch) == (directory_id, epoch):
            continue
        else:
            version = before.version + 1
            draft.writes.append(SetData(path, data, before.version))
        directory = DirectoryImage(directory_id, epoch, version)
        draft.deltas.append(DirectoryChanged(number, directory))
