"""What goes on after a page is there: a live tail, a search over a whole topic, an export.

Tail and search are server-sent events: `rows` (HTML of table rows), `state` (JSON: how much was
looked at and skipped, whether the brokers are away), `failed` (a sentence) and `done`. A step of a
few hundred ms runs in one of the console's threads for readers, and between steps the stream ends
if its visitor has left. An export is JSON lines, as of `ottla consume --json`.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from functools import partial
from typing import Any, Final
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from ottla.client.topic_partition import TopicPartition
from ottla.console.console import Console
from ottla.console.errors import BadFormError, BusyError, StoppingError, said
from ottla.console.failure_page import failure_page
from ottla.console.opened_scan import opened_scan
from ottla.console.pages.existing_topic import existing_topic
from ottla.console.record_query import RecordQuery, known_edges, record_query, spans_of
from ottla.console.schemas import Unasked
from ottla.console.seen_record import SeenRecord
from ottla.console.templates import environment
from ottla.console.visit import THEME_COOKIE, Visit, own_url, to_login, visited
from ottla.messaging.key_scan import KeyScan
from ottla.messaging.record_scan import RecordScan, RecordTail
from ottla.messaging.rendering import render_json
from ottla.wording.errors import ReportedError

EVENTS: Final = "text/event-stream"
LINES: Final = "application/x-ndjson"
STEP_S: Final = 0.4
MAX_TAIL_ROWS: Final = 40
"""Of a step: nobody reads more."""
MAX_FOUND: Final = 1000
"""Rows of a search; an export has no limit."""
MAX_TAILED: Final = 1000
"""Partitions of a tail."""
EXPORT_STEP: Final = 5000
MAX_STREAMS: Final = 16
"""At a time: each has a consumer, with up to 16 MB that wait to be looked at."""

Opened = tuple[str, RecordQuery, Any, Unasked]
"""The topic, what was asked for, the scan or the tail, and what was searched as bytes."""
Open = Callable[[Visit], Opened]
Stream = Callable[[Console, Opened], AsyncIterator[str | bytes]]


def stream(console: Console, name: str) -> Callable[[Request], Awaitable[Response]]:
    """What Starlette calls for the stream of this name: opens the reading in a thread, then streams
    it.
    """
    opens, streams, kind = KINDS[name]

    async def answer(request: Request) -> Response:
        session, _ = console.session(request.cookies)
        if session is None:
            return to_login(request)
        kept: list[Opened] = []

        def page(visit: Visit) -> Response:
            kept.append(opens(visit))
            return Response()

        url, theme = own_url(request), request.cookies.get(THEME_COOKIE, "")
        try:
            begin(console)
            try:
                await console.workers.run(
                    lambda: visited(console, session, page, request, url, {}, theme)
                )
            except BaseException:
                console.streams -= 1
                raise
        except ReportedError as error:
            if kind != EVENTS:
                return failure_page(error, console, session, url, theme)
            # A browser asks again for a stream that ends: it is told why, and that it is over.
            return Response(event("failed", said(error)), media_type=kind)
        (opened,) = kept
        topic, _, reading, _ = opened

        async def parts() -> AsyncIterator[str | bytes]:
            async for part in streams(console, opened):
                if console.login is not None and not console.sessions.has(session):
                    why = "You have logged out."
                    yield event("failed", why) if kind == EVENTS else error_line(why)
                    return
                yield part

        def ended() -> None:
            console.streams -= 1
            # In a thread: a step may run there. Not awaited, as the visitor may have left.
            asyncio.get_running_loop().run_in_executor(None, reading.close)

        headers = {}
        if kind != EVENTS:
            name = quote(f"{topic}.jsonl", safe="")
            headers["content-disposition"] = f"attachment; filename*=UTF-8''{name}"
        return _Streamed(parts(), ended, media_type=kind, headers=headers)

    return answer


class _Streamed(StreamingResponse):
    """Says when it has ended, also if the visitor has left before it began."""

    def __init__(
        self, parts: AsyncIterator[str | bytes], ended: Callable[[], None], **options: Any
    ) -> None:
        super().__init__(parts, **options)
        self._ended = ended

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._ended()


def begin(console: Console) -> None:
    """Counts one more. Raises BusyError."""
    if console.streams >= MAX_STREAMS:
        raise BusyError(
            f"{console.streams} tails, searches and exports run.", "Wait until one has ended."
        )
    console.streams += 1


def error_line(why: str) -> str:
    return json.dumps({"error": why}) + "\n"


def said_of(unasked: Unasked) -> dict[str, Any]:
    """In the state, if there is something to say."""
    return {"unasked": unasked.count, "why": unasked.why} if unasked.count else {}


def event(name: str, data: str) -> str:
    """As a browser reads it: each line of the data on its own."""
    lines = "".join(f"data: {line}\n" for line in data.splitlines() or [""])
    return f"event: {name}\n{lines}\n"


def rows_html(topic: str, rows: list[SeenRecord]) -> str:
    """In a thread: a thousand rows take long."""
    if not rows:
        return ""
    return environment().get_template("message_rows.html").render(topic_name=topic, rows=rows)


def open_tail(visit: Visit) -> Opened:
    topic, query = existing_topic(visit), record_query(visit)
    numbers = [query.partition] if query.partition is not None else sorted(topic.partitions)
    if len(numbers) > MAX_TAILED:
        raise BadFormError(
            f"a tail has at most {MAX_TAILED} partitions, and {topic.name} has {len(numbers)}.",
            "Choose one.",
        )
    _, ends = known_edges(visit.client, [TopicPartition(topic.name, each) for each in numbers])
    schemas, unasked = visit.console.schemas, Unasked()
    tail = RecordTail(
        visit.access.settings, ends, query.seen(schemas), query.matches(schemas, unasked=unasked)
    )
    return topic.name, query, tail, unasked


def open_search(visit: Visit) -> Opened:
    topic, query = existing_topic(visit), record_query(visit)
    schemas, unasked = visit.console.schemas, Unasked()
    spans = spans_of(visit.client, topic, query)
    seen, matches = query.seen(schemas), query.matches(schemas, unasked=unasked)
    scan = opened_scan(visit, topic, query, spans, seen, matches)
    return topic.name, query, scan, unasked


def open_export(visit: Visit) -> Opened:
    topic, query = existing_topic(visit), record_query(visit)
    spans = spans_of(visit.client, topic, query)
    # A file that lacks what the registry did not say would look whole.
    matches = query.matches(visit.console.schemas, surely=True)
    if query.newest_first:
        # In the order of each partition: a file is read from its beginning.
        query = replace(query, start="oldest")
    scan = opened_scan(visit, topic, query, spans, render_json, matches)
    return topic.name, query, scan, Unasked()


async def tailed(console: Console, opened: Opened) -> AsyncIterator[str | bytes]:
    """New records as they arrive, without end."""
    topic, _, tail, unasked = opened
    assert isinstance(tail, RecordTail)

    def step() -> str:
        return rows_html(topic, tail.step(STEP_S, MAX_TAIL_ROWS)[::-1])

    while True:
        try:
            rows = await console.readers.run(step)
        except StoppingError:
            return  # nothing said: the browser goes on with the tail once the console is back
        except ReportedError as error:
            yield event("failed", said(error))
            return
        if rows:
            yield event("rows", rows)
        state = {"looked": tail.looked_at, "skipped": tail.skipped, "away": tail.is_away}
        state |= said_of(unasked)
        yield event("state", json.dumps(state))


async def searched(console: Console, opened: Opened) -> AsyncIterator[str | bytes]:
    """What matches, with how much was looked at, to the end."""
    topic, _, scan, unasked = opened
    assert isinstance(scan, RecordScan | KeyScan)
    found = 0

    def step(most: int) -> tuple[int, str]:
        rows = scan.step(STEP_S, most)
        return len(rows), rows_html(topic, rows[:most])

    while True:
        try:
            count, rows = await console.readers.run(partial(step, MAX_FOUND - found))
        except ReportedError as error:
            yield event("failed", said(error))
            return
        found += count
        if rows:
            yield event("rows", rows)
        state = {
            "looked": scan.looked_at,
            "passed": scan.passed_offsets,
            "total": scan.total_offsets,
            "found": found,
            **said_of(unasked),
        }
        yield event("state", json.dumps(state))
        if scan.is_done or found >= MAX_FOUND:
            yield event("done", f"{MAX_FOUND:,}" if scan.rest else "whole")
            return


async def exported(console: Console, opened: Opened) -> AsyncIterator[str | bytes]:
    """JSON lines. One that breaks off ends with a line that is no record, which programs refuse:
    `{"error": "why"}`.
    """
    _, _, scan, _ = opened
    assert isinstance(scan, RecordScan | KeyScan)
    while not scan.is_done:
        try:
            lines = await console.readers.run(lambda: scan.step(STEP_S, EXPORT_STEP))
        except ReportedError as error:
            yield error_line(said(error))
            return
        if lines:
            yield b"".join(lines)


KINDS: Final[dict[str, tuple[Open, Stream, str]]] = {
    "tail": (open_tail, tailed, EVENTS),
    "search": (open_search, searched, EVENTS),
    "export": (open_export, exported, LINES),
}
