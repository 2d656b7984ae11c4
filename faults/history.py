"""What clients did and saw, and which faults ran meanwhile: one event a line of JSON.

A history is of one topic. Times are milliseconds since the run began, by one clock. A *value* is
`"<producer>-<sequence>"`, each sent once; a producer's sequence grows by one from record to record,
over all partitions. An event is recorded after what it tells has ended, but for `Sent`, which is
recorded before, so that a value that was seen but never sent cannot be an event out of turn.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from threading import Lock
from typing import Any, Final, TextIO

Run = tuple[tuple[int, str], ...]
"""(offset, value) in the order in which they came."""


class HistoryError(Exception):
    """A line of a history's file is none of the events."""


@dataclass(frozen=True, slots=True)
class Sent:
    """The producer was given the value. Its outcome is one of the next three, or open."""

    at_ms: int
    value: str
    partition: int


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """The broker said that it has the record. Offset -1 where the client was not told it, as after
    DUPLICATE_SEQUENCE_NUMBER."""

    at_ms: int
    value: str
    partition: int
    offset: int


@dataclass(frozen=True, slots=True)
class Refused:
    """The record is certainly not in the log, and must never be read."""

    at_ms: int
    value: str
    partition: int
    error: str


@dataclass(frozen=True, slots=True)
class Unknown:
    """No answer, or one that leaves it open: the record may be in the log or not."""

    at_ms: int
    value: str
    partition: int
    error: str


@dataclass(frozen=True, slots=True)
class Assigned:
    """A consumer of the group owns these partitions from now on, besides those it had."""

    at_ms: int
    consumer: int
    partitions: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Revoked:
    """A consumer of the group owns these partitions no longer."""

    at_ms: int
    consumer: int
    partitions: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Polled:
    """What one call gave a consumer of one partition."""

    at_ms: int
    consumer: int
    partition: int
    records: Run


@dataclass(frozen=True, slots=True)
class Committed:
    """A consumer asked for this commit at `sent_ms`. Only with `error` None is it known to be done;
    otherwise it may be done or not."""

    at_ms: int
    sent_ms: int
    consumer: int
    offsets: tuple[tuple[int, int], ...]
    error: str | None


@dataclass(frozen=True, slots=True)
class FinalCommitted:
    """The group's offsets when all was over; -1 where it has none for the partition."""

    at_ms: int
    offsets: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class FinalRead:
    """Everything in the partition when all was over: from `start` up to but without `end`."""

    at_ms: int
    partition: int
    start: int
    end: int
    records: Run


@dataclass(frozen=True, slots=True)
class Elected:
    """The partition's state in the coordination tree changed; leader -1: nobody leads."""

    at_ms: int
    partition: int
    leader: int
    leader_epoch: int
    isr: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Epochs:
    """(leader epoch, first offset) as the leader's log has them when all was over."""

    at_ms: int
    partition: int
    starts: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class ClientError:
    """A client told its user of an error that is no record's outcome. After a fatal one the load
    goes on with a new client."""

    at_ms: int
    client: str
    error: str
    is_fatal: bool


@dataclass(frozen=True, slots=True)
class Fault:
    """The nemesis did this."""

    at_ms: int
    what: str


Event = (
    Sent
    | Acknowledged
    | Refused
    | Unknown
    | Assigned
    | Revoked
    | Polled
    | Committed
    | FinalCommitted
    | FinalRead
    | Elected
    | Epochs
    | ClientError
    | Fault
)
KINDS: Final[dict[str, type[Any]]] = {
    kind.__name__: kind
    for kind in (
        *(Sent, Acknowledged, Refused, Unknown, Assigned, Revoked, Polled),
        *(Committed, FinalCommitted, FinalRead, Elected, Epochs),
        *(ClientError, Fault),
    )
}


def value_of(producer: int, sequence: int) -> str:
    return f"{producer}-{sequence}"


def parts_of(value: str) -> tuple[int, int]:
    """(producer, sequence). Raises ValueError for a value that no producer here makes."""
    producer, sequence = value.split("-")
    return int(producer), int(sequence)


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
    """The events of a file. Raises HistoryError, but not for a last line that was torn off."""
    with path.open() as lines:
        for line in lines:
            if line.endswith("\n"):
                yield from_line(line)


class Recorder:
    """Takes events from many threads, in the order in which they come, into memory and a file."""

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
        """A copy of what came so far."""
        with self._lock:
            return tuple(self._events)

    def close(self) -> None:
        with self._lock:
            self._file.close()
