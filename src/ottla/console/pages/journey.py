"""The journey of one message: the six steps as a picture on an axis of time, and in words.

The page asks again until every group of the partition has read the message.
"""

from __future__ import annotations

import time
from typing import Final, NamedTuple

from starlette.responses import Response

from ottla.console.errors import NotFoundError
from ottla.console.pages.existing_topic import existing_topic
from ottla.console.visit import Visit
from ottla.journey.outcome import Outcome, outcome_of
from ottla.journey.picture import Lane, picture
from ottla.journey.words.tell import tell

VERSION: Final = 1
NEW_MS: Final = 60_000
NEW_AGAIN_S: Final = 1
LATE_AGAIN_S: Final = 5
LANE_PX: Final = 30
TOP_PX: Final = 30
LEFT_PX: Final = 250
WIDTH_PX: Final = 960
RIGHT_PX: Final = 30
OUTCOMES: Final = {
    Outcome.WAITING: "Not read by all yet: this page follows it.",
    Outcome.READ: "Every group of its partition has passed it.",
    Outcome.NEVER: "It was removed before a group read it.",
}


class DrawnLane(NamedTuple):
    """A lane with its pixels. `x` None: it has no time."""

    lane: Lane
    step: str
    """Empty if it is that of the lane above."""
    y: int
    x: float | None
    width: float


def journey(visit: Visit) -> Response:
    """The page at `/topics/TOPIC/messages/PARTITION/OFFSET/journey`."""
    topic = existing_topic(visit)
    partition, offset = int(visit.path["partition"]), int(visit.path["offset"])
    question = {
        "journey": VERSION,
        "topic": topic.name,
        "partition": partition,
        "offset": min(offset, 2**63 - 1),
    }
    with visit.access.journeys() as journeys:
        document = journeys.ask(question)
    if "error" in document:
        raise NotFoundError(f"{document['error']['message']}.")
    drawn = picture(document)
    outcome = outcome_of(document, None)
    return visit.page(
        "journey.html",
        topic=topic,
        tab="Messages",
        partition=partition,
        offset=offset,
        tree=tell(document),
        lanes=drawn_lanes(drawn.lanes),
        ticks=[(x_of(position), name) for position, name in drawn.ticks],
        begin_ms=drawn.begin_ms,
        more=drawn.more,
        height=TOP_PX + LANE_PX * len(drawn.lanes) + 10,
        width=WIDTH_PX,
        left=LEFT_PX,
        top=TOP_PX,
        is_waiting=outcome is Outcome.WAITING,
        again_s=again_s(drawn.begin_ms, int(time.time() * 1000)),
        outcome=OUTCOMES[outcome],
        is_computed=bool(document.get("computed")),
    )


def again_s(begin_ms: int | None, now_ms: int) -> int:
    """When the page asks again: who has just sent a message waits for each step of it; for one that
    lies there for minutes, a group is late.
    """
    is_new = begin_ms is None or now_ms - begin_ms < NEW_MS
    return NEW_AGAIN_S if is_new else LATE_AGAIN_S


def drawn_lanes(lanes: list[Lane]) -> list[DrawnLane]:
    found = []
    before = ""
    for number, each in enumerate(lanes):
        begin, end = (None, None) if each.begin is None else (x_of(each.begin), x_of(each.end or 0))
        width = 0.0 if begin is None or end is None else max(end - begin, 0.0)
        step = each.step if each.step != before else ""
        found.append(DrawnLane(each, step, TOP_PX + LANE_PX * number, begin, width))
        before = each.step
    return found


def x_of(position: float) -> float:
    return round(LEFT_PX + position * (WIDTH_PX - LEFT_PX - RIGHT_PX), 1)
