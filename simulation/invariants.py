"""The invariants, checked after every step of a broker and every write to the tree.

For each partition this module keeps the committed records as offsets with epoch and checksum. They
may only grow, and every in-sync replica that kept its disk has all of them. Only an unclean
election, or the loss of the last in-sync disk, may remove records, and only at that moment. The
records are read from the brokers' log files. A topic in deletion is no longer checked.

- In one leader epoch an offset has one batch: an epoch that goes on after its leader lost records
  would let consumers skip the new ones.
- A log begins where DeleteRecords was asked to begin it, or before, and that of a new topic at 0.
- A topic whose deletion was refused is not deleted later.
- Batches of a compacted topic change and vanish: for these only epochs and ends are compared.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import repeat
from operator import attrgetter
from typing import Any, Final, NamedTuple
from uuid import UUID

from ottla.controller import layout
from ottla.controller.image import NO_LEADER, PartitionState
from ottla.coordination.tree import TreeNode
from ottla.replica.partition_role import Role
from simulation.broker import Broker
from simulation.replicas import NOTHING, Entry, Replica
from simulation.violation import Violation

_NO_ASSIGNMENT: Final = layout.Assignment(())


class _Seen(NamedTuple):
    """A partition after the last step of its broker."""

    role: Role
    epoch: int
    high_watermark: int
    end_offset: int


_NEW: Final = _Seen(Role.NONE, -1, -1, -1)
_STATE_OF: Final = attrgetter("role", "leader_epoch", "high_watermark", "log.end_offset")
"""The fields of `_Seen`, of a broker's partition."""


@dataclass(slots=True)
class Account:
    """The known state of one partition."""

    name: str
    state: PartitionState | None = None
    committed: list[Entry] = field(default_factory=list)
    leaders: dict[int, int] = field(default_factory=dict)
    """By leader epoch, from the tree."""
    floor_epoch: int = 0
    """An unclean election replaced the leaders of earlier epochs."""
    pending_epoch: int = 0
    """An unclean election whose leader does not lead yet."""
    is_forgiven: bool = False
    """All in-sync replicas lost records: committed records may be gone."""
    was_forgiven: bool = False
    acknowledged: dict[Entry, int] = field(default_factory=dict)
    lost: dict[Entry, str] = field(default_factory=dict)
    """Committed batches that were lost as allowed, each with its reason."""
    latest: tuple[int, int] = (-1, -1)
    """(leader epoch, offset) of the newest response to ListOffsets."""
    written: dict[tuple[int, int], int] = field(default_factory=dict)
    """The checksum of the batch of each leader epoch and base offset."""
    deleted_before: int = 0
    """DeleteRecords was asked to delete what is before this offset."""

    def is_open(self, epoch: int) -> bool:
        """Whether records committed in this epoch are allowed to be lost."""
        return epoch < self.floor_epoch or self.is_forgiven or self.pending_epoch > 0


_NONE: Final[tuple[list[Any], list[tuple[Role, int, int, int]]]] = ([], [])


class Invariants:
    """The committed records of a simulated cluster, and the checks against them."""

    def __init__(
        self,
        brokers: Mapping[int, Broker],
        unclean_allowed: Callable[[str], bool],
        note: Callable[[str], None],
        synced_bytes: Callable[[str], int] | None,
        compacted: frozenset[str] = frozenset(),
    ) -> None:
        """`unclean_allowed` takes the name of a partition. `synced_bytes` returns how much of a
        file is synced, if acknowledged records must be (flush.messages=1); None otherwise.
        `compacted`: the compacted topics.
        """
        self.accounts: dict[tuple[UUID, int], Account] = {}
        self.controller_epoch = 0
        self._brokers = brokers
        self._unclean_allowed = unclean_allowed
        self._note = note
        self._synced_bytes = synced_bytes
        self._compacted = compacted
        self._refused: dict[str, str] = {}
        """Topics that stay: why their last deletion was refused."""
        self._topic_ids: dict[str, UUID] = {}
        self._replicas: dict[tuple[int, UUID, int], Replica] = {}
        self._states: dict[int, tuple[list[Any], list[tuple[Role, int, int, int]]]] = {}
        """By broker: its partitions and their states after its last step."""
        self._seen: dict[Any, _Seen] = {}
        """By the brokers' partition objects, which end with their processes."""
        self._lost_at: dict[int, int] = {}
        """Brokers that lost their disk, with the tree's last change at that time."""
        self._torn: dict[tuple[int, UUID, int], int] = {}
        """Replicas that lost unsynced records, and how many they had, until they have as many and
        all committed ones again: a leader that was paused may still count their last fetch. For the
        controller this looks like a crash, so they may stay in the ISR, as in Apache Kafka.
        """

    def account(self, topic: str, index: int) -> Account | None:
        """The partition's account; None if its topic does not exist."""
        topic_id = self._topic_ids.get(topic)
        return None if topic_id is None else self._account(topic, topic_id, index)

    def forgiven(self, topic: str) -> set[int]:
        """Partitions of the topic that were ever allowed to lose committed records."""
        accounts = {index: account for (id_, index), account in self.accounts.items()
                    if id_ == self._topic_ids.get(topic)}  # fmt: skip
        return {index for index, account in accounts.items() if account.was_forgiven}

    def topic_id(self, topic: str) -> UUID | None:
        """None if there is no such topic, or it is in deletion."""
        return self._topic_ids.get(topic)

    def end_of(self, broker: int, topic: str, index: int) -> int:
        """How far a broker's log goes, also while it is down; 0 if it has none."""
        topic_id = self._topic_ids.get(topic)
        return 0 if topic_id is None else len(self._entries(broker, (topic_id, index)))

    # Requests of an operator.

    def deleting_records(self, topic: str, index: int, before: int) -> None:
        """DeleteRecords is about to be asked for."""
        account = self.account(topic, index)
        if account is not None:
            account.deleted_before = max(account.deleted_before, before)

    def deleting(self, topic: str) -> None:
        """DeleteTopics is about to be asked for: the topic may vanish from now on."""
        self._refused.pop(topic, None)

    def deletion_refused(self, topic: str, why: str) -> None:
        """The answer was an error: the topic is there and stays, or is gone. Where the first
        controller did not know what became of its plan, the next one may have completed it."""
        if topic in self._topic_ids:
            self._refused[topic] = why

    def _account(self, topic: str, topic_id: UUID, index: int) -> Account | None:
        if self._topic_ids.get(topic) != topic_id:
            return None
        key = topic_id, index
        if key not in self.accounts:
            self.accounts[key] = Account(f"{topic}-{index}")
        return self.accounts[key]

    # Writes to the tree.

    def written(self, path: str, after: TreeNode | None) -> None:
        """A node of the tree was changed or deleted. Raises Violation."""
        parts = path.split("/")
        if path == layout.CONTROLLER_EPOCH and after is not None:
            epoch = int(after.data)
            if epoch < self.controller_epoch:
                raise Violation(f"controller epoch {self.controller_epoch} became {epoch}")
            self.controller_epoch = epoch
        elif path.endswith("/state") and after is not None:
            account = self.account(parts[3], int(parts[5]))
            if account is not None:
                self._state_written(account, (self._topic_ids[parts[3]], int(parts[5])), after)
        elif path.startswith(f"{layout.TOPICS}/") and len(parts) == 4:
            if after is None:
                self._close(parts[3])
            else:
                self._topic_ids[parts[3]] = layout.read_topic(parts[3], after.data)[0]
        elif path.startswith(f"{layout.DELETED_TOPICS}/") and after is not None:
            self._close(parts[3])
        elif path.startswith(f"{layout.DIRECTORIES}/") and after is not None:
            number = int(parts[3])
            if json.loads(after.data)["epoch"] > self._lost_at.get(number, 1 << 62):
                del self._lost_at[number]

    def _close(self, topic: str) -> None:
        why = self._refused.pop(topic, None)
        if why is not None:
            raise Violation(f"{topic} is deleted, and the last answer to its deletion was {why}")
        topic_id = self._topic_ids.pop(topic, None)
        for key in [key for key in self.accounts if key[0] == topic_id]:
            del self.accounts[key]

    def _state_written(self, account: Account, key: tuple[UUID, int], node: TreeNode) -> None:
        epoch = int(json.loads(node.data)["controller_epoch"])
        if epoch != self.controller_epoch:
            raise Violation(
                f"{account.name}: a controller of epoch {epoch} wrote its state, the controller's "
                f"epoch is {self.controller_epoch}"
            )
        new = layout.read_state(account.name, node.data, node.version, _NO_ASSIGNMENT)
        old, account.state = account.state, new
        if new.leader != NO_LEADER:
            known = account.leaders.setdefault(new.leader_epoch, new.leader)
            if known != new.leader:
                raise Violation(
                    f"{account.name}: leader epoch {new.leader_epoch} has the leaders {known} and "
                    f"{new.leader}"
                )
            if new.leader not in new.isr:
                raise Violation(f"{account.name}: leader {new.leader} of the in-sync {new.isr}")
        if old is not None:
            self._compare(account, old, new)
        self._check_in_sync(account, key, new)

    def _compare(self, account: Account, old: PartitionState, new: PartitionState) -> None:
        name = account.name
        if new.leader_epoch < old.leader_epoch:
            raise Violation(f"{name}: leader epoch {old.leader_epoch} became {new.leader_epoch}")
        if new.leader not in (old.leader, NO_LEADER) and new.leader_epoch == old.leader_epoch:
            raise Violation(f"{name}: leader {new.leader} without a new leader epoch")
        # If unclean elections are not allowed, a leader from outside the ISR can only be one that
        # a reassignment just added to it: `_check_in_sync` checks its log.
        from_outside = new.leader not in (NO_LEADER, old.leader, *old.isr)
        if from_outside and (self._unclean_allowed(name) or account.is_forgiven):
            account.floor_epoch = account.pending_epoch = new.leader_epoch

    def _check_in_sync(
        self, account: Account, key: tuple[UUID, int], state: PartitionState
    ) -> None:
        """Check that every in-sync replica that kept its disk has all committed records."""
        if account.pending_epoch:
            return
        kept = [each for each in state.isr if self._kept(each, key)]
        if not kept or (state.leader, *key) in self._torn:
            self._forgive(account)
        committed = account.committed
        for broker in kept:
            if not self._has(broker, key, committed) and not account.is_forgiven:
                raise Violation(
                    f"{account.name}: {broker} is in sync {state.isr} (epoch "
                    f"{state.leader_epoch}.{state.partition_epoch}) and lacks committed records: "
                    f"{_difference(self._entries(broker, key), committed)}"
                )

    def _kept(self, broker: int, key: tuple[UUID, int]) -> bool:
        return broker not in self._lost_at and (broker, *key) not in self._torn

    def _has(self, broker: int, key: tuple[UUID, int], committed: list[Entry]) -> bool:
        """Whether a log begins with these entries. Earlier entries were compared before, so only
        the last one is compared, unless it differs."""
        replica, last = self._replicas.get((broker, *key)), len(committed) - 1
        if last < 0:
            return True
        if replica is None or len(replica.entries) <= last:
            return False
        return _agrees(replica, last, committed[last])

    def _entries(self, broker: int, key: tuple[UUID, int]) -> list[Entry]:
        replica = self._replicas.get((broker, *key))
        return [] if replica is None else replica.entries

    def _forgive(self, account: Account) -> None:
        if not account.is_forgiven:
            self._note(f"{account.name} may lose what its last in-sync replica lost")
        account.is_forgiven = account.was_forgiven = True

    # Disks.

    def disk_lost(self, number: int, last_change: int) -> None:
        """A broker that is down lost its disk; `last_change` is the tree's."""
        self._lost_at[number] = last_change
        for (broker, *_), replica in self._replicas.items():
            if broker == number:
                replica.clear()
        self._forgive_what_is_lost()

    def power_lost(self, number: int) -> None:
        """A broker that is down lost some of what it had not synced."""
        names = {topic_id: topic for topic, topic_id in self._topic_ids.items()}
        for key, replica in self._replicas.items():
            broker, topic_id, index = key
            if broker == number and topic_id in names:
                before = len(replica.entries)
                replica.update_from_folder(
                    self._brokers[number].folder / f"{names[topic_id]}-{index}"
                )
                if len(replica.entries) < before:
                    self._torn[key] = max(before, self._torn.get(key, 0))
        self._forgive_what_is_lost()

    def _forgive_what_is_lost(self) -> None:
        for key, account in self.accounts.items():
            state = account.state
            if state is not None and not any(self._kept(each, key) for each in state.isr):
                self._forgive(account)

    # Brokers.

    def stepped(self, broker: Broker) -> None:
        """A callback of the broker has run. Raises Violation."""
        node = broker.node
        if node is None:
            return
        # Most steps change nothing, and every step is checked.
        # Of an iterator, which has no length to ask for.
        partitions = list(iter(node.partitions))
        states = list(map(_STATE_OF, partitions))
        known = self._states.get(broker.number, _NONE)
        if states == known[1] and partitions == known[0]:
            return
        self._states[broker.number] = partitions, states
        before: Iterable[Any] = known[1] if partitions == known[0] else repeat(None)
        for partition, state, former in zip(partitions, states, before, strict=False):
            if state != former:
                self._may_have_changed(broker.number, partition, _Seen(*state))

    def _may_have_changed(self, broker: int, partition: Any, now: _Seen) -> None:
        before = self._seen.get(partition, _NEW)
        if now != before:
            self._seen[partition] = now
            self._changed(broker, partition, before, now)

    def _changed(self, broker: int, partition: Any, before: _Seen, now: _Seen) -> None:
        key = partition.topic_id, partition.index
        account = self._account(partition.topic, *key)
        if account is None:
            return
        replica = self._replicas.get((broker, *key))
        if replica is None:
            replica = Replica(is_compacted=partition.topic in self._compacted)
            self._replicas[broker, *key] = replica
        if now._replace(high_watermark=before.high_watermark) != before:
            replica.update(partition.log)
            if not replica.is_compacted:
                check_epochs(account, broker, replica.taken)
        replica.start = partition.log.start_offset
        entries = replica.entries
        if len(entries) != now.end_offset:
            raise Violation(
                f"{account.name}: the log of {broker} ends at {now.end_offset}, its files at "
                f"{len(entries)}"
            )
        if replica.start > account.deleted_before:
            raise Violation(
                f"{account.name}: the log of {broker} begins at {replica.start}, and only what is "
                f"before {account.deleted_before} was to be deleted"
            )
        had = self._torn.get((broker, *key))
        if had is not None and len(entries) >= had and self._has(broker, key, account.committed):
            del self._torn[broker, *key]
        if now.role is Role.LEADER:
            if (before.role, before.epoch) != (Role.LEADER, now.epoch):
                self._leads(broker, account, replica, now)
            if now.high_watermark > before.high_watermark or before.role is not Role.LEADER:
                self._leader_committed(broker, account, key, replica, now)
        elif now.high_watermark > before.high_watermark and before[:2] == now[:2]:
            # At first it has its checkpointed one, and records that it has yet to truncate.
            self._follower_committed(broker, account, replica, now)

    def _leads(self, broker: int, account: Account, replica: Replica, now: _Seen) -> None:
        if account.leaders.get(now.epoch) != broker:
            raise Violation(
                f"{account.name}: {broker} leads in epoch {now.epoch}, whose leader is "
                f"{account.leaders.get(now.epoch)}"
            )
        if account.pending_epoch and now.epoch >= account.pending_epoch:
            self._trim(account, replica, now, "an unclean election")
        elif account.is_forgiven and now.epoch >= account.floor_epoch:
            account.floor_epoch = now.epoch
            self._trim(account, replica, now, "the loss of all in-sync disks")

    def _trim(self, account: Account, replica: Replica, now: _Seen, why: str) -> None:
        account.pending_epoch, account.is_forgiven = 0, False
        entries = replica.entries
        agreed = _agreed(replica, account.committed)
        account.lost.update(dict.fromkeys(account.committed[agreed:], why))
        # Records below the new leader's high watermark are committed again, lost before or not.
        account.committed[agreed:] = entries[agreed : max(agreed, now.high_watermark)]
        account.latest = (-1, -1)

    def _leader_committed(
        self,
        broker: int,
        account: Account,
        key: tuple[UUID, int],
        replica: Replica,
        now: _Seen,
    ) -> None:
        """A leader advanced its high watermark."""
        if now.epoch < account.floor_epoch or account.is_forgiven:
            return
        committed, entries = account.committed, replica.entries
        agreed = min(now.high_watermark, len(committed))
        if agreed and not _agrees(replica, agreed - 1, committed[agreed - 1]):
            raise Violation(
                f"{account.name}: {broker}, leading in epoch {now.epoch}, has other records than "
                f"were committed: {_difference(entries, committed[:agreed])}"
            )
        if now.high_watermark > len(committed):
            committed += entries[len(committed) : now.high_watermark]
            if account.state is not None:
                self._check_in_sync(account, key, account.state)

    def _follower_committed(
        self, broker: int, account: Account, replica: Replica, now: _Seen
    ) -> None:
        if account.is_open(now.epoch):
            return
        committed, offset, entries = account.committed, now.high_watermark, replica.entries
        if offset > len(committed) or (
            offset and not _agrees(replica, offset - 1, committed[offset - 1])
        ):
            raise Violation(
                f"{account.name}: follower {broker} has high watermark {offset} over records that "
                f"are not the committed ones: {_difference(committed, entries[:offset])}"
            )

    # Clients.

    def acknowledged(
        self, topic: str, index: int, offset: int, crc: int, topic_id: UUID | None = None
    ) -> None:
        """A broker acknowledged a producer's batch at this offset (acks=all). `topic_id`: the topic
        that the producer named, if it did; another one of the same name may have its place now."""
        account = self.account(topic, index)
        if topic_id is not None and topic_id != self._topic_ids.get(topic):
            return
        if account is None or account.is_open(account.floor_epoch):
            return
        if not self._is_synced(account, topic, index, offset, crc):
            raise Violation(f"{account.name}: offset {offset} was acknowledged and is on no disk")
        found = account.committed[offset] if offset < len(account.committed) else None
        if found is not None and found.crc == crc:
            account.acknowledged[found] = offset
        elif not account.floor_epoch:
            raise Violation(
                f"{account.name}: a batch was acknowledged at {offset}, and is not committed"
            )

    def _is_synced(self, account: Account, topic: str, index: int, offset: int, crc: int) -> bool:
        """Whether the leader that acknowledged a batch has synced it; True if it does not have to,
        or no longer leads in the same epoch."""
        if self._synced_bytes is None or account.state is None:
            return True
        broker = self._brokers.get(account.state.leader)
        if broker is None or not broker.is_up:
            return True
        replica = self._replicas.get((broker.number, self._topic_ids[topic], index))
        if replica is None or offset >= len(replica.entries):
            return True
        entry = replica.entries[offset]
        if entry.crc != crc or entry.leader_epoch != account.state.leader_epoch:
            return True
        return replica.synced_by(offset, self._synced_bytes)

    def read(self, topic: str, index: int, offset: int, next_offset: int, crc: int) -> None:
        """A consumer fetched this batch."""
        account = self.account(topic, index)
        if account is None or account.floor_epoch or account.is_open(0):
            return
        last = next_offset - 1
        if last >= len(account.committed) or account.committed[last].crc != crc:
            raise Violation(f"{account.name}: read at {offset} what is not committed")

    def latest(self, topic: str, index: int, offset: int, epoch: int) -> None:
        """The leader of this epoch returned this latest offset to a client."""
        account = self.account(topic, index)
        if account is None or account.is_open(epoch) or epoch < account.latest[0]:
            return
        if offset < account.latest[1]:
            raise Violation(
                f"{account.name}: latest offset {account.latest[1]} in epoch {account.latest[0]} "
                f"went back to {offset} in epoch {epoch}"
            )
        account.latest = (epoch, offset)

    def epoch_of(self, topic: str, index: int, offset: int, crc: int) -> int:
        """The newest leader epoch in which a replica ever had this batch at this offset; -1 if none
        had it."""
        topic_id = self._topic_ids.get(topic)
        return max(
            (
                replica.epochs.get((offset, crc), -1)
                for (_, *key), replica in self._replicas.items()
                if key == [topic_id, index]
            ),
            default=-1,
        )

    def ended(self) -> None:
        """The run is over and all replicas are equal: check that no acknowledged record is lost.
        Raises Violation."""
        for key, account in self.accounts.items():
            state = account.state
            if state is None or state.leader == NO_LEADER:
                continue
            there = set(self._entries(state.leader, key))
            start = self._replicas[state.leader, *key].start if there else 0
            for entry, offset in account.acknowledged.items():
                if offset >= start and entry not in there and entry not in account.lost:
                    raise Violation(
                        f"{account.name}: a batch acknowledged at {offset} in epoch "
                        f"{entry.leader_epoch} is lost"
                    )


def check_epochs(account: Account, broker: int, batches: Iterable[tuple[int, int, int]]) -> None:
    """A log has these batches: leader epoch, base offset, checksum. Raises Violation."""
    for epoch, offset, crc in batches:
        if account.written.setdefault((epoch, offset), crc) != crc:
            raise Violation(
                f"{account.name}: {broker} has another batch at {offset} in epoch {epoch} than was "
                "there before"
            )


def _agrees(replica: Replica, offset: int, wanted: Entry) -> bool:
    """Whether a log has what is wanted at an offset, or may have nothing there."""
    found = replica.entries[offset]
    if found == wanted or wanted is NOTHING:
        return True
    return found is NOTHING and (replica.is_compacted or offset < replica.start)


def _agreed(replica: Replica, wanted: list[Entry]) -> int:
    for offset, each in enumerate(wanted[: len(replica.entries)]):
        if not _agrees(replica, offset, each):
            return offset
    return min(len(replica.entries), len(wanted))


def _difference(entries: list[Entry], wanted: list[Entry]) -> str:
    agreed = 0
    while agreed < min(len(entries), len(wanted)) and entries[agreed] == wanted[agreed]:
        agreed += 1
    if agreed == len(entries) < len(wanted):
        return f"ends at {agreed}, {len(wanted)} wanted"
    if agreed < len(wanted):
        return f"offset {agreed} is of epoch {entries[agreed].leader_epoch}, not of " \
               f"{wanted[agreed].leader_epoch}"  # fmt: skip
    return f"has {len(entries)} records, {len(wanted)} wanted"
