"""One group: members and what they own, and each partition with its lag."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Final, NamedTuple

from starlette.responses import Response

from ottla.client.admin.group_history import group_history
from ottla.client.admin.group_states import GroupState, group_state
from ottla.client.admin.groups import described_groups, listed_groups
from ottla.client.admin.losses import DAY_MS, losses_of
from ottla.client.admin.own_requests import NotOttlaError
from ottla.client.client import Client
from ottla.client.errors import ClientError
from ottla.client.topic_partition import TopicPartition
from ottla.console.errors import NotFoundError
from ottla.console.pages.charts import group_trend, sampler_of
from ottla.console.visit import Visit
from ottla.journey.words.group_history import (
    causes_texts,
    moved_text,
    moves_texts,
    outcome_text,
)
from ottla.wording.errors import unknown
from ottla.wording.spans import spans

MAX_ROWS: Final = 1000
"""Partitions that are listed, the most behind first."""


MAX_LOSSES: Final = 10
MAX_REBALANCES: Final = 10
LOSSES_FRESH_S: Final = 20.0
REBALANCES_FRESH_S: Final = 3.0
"""All brokers are asked."""
OTHERS_FRESH_S: Final = 60.0
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
    # Of a group with many partitions it takes seconds, for which no page waits.
    removed = visit.access.kept_soon(
        f"losses {name}", LOSSES_FRESH_S, lambda lent: losses(lent, state)
    )
    rows = sorted(state.partitions, key=lambda each: (-(each.lag or 0), each.topic, each.partition))
    return visit.page(
        "group.html",
        owned={
            each.member_id: owned(each.assignment) for each in found[name].members[:MAX_MEMBERS]
        },
        trend=group_trend(visit, name),
        losses=removed or [],
        is_looking=removed is None,
        rebalances=known_rebalances(visit, name),
        has_history=sampler_of(visit) is not None,
        group=found[name],
        state=state,
        rows=rows[:MAX_ROWS],
        more=len(rows) - MAX_ROWS,
        topics=sorted({each.topic for each in rows})[:MAX_ROWS],
    )


def losses(client: Client, state: GroupState) -> list[str]:
    """What retention removes unread within a day; nothing where the brokers do not say."""
    positions = {
        each.topic_partition: each.committed_offset
        for each in state.partitions
        if each.committed_offset is not None and each.lag
    }
    if not positions:
        return []
    try:
        found = losses_of(client, positions, DAY_MS, int(time.time() * 1000))
    except ClientError:
        return []
    return [f"{each}{' at the earliest' if each.goes_in_ms else ''}" for each in found[:MAX_LOSSES]]


class Rebalance(NamedTuple):
    """An entry of the group's history, in words."""

    at_ms: int
    outcome: str
    causes: list[str]
    moved: str
    moves: list[str]


def known_rebalances(visit: Visit, name: str) -> list[Rebalance] | None:
    """As they were a moment ago. Other brokers than Ottla's close the connection, and write an
    error into their logs, so that they are asked seldom.
    """
    access, client = visit.access, visit.client
    if not access.kept("history", OTHERS_FRESH_S, lambda: is_kept(client, name)):
        return None
    return access.kept(f"rebalances {name}", REBALANCES_FRESH_S, lambda: rebalances(client, name))


def is_kept(client: Client, name: str) -> bool:
    """Whether the brokers keep a history."""
    try:
        group_history(client, name)
    except NotOttlaError:
        return False
    except ClientError:
        return True
    return True


def rebalances(client: Client, name: str) -> list[Rebalance] | None:
    """The last ones, the newest first; None on brokers that keep no history, or do not tell it."""
    try:
        entries = group_history(client, name).entries
    except ClientError:
        return None
    return [
        Rebalance(
            each["at_ms"],
            outcome_text(each),
            causes_texts(each),
            moved_text(each),
            moves_texts(each) if moved_text(each) else [],
        )
        for each in reversed(entries[-MAX_REBALANCES:])
    ]


def owned(partitions: Iterable[TopicPartition]) -> list[tuple[str, str]]:
    """Topics with their partitions as ranges: `[("orders", "0-2, 5")]`; more than MAX_OWNED are the
    last. Pure.
    """
    by_topic: dict[str, list[int]] = {}
    for each in sorted(partitions):
        by_topic.setdefault(each.topic, []).append(each.partition)
    found = [(topic, spans(numbers, ", ")) for topic, numbers in by_topic.items()]
    more = len(found) - MAX_OWNED
    return [*found[:MAX_OWNED], ("", f"and {more} more topics")] if more > 0 else found
