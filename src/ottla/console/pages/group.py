"""One group: members and what they own, and each partition with its lag."""

from __future__ import annotations

from typing import Final

from starlette.responses import Response

from ottla.client.admin.group_states import group_state
from ottla.client.admin.groups import described_groups, listed_groups
from ottla.console.errors import NotFoundError
from ottla.console.visit import Visit
from ottla.wording.errors import unknown

MAX_ROWS: Final = 1000
"""Partitions that are listed, the most behind first."""


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
        group=found[name],
        state=state,
        rows=rows[:MAX_ROWS],
        more=len(rows) - MAX_ROWS,
        topics=sorted({each.topic for each in rows})[:MAX_ROWS],
    )
