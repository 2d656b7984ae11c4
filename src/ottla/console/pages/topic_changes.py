"""Creating and deleting a topic, adding partitions, changing its settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from starlette.responses import Response

from ottla.client.admin.setting_units import unit_hint_for
from ottla.client.admin.topics import (
    DEFAULT,
    NewTopic,
    add_partitions,
    create_topics,
    delete_topic,
    is_internal,
)
from ottla.console.errors import BadFormError
from ottla.console.pages.existing_topic import existing_topic
from ottla.console.pages.setting_change import changed_setting
from ottla.console.visit import Visit
from ottla.wording.plural import plural

MAX_PARTITIONS: Final = 100_000
MAX_REPLICAS: Final = 1000


def creation(visit: Visit) -> Response:
    """The form at `/topics/new`."""
    return visit.page("topic_new.html")


def create(visit: Visit) -> Response:
    """What its form does."""
    name = visit.text("name")
    if not name:
        raise BadFormError("the topic needs a name.")
    settings = read_settings(visit.text("settings"))
    new = NewTopic(
        name,
        visit.number("partitions", 1, MAX_PARTITIONS) or DEFAULT,
        visit.number("replicas", 1, MAX_REPLICAS) or DEFAULT,
        settings=settings,
    )
    with unit_hint_for(settings):
        create_topics(visit.client, [new])
    return visit.go(f"/topics/{name}/partitions", f"Created topic {name}.")


def read_settings(text: str) -> Mapping[str, str]:
    """`NAME=VALUE` lines. Raises BadFormError."""
    found = {}
    for line in filter(None, map(str.strip, text.splitlines())):
        name, equals, value = line.partition("=")
        if not equals or not name.strip():
            raise BadFormError(
                f"a setting must be NAME=VALUE, not {line!r}.", "For example: retention.ms=3600000"
            )
        found[name.strip()] = value.strip()
    return found


def add(visit: Visit) -> Response:
    """More partitions."""
    topic = existing_topic(visit)
    present = len(topic.partitions)
    wanted = visit.number("partitions", 1, MAX_PARTITIONS)
    if wanted is None or wanted <= present:
        raise BadFormError(
            f"topic {topic.name!r} has {plural(present, 'partition')}; partitions cannot be "
            f"removed, so {present + 1} or more are needed."
        )
    add_partitions(visit.client, topic.name, wanted)
    return visit.go(
        f"/topics/{topic.name}/partitions",
        f"{topic.name} has {plural(wanted, 'partition')} now. Keyed records may go to a different "
        "partition than before.",
    )


def delete(visit: Visit) -> Response:
    """The topic with all its records, once its name was typed."""
    topic = existing_topic(visit)
    if is_internal(topic.name):
        raise BadFormError(f"{topic.name} is an internal topic: the cluster needs it.")
    if visit.text("name") != topic.name:
        raise BadFormError(
            f"to delete {topic.name}, type its name, not {visit.text('name')!r}.",
            "Nothing was deleted.",
        )
    delete_topic(visit.client, topic.name)
    return visit.go("/topics", f"Deleted topic {topic.name}.")


def change(visit: Visit) -> Response:
    """Sets one setting, or unsets it."""
    topic = existing_topic(visit)
    return changed_setting(visit, "topic", topic.name, f"/topics/{topic.name}/settings")
