"""The settings of a topic: those that somebody has changed first, with what they would be else."""

from __future__ import annotations

from collections.abc import Iterable

from starlette.responses import Response

from ottla.client.admin.configs import Setting, settings_of
from ottla.console.pages.existing_topic import existing_topic
from ottla.console.visit import Visit


def settings(visit: Visit) -> Response:
    """The page at `/topics/TOPIC/settings`."""
    topic = existing_topic(visit)
    found = settings_of(visit.client, "topic", [topic.name])[topic.name]
    return visit.page(
        "topic_settings.html", topic=topic, tab="Settings", rows=changed_first(found, "topic")
    )


def changed_first(found: Iterable[Setting], kind: str) -> list[Setting]:
    """First its own, then those of brokers and their files, then defaults; each by name."""
    order = {kind: 0, "broker": 1, "all brokers": 1, "properties": 2, "default": 3}
    return sorted(found, key=lambda each: (order.get(each.source, 3), each.name))
