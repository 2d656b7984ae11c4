"""What transactions with records should have done. Pure.

Every record has a value of its own: transactional id, number of the transaction, position in it. So
what readers get says which transactions were committed:

- read_committed returns no record of a transaction that is open or aborted, and none twice.
- It returns the records of one transactional id in the order in which they were sent.
- In the end it has returned all acknowledged records of a committed transaction, in all partitions,
  and none of any other one: no transaction is partly visible.
- A transaction's number, which it commits as the offset of a group, is committed if its records
  are, and is not if they are not. The group's offset never goes back.
- read_uncommitted returns every acknowledged record, also those of aborted transactions.
- A producer commits nothing after a newer one with its transactional id was initialized.
- A producer is fenced only by another one, or because its transaction timed out.

What DeleteRecords was asked to delete may be missing, and every record that may be among it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from simulation.instances import Instances
from simulation.ledger import NOTHING, Fate

PartitionKey = tuple[str, int]
"""Topic and partition."""


class Value(NamedTuple):
    """The value of a record."""

    name: str
    number: int
    position: int

    def encode(self) -> bytes:
        return f"{self.name}/{self.number}/{self.position}".encode()


def decode(value: bytes) -> Value:
    """The inverse of `Value.encode`."""
    name, number, position = value.decode().rsplit("/", 2)
    return Value(name, int(number), int(position))


@dataclass(slots=True)
class _Transaction:
    """What is known of one transaction."""

    begun_ms: int
    fate: Fate = Fate.OPEN
    next_position: int = 0
    acknowledged: dict[int, tuple[PartitionKey, int]] = field(default_factory=dict)
    """By position; with the offset, -1 where it is unknown."""
    has_offset: bool = False
    """Its number is accepted as the offset of the ledger's group,"""
    has_own_offset: bool = False
    """as that of the group that only this transaction has."""


class RecordLedger:
    """The transactions of one transactional id. `anomalies` says what went wrong."""

    def __init__(
        self, name: str, timeout_ms: int, clock_spread_ms: Callable[[], int] = lambda: 0
    ) -> None:
        """`timeout_ms` is that of the transactions, `clock_spread_ms` how far apart the
        coordinators' clocks may have been."""
        self.name = name
        self.timeout_ms = timeout_ms
        self._clock_spread_ms = clock_spread_ms
        self.anomalies: list[str] = []
        self.offset_anomalies: list[str] = []
        """Those that a loss of committed offsets would explain."""
        self.instances = Instances()
        self.committed = 0
        """How many transactions are known to be committed."""
        self._written: dict[tuple[int, PartitionKey], None] = {}
        self._transactions: dict[int, _Transaction] = {}
        self._committed_reads: dict[Value, PartitionKey] = {}
        self._uncommitted_reads: dict[Value, PartitionKey] = {}
        self._last_read: dict[PartitionKey, Value] = {}
        self._deleted: dict[PartitionKey, int] = {}
        """Up to where DeleteRecords was asked to delete records."""
        self._offset_floor = NOTHING

    # Groups.

    @property
    def group(self) -> str:
        """The group in which transactions commit their numbers."""
        return f"{self.name}-group"

    def own_group(self, number: int) -> str:
        """A group in which no other transaction commits anything."""
        return f"{self.name}-group-{number}"

    @property
    def mixed_group(self) -> str:
        """A group with offsets from outside of transactions, too; the ledger does not follow it."""
        return f"{self.name}-mixed"

    @property
    def own_groups(self) -> list[int]:
        """The transactions that have a group of their own."""
        return [number for number, each in self._transactions.items() if each.has_own_offset]

    @property
    def offset_floor(self) -> int:
        """The largest number that is known to be committed as the group's offset."""
        return self._offset_floor

    # Producers.

    def may_be_forgotten(self, partition_key: PartitionKey) -> bool:
        """A replica that is emptied, because its leader's log begins after its end, forgets the
        producers of what was deleted, as in Kafka."""
        return partition_key in self._deleted

    def begun(self, now_ms: int) -> int:
        """A transaction begins; returns its number."""
        number = len(self._transactions) + 1
        self._transactions[number] = _Transaction(now_ms)
        return number

    def sending(self, number: int) -> Value:
        """The value of the transaction's next record."""
        transaction = self._transactions[number]
        position = transaction.next_position
        transaction.next_position += 1
        return Value(self.name, number, position)

    def acknowledged(self, value: Value, partition_key: PartitionKey, offset: int = -1) -> None:
        """A record of an open transaction is on all in-sync replicas; -1: at an unknown offset."""
        self._transactions[value.number].acknowledged[value.position] = partition_key, offset

    def deleting(self, partition_key: PartitionKey, before: int) -> None:
        """DeleteRecords is about to be asked for."""
        self._deleted[partition_key] = max(before, self._deleted.get(partition_key, 0))

    def is_new(self, producer_id: int, partition_key: PartitionKey) -> bool:
        """Whether this producer has had no records acknowledged there."""
        return (producer_id, partition_key) not in self._written

    def written(self, producer_id: int, partition_key: PartitionKey) -> None:
        """The producer's records there are acknowledged."""
        self._written[producer_id, partition_key] = None

    def offset_accepted(self, number: int) -> None:
        """The group's coordinator has the number as an offset of the open transaction."""
        self._transactions[number].has_offset = True

    def own_offset_accepted(self, number: int) -> None:
        """The same for the transaction's own group."""
        self._transactions[number].has_own_offset = True

    def committing(self, number: int) -> None:
        """Its commit is requested."""
        self._transactions[number].fate = Fate.UNKNOWN

    def ended(self, number: int, *, is_commit: bool, was_fenced: bool) -> None:
        """Its end is answered with success; `was_fenced`: already when the end was requested."""
        if not is_commit:
            self._abort(number)
            return
        if was_fenced:
            self._fail(f"a fenced producer committed {number}")
        self._commit(number)

    def refused(self, token: int, number: int, now_ms: int, why: str) -> None:
        """The producer of this token was told that it is fenced, in this transaction."""
        begun_ms = self._transactions[number].begun_ms
        may_be_over = now_ms - begun_ms + self._clock_spread_ms() >= self.timeout_ms
        is_explained = self.instances.may_be_fenced(token, now_ms) or may_be_over
        if not is_explained:
            self._fail(f"the only producer was fenced in {number}, {now_ms - begun_ms} ms: {why}")

    def out_of_order(self, value: Value) -> None:
        """The first batch that has no answer yet was refused for its sequence."""
        self._fail(f"{value.number}.{value.position} was refused, though all before were accepted")

    def fenced_by_produce(self, number: int) -> None:
        """A partition's leader answered with the coordinator's word, which ends a client; it has to
        say INVALID_PRODUCER_EPOCH, upon which clients abort (KAFKA-14278)."""
        self._fail(f"{number}: Produce returned PRODUCER_FENCED")

    # Readers.

    def read(self, value: Value, partition_key: PartitionKey) -> None:
        """A record was returned under read_committed."""
        what = f"{value.number}.{value.position}"
        transaction = self._transactions[value.number]
        if transaction.fate in (Fate.OPEN, Fate.ABORTED):
            self._fail(f"{what} was read, and its transaction is {transaction.fate.value}")
        if value in self._committed_reads:
            self._fail(
                f"{what} was read twice, in {self._committed_reads[value]} and {partition_key}"
            )
        last = self._last_read.get(partition_key)
        if last is not None and value <= last:
            self._fail(f"{what} was read after {last.number}.{last.position} in {partition_key}")
        self._committed_reads[value] = partition_key
        self._last_read[partition_key] = value
        if transaction.fate is Fate.UNKNOWN:
            self._commit(value.number)

    def read_uncommitted(self, value: Value, partition_key: PartitionKey) -> None:
        """A record was returned under read_uncommitted."""
        if value in self._uncommitted_reads:
            self._fail(f"{value.number}.{value.position} is in the log twice, in {partition_key}")
        self._uncommitted_reads[value] = partition_key

    def read_offset(self, number: int, floor: int) -> None:
        """The group has this stable offset; `floor` is `offset_floor` before the request."""
        if number < floor:
            self._fail_offset(f"the offset is {number}, after {floor} was committed")
        if number == NOTHING:
            return
        transaction = self._transactions[number]
        if transaction.fate in (Fate.OPEN, Fate.ABORTED):
            self._fail_offset(
                f"the offset of {number} is committed, and it is {transaction.fate.value}"
            )
        elif transaction.fate is Fate.UNKNOWN:
            self._commit(number)

    def settle_offset(self, number: int) -> None:
        """No transaction is open, and this is the group's offset. Called before `settle`."""
        self.read_offset(number, self._offset_floor)
        for later, transaction in self._transactions.items():
            if later > number and transaction.has_offset and transaction.fate is Fate.UNKNOWN:
                # Its records must not be readable either.
                self._abort(later)

    def settle_own_offset(self, number: int, offset: int) -> None:
        """The same for the transaction's own group."""
        transaction = self._transactions[number]
        if offset == number:
            self.read_offset(number, NOTHING)
        elif offset != NOTHING:
            self._fail_offset(f"the own offset of {number} is {offset}")
        elif transaction.fate is Fate.COMMITTED:
            self._fail_offset(f"{number} is committed, and its own offset is not")
        elif transaction.fate is Fate.UNKNOWN:
            self._abort(number)

    def settle(self, partitions: set[PartitionKey]) -> None:
        """No transaction is open, and both kinds of readers have read all of these partitions."""
        for number, transaction in self._transactions.items():
            if transaction.fate in (Fate.OPEN, Fate.UNKNOWN):
                self._abort(number)
            for position, (partition_key, offset) in transaction.acknowledged.items():
                if partition_key not in partitions or offset < self._deleted.get(partition_key, -1):
                    continue
                value, what = (
                    Value(self.name, number, position),
                    f"{number}.{position} of {partition_key}",
                )
                if value not in self._uncommitted_reads:
                    self._fail(f"{what} was acknowledged and is not in the log")
                if transaction.fate is Fate.COMMITTED and value not in self._committed_reads:
                    self._fail(f"{what} was committed and cannot be read")

    def _abort(self, number: int) -> None:
        transaction = self._transactions[number]
        if transaction.fate is Fate.COMMITTED:
            self._fail(f"{number} was aborted after it was committed")
        transaction.fate = Fate.ABORTED

    def _commit(self, number: int) -> None:
        transaction = self._transactions[number]
        if transaction.fate is Fate.ABORTED:
            self._fail(f"{number} was committed after it was aborted")
        if transaction.fate is not Fate.COMMITTED:
            self.committed += 1
        transaction.fate = Fate.COMMITTED
        if transaction.has_offset:
            self._offset_floor = max(self._offset_floor, number)

    def _fail_offset(self, what: str) -> None:
        self.offset_anomalies.append(f"{self.name}: {what}")

    def _fail(self, what: str) -> None:
        self.anomalies.append(f"{self.name}: {what}")
