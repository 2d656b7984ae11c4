"""A history: what clients did and saw, and which faults ran meanwhile. One JSON event per line.

A history covers one topic. Times are milliseconds since the start of the run, by one clock. A
*value* is `"<producer>-<sequence>"`, each sent once; a producer's sequence grows by one with each
record, over all partitions. An event is recorded after the action it describes. Only `Sent` is
recorded before it, so a value that is read without a `Sent` was certainly never sent.

A *transaction* is `"<transactional id>/<number>"`; numbers begin with 1. It also commits its number
as the offset of partition 0 in the group named like the transactional id.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from threading import Lock
from typing import Any, Final, TextIO

Run = tuple[tuple[int, str], ...]
"""(offset, value) in the order of arrival."""


class HistoryError(Exception):
    """A line of a history file is not a valid event."""


@dataclass(frozen=True, slots=True)
class Sent:
    """The value was handed to the producer. Its outcome is one of the next three, or open."""

    at_ms: int
    value: str
    partition: int
    transaction: str | None = None
    """Whose record it is; None without a transaction."""


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """The broker acknowledged the record. Offset -1 if the client did not learn it, as after
    DUPLICATE_SEQUENCE_NUMBER. `leader_epoch` is the epoch in which it was appended; -1 if unknown.
    """

    at_ms: int
    value: str
    partition: int
    offset: int
    leader_epoch: int = -1


@dataclass(frozen=True, slots=True)
class Refused:
    """The record is certainly not in the log, and must never be read."""

    at_ms: int
    value: str
    partition: int
    error: str


@dataclass(frozen=True, slots=True)
class Unknown:
    """No response, or an inconclusive one: the record may be in the log or not."""

    at_ms: int
    value: str
    partition: int
    error: str


@dataclass(frozen=True, slots=True)
class Initialized:
    """InitProducerId succeeded: this instance has fenced those with lower numbers."""

    at_ms: int
    transactional_id: str
    instance: int


@dataclass(frozen=True, slots=True)
class Ending:
    """The instance asks for the end of its transaction; recorded before the request. A commit that
    has to be aborted is followed by an `Ending` without `is_commit`."""

    at_ms: int
    transaction: str
    instance: int
    is_commit: bool


@dataclass(frozen=True, slots=True)
class Ended:
    """The end succeeded. Without it the outcome is unknown, if a commit was asked for."""

    at_ms: int
    transaction: str
    instance: int
    is_commit: bool


@dataclass(frozen=True, slots=True)
class Assigned:
    """A consumer of the group now also owns these partitions. `by_deposed` as in `Synced`: so the
    committed offsets that it begins at may be old ones too."""

    at_ms: int
    consumer: int
    partitions: tuple[int, ...]
    by_deposed: bool = False


@dataclass(frozen=True, slots=True)
class Revoked:
    """A consumer of the group no longer owns these partitions."""

    at_ms: int
    consumer: int
    partitions: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Synced:
    """A consumer's assignment in this generation, from SyncGroup. `by_deposed`: the coordinator
    that answered was already replaced when it was asked, and did not know it. `sent_ms`: when the
    consumer asked; None if unknown."""

    at_ms: int
    consumer: int
    generation: int
    partitions: tuple[int, ...]
    by_deposed: bool = False
    sent_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Emptied:
    """The group has no member any more, as its coordinator has it. Its generations may begin again:
    an empty group whose next member speaks the other protocol is another one (KIP-848)."""

    at_ms: int


@dataclass(frozen=True, slots=True)
class Polled:
    """The records of one partition from one poll of a consumer. `leader_epochs` are the epochs in
    which they were appended, one for each; empty if unknown."""

    at_ms: int
    consumer: int
    partition: int
    records: Run
    leader_epochs: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Committed:
    """A consumer sent this commit at `sent_ms`. With `error` None it succeeded; otherwise the
    outcome is unknown."""

    at_ms: int
    sent_ms: int
    consumer: int
    offsets: tuple[tuple[int, int], ...]
    error: str | None
    generation: int = -1
    """The group's generation in which the commit was sent; -1 if unknown."""


@dataclass(frozen=True, slots=True)
class FinalCommitted:
    """The group's committed offsets at the end of the run; -1 for a partition without one."""

    at_ms: int
    offsets: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class FinalOffset:
    """The offset at the end of the run that the id's transactions committed; 0 without one."""

    at_ms: int
    transactional_id: str
    offset: int


@dataclass(frozen=True, slots=True)
class FinalRead:
    """All committed records of the partition at the end of the run: from `start` to `end`
    (exclusive)."""

    at_ms: int
    partition: int
    start: int
    end: int
    records: Run


@dataclass(frozen=True, slots=True)
class Elected:
    """The partition's state in the coordination tree changed; leader -1 means no leader."""

    at_ms: int
    partition: int
    leader: int
    leader_epoch: int
    isr: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Epochs:
    """(leader epoch, first offset) from the leader's log at the end of the run."""

    at_ms: int
    partition: int
    starts: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class ClientError:
    """A client reported an error that is not the outcome of a record. After a fatal error the load
    continues with a new client."""

    at_ms: int
    client: str
    error: str
    is_fatal: bool


@dataclass(frozen=True, slots=True)
class Fault:
    """An action of the nemesis."""

    at_ms: int
    what: str


Event = (
    Sent
    | Acknowledged
    | Refused
    | Unknown
    | Initialized
    | Ending
    | Ended
    | Assigned
    | Revoked
    | Synced
    | Emptied
    | Polled
    | Committed
    | FinalCommitted
    | FinalOffset
    | FinalRead
    | Elected
    | Epochs
    | ClientError
    | Fault
)
KINDS: Final[dict[str, type[Any]]] = {
    kind.__name__: kind
    for kind in (
        *(Sent, Acknowledged, Refused, Unknown, Initialized, Ending, Ended),
        *(Assigned, Revoked, Synced, Emptied, Polled, Committed),
        *(FinalCommitted, FinalOffset, FinalRead, Elected, Epochs),
        *(ClientError, Fault),
    )
}


def value_of(producer: int, sequence: int) -> str:
    return f"{producer}-{sequence}"


def parts_of(value: str) -> tuple[int, int]:
    """(producer, sequence). Raises ValueError for a value that no producer of a run writes."""
    producer, sequence = value.split("-")
    return int(producer), int(sequence)


def transaction_of(transactional_id: str, number: int) -> str:
    return f"{transactional_id}/{number}"


def parts_of_transaction(transaction: str) -> tuple[str, int]:
    """(transactional id, number)."""
    transactional_id, _, number = transaction.rpartition("/")
    return transactional_id, int(number)


def to_line(event: Event) -> str:
    return json.dumps({"event": type(event).__name__, **asdict(event)}, separators=(",", ":"))


def from_line(line: str) -> Event:
    """Raises HistoryError."""
    try:
        fields = json.loads(line)
        kind = KINDS[fields.pop("event")]
        event: Event = kind(**{name: _frozen(value) for name, value in fields.items()})
    except (ValueError, KeyError, TypeError, AttributeError) as fault:
        raise HistoryError(f"no event of a history: {line[:80]!r}") from fault
    return event


def _frozen(value: Any) -> Any:
    return tuple(_frozen(each) for each in value) if isinstance(value, list) else value


def read(path: Path) -> Iterator[Event]:
    """The events of a file. Raises HistoryError, except for an incomplete last line."""
    with path.open() as lines:
        for line in lines:
            if line.endswith("\n"):
                yield from_line(line)


class Recorder:
    """Records events from many threads, in order of arrival, in memory and in a file."""

    def __init__(self, path: Path, now_ms: Callable[[], int]) -> None:
        self.now_ms = now_ms
        self._events: list[Event] = []
        self._lock = Lock()
        self._file: TextIO = path.open("w")

    def record(self, event: Event) -> None:
        line = to_line(event) + "\n"
        with self._lock:
            self._events.append(event)
            self._file.write(line)

    def record_all(self, events: Iterable[Event]) -> None:
        for event in events:
            self.record(event)

    @property
    def events(self) -> Sequence[Event]:
        """A copy of the events so far."""
        with self._lock:
            return tuple(self._events)

    def close(self) -> None:
        with self._lock:
            self._file.close()
