"""The journey of a message as a picture: a line for each step, on one axis of time.

The axis begins with the first moment that is known, and grows by powers of ten: the append comes
milliseconds after the publication, a reader perhaps days later. A moment that is known within
bounds is a bar between them; one that has not come is open towards now. Made from the journey's
document, so it shows nothing that the words do not say. Pure.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from ottla.journey.formatting import format_elapsed, one_of

Document = dict[str, Any]

MAX_LANES: Final = 40
"""More readers are counted, not drawn."""
TICKS: Final = (
    (1, "1 ms"),
    (10, "10 ms"),
    (100, "100 ms"),
    (1000, "1 s"),
    (10_000, "10 s"),
    (60_000, "1 min"),
    (600_000, "10 min"),
    (3_600_000, "1 h"),
    (36_000_000, "10 h"),
    (86_400_000, "1 day"),
    (864_000_000, "10 days"),
    (8_640_000_000, "100 days"),
    (86_400_000_000, "1,000 days"),
)
PUBLISHED, PARTITION, APPENDED, REPLICATED, READ, RETENTION = (
    "Published",
    "Partition chosen",
    "Appended",
    "Replicated",
    "Read",
    "Retention",
)
DONE, WAITING, LOST, UNKNOWN = "done", "waiting", "lost", "unknown"
_READ_STATES: Final = {
    "not_yet": WAITING,
    "set_back": WAITING,
    "missed": LOST,
    "not_known": UNKNOWN,
}
_SHARED_STATES: Final = {
    "not_yet": WAITING,
    "available": WAITING,
    "acquired": WAITING,
    "archiving": WAITING,
    "rejected": LOST,
    "too_often": LOST,
    "done": UNKNOWN,
    "unknown": UNKNOWN,
}


class Event(NamedTuple):
    """A step as it is known. `since_ms` and `until_ms`: None is not known on that side; `tone`:
    DONE, WAITING, LOST or UNKNOWN.
    """

    step: str
    name: str
    tone: str
    since_ms: int | None = None
    until_ms: int | None = None
    said: str = ""

    @property
    def at_ms(self) -> int | None:
        """When it is known to have happened, at the latest."""
        return self.until_ms if self.until_ms is not None else self.since_ms


class Lane(NamedTuple):
    """A line of the picture. `begin` and `end` from 0 to 1; equal for one moment, None for a step
    without a time.
    """

    step: str
    name: str
    tone: str
    begin: float | None
    end: float | None
    at_ms: int | None
    said: str


class Picture(NamedTuple):
    """`ticks`: where and what. `more`: readers that are not drawn."""

    lanes: list[Lane]
    ticks: list[tuple[float, str]]
    begin_ms: int | None
    more: int


def picture(document: Document) -> Picture:
    """Of a journey document."""
    found = list(events(document))
    shown, more = found[:MAX_LANES], max(0, len(found) - MAX_LANES)
    moments = [
        ms for each in found for ms in (each.since_ms, each.until_ms) if ms is not None and ms >= 0
    ]
    if not moments:
        lanes = [Lane(*each[:3], None, None, None, each.said) for each in shown]
        return Picture(lanes, [], None, more)
    begin_ms = min(moments)
    end_ms = max([*moments, document["asked_ms"]])
    scale = Scale(begin_ms, end_ms)
    # What waits has waited since the message was there.
    there_ms = next((each.at_ms for each in found if each.step == APPENDED), None) or begin_ms
    lanes = [lane(each, scale, there_ms) for each in shown]
    return Picture(lanes, scale.ticks(), begin_ms, more)


class Scale:
    """Positions from 0 to 1 on the axis."""

    def __init__(self, begin_ms: int, end_ms: int) -> None:
        self._begin_ms = begin_ms
        self._length = math.log10(1 + max(10, end_ms - begin_ms))

    def at(self, ms: int) -> float:
        position = math.log10(1 + max(0, ms - self._begin_ms)) / self._length
        return round(min(1.0, position), 4)

    def ticks(self) -> list[tuple[float, str]]:
        """Those that fit, with the first moment."""
        found = [(0.0, "0")]
        for ms, name in TICKS:
            position = math.log10(1 + ms) / self._length
            if position < 0.98 and position - found[-1][0] > 0.06:
                found.append((round(position, 4), name))
        return found


def lane(event: Event, scale: Scale, there_ms: int) -> Lane:
    """An event on the axis; what waits reaches from `there_ms` to now."""
    begin = end = None
    if event.at_ms is not None:
        begin = scale.at(event.since_ms) if event.since_ms is not None else 0.0
        end = scale.at(event.until_ms) if event.until_ms is not None else 1.0
    elif event.tone == WAITING:
        begin, end = scale.at(there_ms), 1.0
    return Lane(event.step, event.name, event.tone, begin, end, event.at_ms, event.said)


def events(document: Document) -> Iterator[Event]:
    """The six steps in their order."""
    if document["state"] == "not_yet_written":
        yield Event(APPENDED, "not written yet", WAITING)
        yield from _read(document)
        return
    published, appended = document["published"], document["appended"]
    at_ms = published.get("timestamp_ms")
    if at_ms is not None and published.get("timestamp_type") == "CreateTime":
        by = ", ".join(published.get("client_ids") or ())
        yield Event(PUBLISHED, by or "a producer", DONE, at_ms, at_ms)
    if chosen := document["partition_chosen"]:
        name = f"{chosen['partition']} of {chosen['partitions']}"
        yield Event(PARTITION, name, DONE, said=chosen["why"])
    if appended is not None and appended.get("when"):
        broker = appended.get("broker")
        yield _known(APPENDED, "broker" if broker is None else f"broker {broker}", appended["when"])
    if document["replicated"]:
        yield from _replicated(document["replicated"])
    yield from _read(document)
    yield from _retention(document)


def _known(step: str, name: str, when: Document, tone: str = DONE, said: str = "") -> Event:
    return Event(step, name, tone, when["since_ms"], when["until_ms"], said)


def _replicated(replicated: Document) -> Iterator[Event]:
    if replicated["replicas"] > 1:
        for copy in replicated.get("copies", ()):
            name = f"broker {copy['broker']}"
            if copy["state"] == "not_yet":
                yield Event(REPLICATED, name, WAITING, said="has not copied it yet")
            elif copy["state"] != "leader" and copy["when"]:
                yield _known(REPLICATED, name, copy["when"])
    if replicated["committed"] and replicated.get("when"):
        yield _known(REPLICATED, "high watermark", replicated["when"])
    elif not replicated["committed"]:
        yield Event(REPLICATED, "high watermark", WAITING, said="has not reached it")


def _read(document: Document) -> Iterator[Event]:
    pipelines = set()
    for one in document.get("delivered", ()):
        pipelines.add(one["group"])
        rejected = one.get("rejected")
        said = one_of("batch", one["first_batch"], one["last_batch"])
        if one.get("delta"):
            delta = one["delta"]
            said = (
                f"Delta {one_of('version', delta['first_version'], delta['last_version'])}, {said}"
            )
        if rejected and rejected["certain"]:
            said = f"rejected: {rejected['reason'] or 'the reason is not known'}"
        tone = LOST if rejected and rejected["certain"] else DONE
        yield _known(READ, f"pipeline {one['query']}", one["when"], tone, said)
    for group in document["read"]:
        if group["group"] in pipelines and group["state"] == "read":
            continue
        tone = _READ_STATES.get(group["state"], DONE)
        if tone == DONE and group.get("when"):
            said = "passed it" if group.get("doubt") else "read"
            yield _known(READ, group["group"], group["when"], DONE, said)
        else:
            said = {WAITING: "has not read it", LOST: "missed it"}.get(tone, "not known")
            yield Event(READ, group["group"], tone, said=said)
    for group in document.get("shared", ()):
        yield _shared(group)


def _shared(group: Document) -> Event:
    """When the state of a share group's record began, as far as that is recorded."""
    tone = _SHARED_STATES.get(group["state"], DONE)
    said = group["state"].replace("_", " ")
    if group["events"]:
        at_ms = group["events"][-1]["at_ms"]
        when = {"since_ms": at_ms, "until_ms": at_ms, "exact": True}
        return _known(READ, group["group"], when, tone, said)
    return Event(READ, group["group"], tone, said=said)


def _retention(document: Document) -> Iterator[Event]:
    removed, retention = document.get("removed"), document.get("retention")
    if removed and removed.get("when"):
        yield _known(RETENTION, "removed", removed["when"], LOST)
    elif document["state"] in ("removed", "compacted"):
        yield Event(RETENTION, document["state"], LOST)
    elif retention:
        at_ms, now_ms = retention.get("not_before_ms"), document["asked_ms"]
        if retention.get("may_be_removed"):
            yield Event(RETENTION, "may be removed now", WAITING)
        elif at_ms is not None:
            said = f"in {format_elapsed(max(0, at_ms - now_ms))} at the earliest"
            yield Event(RETENTION, "stays", UNKNOWN, said=said)
        else:
            yield Event(RETENTION, "stays", UNKNOWN, said="nothing removes it")
