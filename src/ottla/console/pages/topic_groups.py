"""The groups that have read a topic, the most behind first."""

from __future__ import annotations

from starlette.responses import Response

from ottla.console.pages.existing_topic import existing_topic
from ottla.console.shared_answers import known_lags
from ottla.console.visit import Visit


def topic_groups(visit: Visit) -> Response:
    """The page at `/topics/TOPIC/groups`."""
    topic = existing_topic(visit)
    found, why = known_lags(visit)
    return visit.page(
        "topic_groups.html",
        topic=topic,
        tab="Groups",
        rows=found.by_topic().get(topic.name, ()),
        why_no_lags=why,
    )
