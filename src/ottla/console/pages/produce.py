"""Sending a record that is typed into a form."""

from __future__ import annotations

from starlette.responses import Response

from ottla.console.errors import BadFormError
from ottla.console.pages.existing_topic import existing_topic
from ottla.console.pages.message import sent
from ottla.console.visit import Visit
from ottla.messaging.jsonlines import Headers, Outgoing


def production(visit: Visit) -> Response:
    """The form at `/topics/TOPIC/produce`."""
    return visit.page("produce.html", topic=existing_topic(visit), tab="Produce")


def produce(visit: Visit) -> Response:
    """What the form does. An empty key is no key, unless a box says otherwise; of a value, lines
    end as they are typed in a text: with a newline alone.
    """
    topic = existing_topic(visit)
    partition = visit.number("partition", 0, 2**31 - 1)
    if partition is not None and partition not in topic.partitions:
        raise BadFormError(f"topic {topic.name!r} has no partition {partition}.")
    key, value = visit.form.get("key", ""), visit.form.get("value", "")
    outgoing = Outgoing(
        key.encode() if key or visit.text("empty_key") else None,
        None if visit.text("null") else value.replace("\r\n", "\n").encode(),
        read_headers(visit.form.get("headers", "")),
        partition,
    )
    return sent(visit, topic.name, outgoing)


def read_headers(text: str) -> Headers:
    """`NAME=VALUE` lines. Raises BadFormError."""
    found: Headers = []
    for line in filter(None, map(str.strip, text.splitlines())):
        name, equals, value = line.partition("=")
        if not equals or not name:
            raise BadFormError(
                f"a header must be NAME=VALUE, not {line!r}.", "For example: source=test"
            )
        found.append((name, value.encode()))
    return found
