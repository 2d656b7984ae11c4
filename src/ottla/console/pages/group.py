"""One group: members and what they own, and each partition with its lag."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from starlette.responses import Response

from ottla.client.admin.group_states import group_state
from ottla.client.admin.groups import described_groups, listed_groups
from ottla.client.topic_partition import TopicPartition
from ottla.console.errors import NotFoundError
from ottla.console.pages.charts import group_trend, sampler_of
from ottla.console.visit import Visit
from ottla.wording.errors import unknown

MAX_ROWS: Final = 1000
"""Partitions that are listed, the most behind first."""


MAX_MEMBERS: Final = 500
MAX_OWNED: Final = 20
"""Topics of a member that are named."""


def group(visit: Visit) -> Response:
    """The page at `/group?name=GROUP`."""
    # As it is: a group's name may begin with a space.
    name, client = visit.query.get("name", ""), visit.client
    found = described_groups(client, [name])
    if name not in found:
        names = [each.group for each in listed_groups(client)]
        raise unknown(NotFoundError, "group", name, names, "All groups are listed under Groups.")
    state = group_state(client, found[name])
    rows = sorted(state.partitions, key=lambda each: (-(each.lag or 0), each.topic, each.partition))
    return visit.page(
        "group.html",
        owned={
            each.member_id: owned(each.assignment) for each in found[name].members[:MAX_MEMBERS]
        },
        trend=group_trend(visit, name),
        has_history=sampler_of(visit) is not None,
        group=found[name],
        state=state,
        rows=rows[:MAX_ROWS],
        more=len(rows) - MAX_ROWS,
        topics=sorted({each.topic for each in rows})[:MAX_ROWS],
    )


def owned(partitions: Iterable[TopicPartition]) -> list[tuple[str, str]]:
    """Topics with their partitions as ranges: `[("orders", "0-2, 5")]`; more than MAX_OWNED are the
    last. Pure.
    """
    by_topic: dict[str, list[int]] = {}
    for each in sorted(partitions):
        by_topic.setdefault(each.topic, []).append(each.partition)
    found = [(topic, ranges(numbers)) for topic, numbers in by_topic.items()]
    more = len(found) - MAX_OWNED
    return [*found[:MAX_OWNED], ("", f"and {more} more topics")] if more > 0 else found


def ranges(numbers: list[int]) -> str:
    """Sorted numbers as `0-2, 5`. Pure."""
    spans: list[list[int]] = []
    for number in numbers:
        if spans and number == spans[-1][1] + 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    return ", ".join(f"{first}-{last}" if last > first else str(first) for first, last in spans)
