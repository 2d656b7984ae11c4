"""What compaction knows of transactions while it reads a log's batches in order: which batches were
aborted, and which markers have lost all records of their transaction.

Modelled on Kafka's CleanedTransactionMetadata. A marker is needed as long as a batch of its
transaction is in the log, even an empty one: without it the transaction would be open again after a
restart. Pure.
"""

from collections.abc import Iterable
from heapq import heappop, heappush

from ottla.log.transaction_index import AbortedTransaction
from ottla.records.control import ControlType
from ottla.records.header import BatchHeader


class _Aborted:
    """An aborted transaction that the reading is in."""

    __slots__ = ("entry", "has_batches")

    def __init__(self, entry: AbortedTransaction) -> None:
        self.entry = entry
        self.has_batches = False


class CleanedTransactions:
    """The transactions of one round. `kept` are the entries for the index of the segment that is
    written now.
    """

    def __init__(self) -> None:
        self.kept: list[AbortedTransaction] = []
        self._coming: list[tuple[int, AbortedTransaction]] = []
        """A heap by first offset."""
        self._aborted: dict[int, _Aborted] = {}
        self._committed: set[int] = set()

    def add_aborted(self, entries: Iterable[AbortedTransaction]) -> None:
        """The aborted transactions of the segment that is read next."""
        for entry in entries:
            heappush(self._coming, (entry.first_offset, entry))

    def batch_read(self, header: BatchHeader) -> bool:
        """Whether this batch of records was aborted: nobody needs it."""
        self._begin_up_to(header.last_offset)
        if not header.is_transactional:
            return False
        aborted = self._aborted.get(header.producer_id)
        if aborted is None:
            self._committed.add(header.producer_id)
            return False
        aborted.has_batches = True
        return True

    def marker_read(self, header: BatchHeader, kind: ControlType | None) -> bool:
        """Whether no batch of the marker's transaction was left. `kind` is None if the marker's
        batch is empty already.
        """
        self._begin_up_to(header.last_offset)
        if kind is None:
            return True
        if kind is ControlType.commit:
            had_batches = header.producer_id in self._committed
            self._committed.discard(header.producer_id)
            return not had_batches
        aborted = self._aborted.pop(header.producer_id, None)
        if aborted is None or not aborted.has_batches:
            return True
        self.kept.append(aborted.entry)
        return False

    def _begin_up_to(self, offset: int) -> None:
        while self._coming and self._coming[0][0] <= offset:
            _, entry = heappop(self._coming)
            self._aborted.setdefault(entry.producer_id, _Aborted(entry))
