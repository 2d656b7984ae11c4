"""Which records of a topic an address asks for: where to begin, which partition, which match."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from ottla.client.admin.offsets import EARLIEST, LATEST, asked_offsets, offsets_at
from ottla.client.client import Client
from ottla.client.errors import ClientError
from ottla.client.metadata import Topic
from ottla.client.topic_partition import TopicPartition
from ottla.console.errors import BadFormError
from ottla.console.schemas import Schemas, Unasked
from ottla.console.seen_record import SeenRecord, seen_record
from ottla.console.visit import Visit
from ottla.messaging.positions import parse_time
from ottla.messaging.record_scan import Matches, Span
from ottla.messaging.selection import both, header_matcher, json_matcher, key_matcher, matcher
from ottla.messaging.shown_bytes import FORMS
from ottla.registry.decoder import may_be_decoded
from ottla.wording.plural import plural

STARTS: Final = ("newest", "oldest", "offset", "time")
BYTES: Final = ("text", "hex")
"""Forms that show what is stored, and nothing decoded."""
MAX_CONTINUED: Final = 300
"""Partitions whose positions an address names."""
MAX_TEXT: Final = 2000
WITHIN_S: Final = 5.0
FIELDS: Final = ("start", "partition", "offset", "at", "key", "text", "header", "json", "form")


@dataclass(frozen=True, slots=True)
class RecordQuery:
    """As it was typed, and what it means. `partition` None: all."""

    start: str
    partition: int | None
    offset: int | None
    at: str
    key: str
    text: str
    header: str
    json: str
    form: str
    rest: str
    """Where a list goes on: `0:5-9,1:0-7`, the spans that were not looked at."""

    @property
    def is_filtered(self) -> bool:
        return bool(self.key or self.text or self.header or self.json)

    @property
    def newest_first(self) -> bool:
        return self.start == "newest"

    def has_stored_key(self, schemas: Schemas | None) -> bool:
        """Whether a record that matches has the key as it was typed, so that it can be found
        without its schema: where text or bytes are shown, and where the key is not what a schema
        could make of another.
        """
        return schemas is None or self.form in BYTES or not may_be_decoded(self.key)

    def matches(
        self,
        schemas: Schemas | None = None,
        *,
        surely: bool = False,
        unasked: Unasked | None = None,
    ) -> Matches | None:
        """What a record has to be; None: any. A key is compared as it is stored or, unless
        `has_stored_key`, as it is decoded; text and JSON are looked for in what `schemas` make of
        it. Raises PatternError. Where the registry does not say it, `unasked` notes it, and with
        `surely` the function raises NotDecodedError.
        """

        def decoding(matches: Matches) -> Matches:
            if schemas is None:
                return matches
            read = schemas.decoded
            return lambda record: matches(read(record, surely=surely, unasked=unasked))

        chosen: Matches | None = None
        # What is quick is asked first.
        if self.key:
            of_key = key_matcher(self.key)
            chosen = of_key if self.has_stored_key(schemas) else either(of_key, decoding(of_key))
        if self.header:
            chosen = both(chosen, header_matcher(self.header))
        if self.text:
            chosen = both(chosen, decoding(matcher(self.text, "The text")))
        if self.json:
            chosen = both(chosen, decoding(json_matcher(self.json)))
        return chosen

    def seen(self, schemas: Schemas | None = None) -> Callable[[Any], SeenRecord]:
        """What a list keeps of a record: decoded, unless text or bytes are wanted."""
        form = self.form
        if schemas is None or form in BYTES:
            return lambda record: seen_record(record, form)
        decoded = schemas.decoded
        return lambda record: seen_record(decoded(record), form)

    def values(self) -> dict[str, object]:
        """For an address that asks for the same from the beginning."""
        found: dict[str, object] = {name: getattr(self, name) for name in FIELDS}
        found["start"] = "" if self.start == "newest" else self.start
        found["form"] = "" if self.form == "auto" else self.form
        return found


def either(one: Matches, other: Matches) -> Matches:
    return lambda record: one(record) or other(record)


def record_query(visit: Visit) -> RecordQuery:
    """Raises BadFormError."""
    start, form = visit.text("start") or "newest", visit.text("form") or "auto"
    if start not in STARTS:
        raise BadFormError(f"start must be one of {', '.join(STARTS)}, not {start!r}.")
    if form not in FORMS:
        raise BadFormError(f"form must be one of {', '.join(FORMS)}, not {form!r}.")
    at, key, text, header, json = (
        visit.query.get(name, "") for name in ("at", "key", "text", "header", "json")
    )
    if max(map(len, (at, key, text, header, json))) > MAX_TEXT:
        raise BadFormError(f"what is searched may have {MAX_TEXT} characters.")
    query = RecordQuery(
        start,
        visit.number("partition", 0, 2**31 - 1),
        visit.number("offset"),
        at.strip(),
        key,
        text,
        header,
        json,
        form,
        visit.query.get("rest", ""),
    )
    if start == "offset" and query.offset is None:
        raise BadFormError("give the offset where the list begins.")
    if start == "time" and not query.at:
        raise BadFormError(
            "give the time where the list begins.", "For example: 15m, 2026-01-31T12:00Z"
        )
    return query


def spans_of(
    client: Client,
    topic: Topic,
    query: RecordQuery,
    kept: Mapping[TopicPartition, Span] | None = None,
) -> dict[TopicPartition, Span]:
    """What the query looks at now: of each partition the first offset and the end. `kept`: where
    the list goes on, if its address does not say it. Raises BadFormError, PositionError and
    ClientError.
    """
    numbers = sorted(topic.partitions)
    if query.partition is not None:
        if query.partition not in topic.partitions:
            raise BadFormError(
                f"topic {topic.name!r} has {plural(len(numbers), 'partition')}, "
                f"0 to {len(numbers) - 1}, and no {query.partition}."
            )
        numbers = [query.partition]
    keys = [TopicPartition(topic.name, number) for number in numbers]
    first, ends = known_edges(client, keys)
    if query.rest:
        wanted = read_rest(topic.name, query.rest) if kept is None else kept
        return {
            key: span(max(begin, first[key]), min(end, ends[key]))
            for key, (begin, end) in wanted.items()
            if key in first
        }
    if query.start == "offset":
        at = query.offset or 0
        return {key: span(max(first[key], at), ends[key]) for key in first}
    if query.start == "time":
        at_ms = parse_time("The time", query.at, int(time.time() * 1000))
        begins: Mapping[TopicPartition, int] = offsets_at(client, list(first), at_ms)
        return {key: span(max(first[key], begins[key]), ends[key]) for key in first}
    return {key: (first[key], ends[key]) for key in first}


def span(begin: int, end: int) -> Span:
    """Empty, not negative, where a partition ends before the beginning that was asked for."""
    return min(begin, end), end


def known_edges(
    client: Client, keys: list[TopicPartition]
) -> tuple[dict[TopicPartition, int], dict[TopicPartition, int]]:
    """The first offset and the end of each partition that has a leader. Raises ClientError if none
    has.
    """
    first, why = asked_offsets(client, dict.fromkeys(keys, EARLIEST), WITHIN_S)
    ends, also = asked_offsets(client, dict.fromkeys(first, LATEST), WITHIN_S)
    if not ends and (reasons := {**why, **also}):
        key, reason = next(iter(reasons.items()))
        raise ClientError(f"cannot read the offsets of {key}: {reason}.")
    return {key: first[key] for key in ends}, ends


def written_rest(spans: Mapping[TopicPartition, Span]) -> str | None:
    """For an address; None if there are too many partitions for one."""
    if len(spans) > MAX_CONTINUED:
        return None
    return ",".join(f"{key.partition}:{begin}-{end}" for key, (begin, end) in spans.items())


def read_rest(topic: str, text: str) -> dict[TopicPartition, Span]:
    """The reverse. Raises BadFormError."""
    found: dict[TopicPartition, Span] = {}
    for part in text.split(",")[:MAX_CONTINUED]:
        number, _, span = part.partition(":")
        begin, _, end = span.partition("-")
        if not all(each.isdecimal() and len(each) < 20 for each in (number, begin, end)):
            raise BadFormError(f"{part!r} is no part of a partition.", "Begin the list again.")
        found[TopicPartition(topic, int(number))] = int(begin), int(end)
    return found
