"""The list of groups: state, topics, and how far they are behind."""

from __future__ import annotations

from typing import Final, NamedTuple

from starlette.responses import Response

from ottla.console.pages.paging import paging_of
from ottla.console.shared_answers import known_lags, shared_groups
from ottla.console.visit import Visit

PER_PAGE: Final = 100


class ListedGroup(NamedTuple):
    """A row. `lag` is None if the group has committed nothing, or it is not known."""

    name: str
    state: str
    type: str
    topics: list[str]
    lag: int | None


def groups(visit: Visit) -> Response:
    """The page at `/groups`."""
    part = visit.text("q")
    by_lag = visit.text("sort") == "lag"
    known = shared_groups(visit)
    found, why = known_lags(visit)
    behind = found.by_group()
    rows = [
        ListedGroup(
            each.group,
            each.state,
            each.type,
            [lag.topic for lag in behind.get(each.group, ())],
            sum(lag.lag for lag in behind[each.group]) if each.group in behind else None,
        )
        for each in known
        if part.lower() in each.group.lower()
    ]
    if by_lag:
        rows.sort(key=lambda row: (-(row.lag or 0), row.name))
    paging = paging_of(visit, len(rows), PER_PAGE)
    return visit.page(
        "groups.html",
        rows=rows[paging.rows],
        count=len(rows),
        all=len(known),
        part=part,
        by_lag=by_lag,
        page=paging.page,
        pages=paging.pages,
        why_no_lags=why,
    )
