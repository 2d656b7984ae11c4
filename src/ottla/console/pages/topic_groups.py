"""The groups that have read a topic, the most behind first."""

from __future__ import annotations

from typing import Final

from starlette.responses import Response

from ottla.console.pages.existing_topic import existing_topic
from ottla.console.pages.paging import paging_of
from ottla.console.shared_answers import known_lags
from ottla.console.visit import Visit

PER_PAGE: Final = 100


def topic_groups(visit: Visit) -> Response:
    """The page at `/topics/TOPIC/groups`."""
    topic = existing_topic(visit)
    found, why = known_lags(visit)
    rows = found.by_topic().get(topic.name, [])
    paging = paging_of(visit, len(rows), PER_PAGE)
    return visit.page(
        "topic_groups.html",
        topic=topic,
        tab="Groups",
        rows=rows[paging.rows],
        page=paging.page,
        pages=paging.pages,
        why_no_lags=why,
    )
