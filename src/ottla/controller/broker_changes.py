"""Brokers that vanish, appear, or return as a new incarnation: one plan for all partitions.

A *bounced* broker has another epoch than the known one: it was away in between, even if nobody
noticed. A broker that only registered again after its session expired has not bounced if nobody
acted on its absence: its process still has all its records, and goes on leading.

A restart is *clean* if the process before wrote everything to the disk in the epoch that the
controller knows of it (KIP-966). After any other one, even partitions without another replica get a
new leader epoch: the last records of any log may be lost.

A broker that returns with another data folder has lost its records: it leaves the ISR before any
election. If it was the only in-sync replica, the partition has an empty ISR from then on, and stays
offline until an unclean election is allowed or requested.

The same pass over all partitions repairs what an earlier controller left unfinished.
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
from ottla.controller.plan import Plan, PlanBuilder
from ottla.controller.reassignment import repaired
from ottla.coordination.tree import Create, SetData


@dataclass(frozen=True, slots=True)
class BrokersChanged:
    """The effect on the brokers and the partitions."""

    vanished: tuple[int, ...]
    """Does not include bounced brokers."""
    appeared: tuple[int, ...]
    bounced: tuple[int, ...]
    without_disk: tuple[int, ...]
    """Brokers that returned with another data folder."""
    elections: tuple[Election, ...]
    offline: tuple[tuple[str, int], ...]
    """Partitions that lost their leader and have no new one."""


def brokers_changed(
    live: Mapping[int, BrokerImage],
    image: ClusterImage,
    config: BrokerConfig,
    *,
    shutting_down: Collection[int] = (),
) -> Plan[BrokersChanged]:
    """The plan when exactly the brokers in `live` are registered.

    `config` holds the default of unclean.leader.election.enable. A broker in `shutting_down` is
    never elected; a bounced broker counts as restarted. The cost is linear in the partitions.

    Unlike other plans, this one may have deltas without writes: brokers register themselves.
    """
    builder = PlanBuilder()
    known = image.brokers
    vanished = tuple(number for number in known if number not in live)
    appeared = tuple(number for number in live if number not in known)
    bounced = tuple(
        number
        for number, broker in live.items()
        if number in known and not broker.is_same_incarnation(known[number].epoch)
    )
    seen = image.directories
    without_disk = tuple(
        number
        for number, broker in live.items()
        if number in seen and broker.directory_id not in (None, seen[number].directory_id)
    )
    # Brokers that restarted while there was no controller, or before it finished its work.
    unseen = (
        number
        for number, broker in live.items()
        if number in seen and not broker.is_same_incarnation(seen[number].epoch)
    )
    builder.deltas += map(BrokerVanished, vanished + bounced)
    builder.deltas += (BrokerAppeared(each) for n, each in live.items() if known.get(n) != each)
    brokers = Brokers(
        live=frozenset(live),
        shutting_down=frozenset(shutting_down) - frozenset(bounced),
        gone=frozenset((*vanished, *bounced, *unseen)),
        without_disk=frozenset(without_disk),
        unclean=frozenset(
            number
            for number, broker in live.items()
            if number not in seen or broker.previous_epoch != seen[number].epoch
        ),
    )
    elections, offline = repair_all(builder, image, config, brokers)
    # These writes come last: if a controller stops before them, the next one still sees the folders
    # and epochs as new.
    _note_directories(builder, live, image)
    return builder.plan(
        BrokersChanged(vanished, appeared, bounced, without_disk, elections, offline)
    )


def repair_all(
    builder: PlanBuilder, image: ClusterImage, config: BrokerConfig, brokers: Brokers
) -> tuple[tuple[Election, ...], tuple[tuple[str, int], ...]]:
    """Give every partition the leader and ISR that it must have now.

    Returns the elections, and the partitions that went offline.
    """
    changes = PartitionChanges(image)
    elections: list[Election] = []
    offline: list[tuple[str, int]] = []
    # Most partitions share a few states, apart from their epochs: each state is decided once.
    decided: dict[tuple[PartitionState, bool], PartitionState] = {}
    for topic in image.topics.values():
        unclean = unclean_allowed(topic, config.unclean_leader_election_enable)
        for index, state in enumerate(topic.partitions):
            key = (state, unclean)
            after = decided.get(key)
            if after is None:
                after = decided[key] = repaired(state, brokers, unclean=unclean)
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
    changes.add_to(builder)
    return tuple(elections), tuple(offline)


def _note_directories(
    builder: PlanBuilder, live: Mapping[int, BrokerImage], image: ClusterImage
) -> None:
    for number, broker in live.items():
        directory_id, epoch = broker.directory_id, broker.epoch
        before = image.directories.get(number)
        if directory_id is None:
            continue
        path, data = layout.directory_path(number), layout.write_directory(directory_id, epoch)
        if before is None:
            version = 0
            builder.writes.append(Create(path, data))
        elif (before.directory_id, before.epoch) == (directory_id, epoch):
            continue
        else:
            version = before.version + 1
            builder.writes.append(SetData(path, data, before.version))
        directory = DirectoryImage(directory_id, epoch, version)
        builder.deltas.append(DirectoryChanged(number, directory))
