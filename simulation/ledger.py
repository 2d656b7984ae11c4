"""What must always hold, checked after every step (the design's section 7).

It sees all: every log, every write to the tree, every answer to a client. For each partition
it keeps the committed records; they may only grow. What an unclean election, or the loss of the
last in-sync disk, takes away is taken out of the ledger at that moment, and at no other.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol
from uuid import UUID

from ottla.controller import layout
from ottla.controller.image import NO_LEADER, PartitionState
from ottla.coordination.tree import Node
from simulation.memory_log import Entry, MemoryLog, Value
from simulation.messages import Produced

_NO_ASSIGNMENT = layout.Assignment(())


class Violation(Exception):  # noqa: N818 - it is no error of the simulation
    """Something that must always hold does not; the text says what."""


class Disks(Protocol):
    """What lies on the brokers' disks."""

    def log(self, broker: int, partition: str) -> MemoryLog | None:
        """The replica's log, if there is one; the process may be dead."""

    def is_known(self, broker: int) -> bool:
        """False from a disk's loss until the controller has put the new one down."""


class Copy(Protocol):
    """A replica, as its broker holds it: of this topic or of a deleted one of that name."""

    name: str
    topic_id: UUID
    log: MemoryLog
    high_watermark: int


@dataclass(slots=True)
class Account:
    """What is known of one partition."""

    name: str
    topic_id: UUID
    state: PartitionState | None = None
    committed: list[Entry] = field(default_factory=list)
    leaders: dict[int, int] = field(default_factory=dict)
    """By leader epoch, as the tree says and as brokers behave."""
    floor_epoch: int = 0
    """Leaders of earlier epochs were superseded by an unclean election: nobody counts on them."""
    pending_epoch: int = 0
    """An unclean election whose leader has not begun to lead."""
    forgiven: bool = False
    """All in-sync replicas lost their disks: what was committed may be gone."""
    acknowledged: dict[Value, tuple[int, int, int]] = field(default_factory=dict)
    """Values acknowledged: (offset, leader epoch at the time, acks)."""
    latest_seen: tuple[int, int] = (-1, -1)
    """(leader epoch, offset) of the newest answer to ListOffsets."""
    losses: list[str] = field(default_factory=list)


class Ledger:
    """See the module's text. Names of partitions are `topic-index`.

    A topic whose deletion has begun is nobody's concern: its accounts are closed.
    """

    def __init__(self, disks: Disks, unclean_allowed: Callable[[str], bool]) -> None:
        self.accounts: dict[str, Account] = {}
        self.controller_epoch = 0
        self.deleted: list[Account] = []
        """Of topics that are no more."""
        self._topic_ids: dict[str, UUID] = {}
        self._disks = disks
        self._unclean_allowed = unclean_allowed

    def _account(self, name: str, topic_id: UUID | None = None) -> Account | None:
        """The partition's account, opened when first asked for; None where its topic is gone."""
        there = self._topic_ids.get(name.rpartition("-")[0])
        if there is None or topic_id not in (None, there):
            return None
        if name not in self.accounts:
            self.accounts[name] = Account(name, there)
        return self.accounts[name]

    def _log(self, broker: int, account: Account) -> MemoryLog | None:
        log = self._disks.log(broker, account.name)
        return log if log is not None and log.topic_id == account.topic_id else None

    # Writes to the tree.

    def written(self, path: str, after: Node | None) -> None:
        """A node changed, or is gone."""
        if path == layout.CONTROLLER_EPOCH and after is not None:
            epoch = int(after.data)
            if epoch < self.controller_epoch:
                raise Violation(f"controller epoch {self.controller_epoch} became {epoch}")
            self.controller_epoch = epoch
        elif path.endswith("/state") and after is not None:
            topic, index = path.split("/")[3], path.split("/")[5]
            account = self._account(f"{topic}-{index}")
            if account is not None:
                self._state_written(account, path, after)
        elif path.startswith(layout.TOPICS + "/") and path.count("/") == 3:
            topic = path.rpartition("/")[2]
            if after is None:
                self._close(topic)  # deleted in one go, its mark too
            else:
                self._topic_ids[topic] = layout.read_topic(topic, after.data)[0]
        elif path.startswith(layout.DELETED_TOPICS + "/") and after is not None:
            self._close(path.rpartition("/")[2])

    def _close(self, topic: str) -> None:
        self._topic_ids.pop(topic, None)
        for name in [name for name in self.accounts if name.rpartition("-")[0] == topic]:
            self.deleted.append(self.accounts.pop(name))

    def _state_written(self, account: Account, path: str, node: Node) -> None:
        epoch = int(json.loads(node.data)["controller_epoch"])
        if epoch != self.controller_epoch:
            raise Violation(
                f"{account.name}: controller of epoch {epoch} wrote its state, "
                f"the controller's epoch is {self.controller_epoch}"
            )
        old, new = account.state, layout.read_state(path, node.data, node.version, _NO_ASSIGNMENT)
        account.state = new
        if new.leader != NO_LEADER:
            known = account.leaders.setdefault(new.leader_epoch, new.leader)
            if known != new.leader:
                raise Violation(
                    f"{account.name}: leader epoch {new.leader_epoch} has the leaders "
                    f"{known} and {new.leader}"
                )
        if new.leader != NO_LEADER and new.leader not in new.isr:
            raise Violation(f"{account.name}: leader {new.leader} of the in-sync {new.isr}")
        if old is not None:
            self._compare(account, old, new)
        self._check_in_sync(account, new)

    def _compare(self, account: Account, old: PartitionState, new: PartitionState) -> None:
        name = account.name
        if new.leader_epoch < old.leader_epoch:
            raise Violation(f"{name}: leader epoch {old.leader_epoch} became {new.leader_epoch}")
        if new.leader not in (old.leader, NO_LEADER) and new.leader_epoch == old.leader_epoch:
            raise Violation(f"{name}: leader {new.leader} without a new leader epoch")
        # Without leave a leader from outside must have been proposed for the in-sync set, and have
        # completed a reassignment by it: `_check_in_sync` sees whether it has what is committed.
        from_outside = new.leader not in (NO_LEADER, old.leader, *old.isr)
        if from_outside and (self._unclean_allowed(name) or account.forgiven):
            account.floor_epoch = account.pending_epoch = new.leader_epoch

    def _check_in_sync(self, account: Account, state: PartitionState) -> None:
        """All that is committed is on every in-sync replica that kept its disk."""
        if account.pending_epoch:
            return
        kept = [broker for broker in state.isr if self._disks.is_known(broker)]
        if not kept:
            account.forgiven = True
        committed = account.committed
        for broker in kept:
            log = self._log(broker, account)
            if committed and (log is None or log.entries[: len(committed)] != committed):
                if account.forgiven:
                    continue
                raise Violation(
                    f"{account.name}: {broker} is in sync {state.isr} (epoch "
                    f"{state.leader_epoch}.{state.partition_epoch}) and lacks committed records: "
                    f"{_difference(log, committed)}"
                )

    def disk_lost(self, broker: int) -> None:
        """A broker's disk is gone: what only it had, among the in-sync, may be gone."""
        for account in self.accounts.values():
            state = account.state
            if state is not None and not any(
                self._disks.is_known(each) and each != broker for each in state.isr
            ):
                account.forgiven = True

    # What brokers do.

    def leads(self, broker: int, copy: Copy, epoch: int) -> None:
        """A broker begins to lead."""
        account = self._account(copy.name, copy.topic_id)
        if account is None:
            return
        if account.leaders.get(epoch) != broker:
            raise Violation(
                f"{copy.name}: {broker} leads in epoch {epoch}, whose leader is "
                f"{account.leaders.get(epoch)}"
            )
        if account.pending_epoch and epoch >= account.pending_epoch:
            self._settle(account, copy, "unclean election")
        elif account.forgiven and epoch >= account.floor_epoch:
            account.floor_epoch = epoch
            self._settle(account, copy, "no in-sync replica kept its disk")

    def _settle(self, account: Account, copy: Copy, why: str) -> None:
        account.pending_epoch = 0
        account.forgiven = False
        agreed = 0
        entries = copy.log.entries
        for mine, theirs in zip(account.committed, entries, strict=False):
            if mine != theirs:
                break
            agreed += 1
        for entry in account.committed[agreed:]:
            account.losses.append(f"{entry.value} by {why}")
        # What the new leader knew as committed is so again, lost before or not (seed 2239).
        account.committed[agreed:] = entries[agreed : max(agreed, copy.high_watermark)]
        account.latest_seen = (-1, -1)

    def leader_committed(self, broker: int, copy: Copy, epoch: int, offset: int) -> None:
        """A leader moved its high watermark."""
        name, log = copy.name, copy.log
        account = self._account(name, copy.topic_id)
        if account is None or epoch < account.floor_epoch or account.forgiven:
            return
        committed = account.committed
        agreed = min(offset, len(committed))
        if log.entries[:agreed] != committed[:agreed]:
            raise Violation(
                f"{name}: {broker}, leading in epoch {epoch}, has other records than were "
                f"committed: {_difference(log, committed[:agreed])}"
            )
        if offset > len(committed):
            committed += log.entries[len(committed) : offset]
            assert account.state is not None
            self._check_in_sync(account, account.state)

    def follower_committed(self, broker: int, copy: Copy, epoch: int, offset: int) -> None:
        """A follower moved its high watermark."""
        name, log = copy.name, copy.log
        account = self._account(name, copy.topic_id)
        if account is None or _is_out_of_count(account, epoch):
            return
        if log.entries[:offset] != account.committed[:offset]:
            raise Violation(
                f"{name}: follower {broker} has high watermark {offset} over records that are "
                f"not the committed ones: {_difference(log, account.committed[:offset])}"
            )

    # What clients see.

    def acknowledged(self, name: str, value: Value, told: Produced, acks: int) -> None:
        """A producer was told that its value is at this offset."""
        account, offset, epoch = self._account(name, told.topic_id), told.offset, told.leader_epoch
        if account is None:
            return
        account.acknowledged[value] = (offset, epoch, acks)
        if acks == 1 or _is_out_of_count(account, epoch):
            return
        committed = account.committed
        if offset >= len(committed) or committed[offset].value != value:
            raise Violation(f"{name}: {value} was acknowledged at {offset}, and is not committed")

    def read(
        self,
        name: str,
        topic_id: UUID,
        offset: int,
        entries: list[Entry],
        epoch: int,
        *,
        from_follower: bool,
    ) -> None:
        """A consumer was given these records.

        After an unclean election a follower may show what was lost by it until it has cut it.
        """
        account = self._account(name, topic_id)
        if account is None or (from_follower and account.floor_epoch):
            return
        if _is_out_of_count(account, epoch):
            return
        if account.committed[offset : offset + len(entries)] != entries:
            raise Violation(f"{name}: read at {offset} what is not committed: {entries}")

    def latest(self, name: str, told: Produced) -> None:
        """A client was told the latest offset by the leader of this epoch."""
        account, offset, epoch = self._account(name, told.topic_id), told.offset, told.leader_epoch
        if account is None or _is_out_of_count(account, epoch):
            return
        if epoch >= account.latest_seen[0]:
            if offset < account.latest_seen[1]:
                raise Violation(
                    f"{name}: latest offset {account.latest_seen[1]} in epoch "
                    f"{account.latest_seen[0]} went back to {offset} in epoch {epoch}"
                )
            account.latest_seen = (epoch, offset)


def _is_out_of_count(account: Account, epoch: int) -> bool:
    """What is said in this epoch binds nobody: what was committed may be gone by right."""
    return epoch < account.floor_epoch or account.forgiven or account.pending_epoch > 0


def check_at_end(ledger: Ledger, replicas: Mapping[str, list[MemoryLog]]) -> None:
    """The world is healed: every replica is the same, and nothing promised is missing."""
    for name, account in ledger.accounts.items():
        logs = replicas.get(name, [])
        for log in logs:
            if log.entries != logs[0].entries:
                raise Violation(
                    f"{name}: replicas differ at the end: {_difference(log, logs[0].entries)}"
                )
        if not logs:
            continue
        final = [entry.value for entry in logs[0].entries]
        _check_twins(name, final)
        lost_by_right = {loss.split(" by ")[0] for loss in account.losses}
        there = set(final)
        last_epoch = max(account.leaders)
        for value, (offset, epoch, acks) in account.acknowledged.items():
            if value in there or str(value) in lost_by_right or epoch < account.floor_epoch:
                continue
            if acks == 1 and epoch < last_epoch:
                continue
            raise Violation(
                f"{name}: {value}, acknowledged at {offset} in epoch {epoch} with acks={acks}, "
                "is lost"
            )


def _check_twins(name: str, final: list[Value]) -> None:
    last: dict[int, int] = {}
    for value in final:
        if not value.idempotent:
            continue
        if value.sequence <= last.get(value.producer, -1):
            raise Violation(f"{name}: {value} came after {last[value.producer]}: twin or reorder")
        last[value.producer] = value.sequence


def _difference(log: MemoryLog | None, wanted: list[Entry]) -> str:
    if log is None:
        return "no log at all"
    for offset, entry in enumerate(wanted):
        if offset >= len(log.entries):
            return f"ends at {offset}, {len(wanted)} wanted"
        if log.entries[offset] != entry:
            return f"offset {offset} is {log.entries[offset]}, not {entry}"
    return f"has {len(log.entries)} records, {len(wanted)} wanted"
