"""What goes on after a page is there: tail, search, export."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager

import pytest
from confluent_kafka import Producer
from starlette.requests import ClientDisconnect
from starlette.types import Message
from tests.console.served_console import HOST, WAIT_S, Visitor, console_of, serving

from ottla.client.topic_partition import TopicPartition
from ottla.console.login import PasswordLogin
from ottla.console.record_query import RecordQuery
from ottla.console.record_streams import MAX_STREAMS, Opened, _Streamed, exported
from ottla.console.schemas import Unasked
from ottla.console.workers import Workers
from ottla.messaging.record_scan import RecordScan
from ottla.messaging.rendering import render_json
from ottla.testing import Topic

NOTHING_ASKED = RecordQuery("oldest", None, None, "", "", "", "", "", "auto", "")


def produce(topic: Topic, values: list[str]) -> None:
    producer = Producer({"bootstrap.servers": topic.bootstrap})
    for value in values:
        producer.produce(topic.name, value)
    producer.flush()


@contextmanager
def events(visitor: Visitor, path: str) -> Iterator[Iterator[tuple[str, str]]]:
    connection = http.client.HTTPConnection(HOST, visitor.port, timeout=WAIT_S)
    cookies = "; ".join(f"{name}={value}" for name, value in visitor.cookies.items())
    connection.request("GET", path, headers={"Cookie": cookies})
    response = connection.getresponse()
    assert response.headers["content-type"].startswith("text/event-stream")

    def read() -> Iterator[tuple[str, str]]:
        name, data = "", []
        while line := response.readline().decode():
            field, _, value = line.rstrip("\n").partition(": ")
            if field == "event":
                name = value
            elif field == "data":
                data.append(value)
            elif not line.strip():
                yield name, "\n".join(data)
                data = []

    try:
        yield read()
    finally:
        connection.close()


def test_a_search_looks_at_everything_and_says_so(visitor: Visitor, ottla_topic: Topic) -> None:
    produce(ottla_topic, [f"value-{number}" for number in range(3000)])
    path = f"/topics/{ottla_topic.name}/search?text=value-..99&start=oldest"
    with events(visitor, path) as found:
        got = list(found)
    rows = "".join(data for name, data in got if name == "rows")
    assert [f"value-{n}99" in rows for n in (10, 15, 29)] == [True] * 3
    state = json.loads([data for name, data in got if name == "state"][-1])
    assert state == {"looked": 3000, "passed": 3000, "total": 3000, "found": 20}
    assert got[-1] == ("done", "whole")


def test_a_tail_shows_what_arrives(visitor: Visitor, ottla_topic: Topic) -> None:
    produce(ottla_topic, ["before"])
    with events(visitor, f"/topics/{ottla_topic.name}/tail?text=%3Cb") as found:
        assert next(found)[0] == "state"
        produce(ottla_topic, ["<b>new</b>", "other"])
        rows = next(data for name, data in found if name == "rows")
    assert "&lt;b&gt;new" in rows
    assert "before" not in rows
    assert "other" not in rows


def test_why_there_is_no_stream(visitor: Visitor, ottla_topic: Topic) -> None:
    for path, why in (
        (f"/topics/{ottla_topic.name}/tail?text=(", "is not a regular expression"),
        (f"/topics/{ottla_topic.name}x/search", "there is no topic"),
    ):
        with events(visitor, path) as found:
            (only,) = found
        assert only[0] == "failed"
        assert why in only[1]


def test_an_export_is_json_lines(visitor: Visitor, ottla_topic: Topic) -> None:
    produce(ottla_topic, [f"value-{number}" for number in range(20_000)])
    got = visitor.get(f"/topics/{ottla_topic.name}/export?text=7$")
    assert got.headers["content-disposition"].endswith(f"{ottla_topic.name}.jsonl")
    lines = [json.loads(line) for line in got.body.splitlines()]
    assert [line["value"] for line in lines] == [f"value-{n}" for n in range(7, 20_000, 10)]
    assert visitor.get(f"/topics/{ottla_topic.name}/export?text=(").status == 400


def test_one_stream_too_many_is_refused_and_none_is_counted_twice(ottla_topic: Topic) -> None:
    page = f"/topics/{ottla_topic.name}"
    with serving(console := console_of(ottla_topic.bootstrap)) as visitor:
        console.streams = MAX_STREAMS - 1
        with events(visitor, f"{page}/tail") as tail:
            assert next(tail)[0] == "state"
            with events(visitor, f"{page}/search") as refused:
                ((name, why),) = refused
            assert name == "failed"
            assert why == "16 tails, searches and exports run. Wait until one has ended."
            assert visitor.get(f"{page}/export").status == 503
        for _ in range(300):
            if console.streams < MAX_STREAMS:
                break
            time.sleep(0.1)
        assert console.streams == MAX_STREAMS - 1
        with events(visitor, "/topics/none/search") as refused:
            assert [name for name, _ in refused] == ["failed"]
        assert console.streams == MAX_STREAMS - 1


def test_a_tail_ends_with_its_session(ottla_topic: Topic) -> None:
    console = console_of(ottla_topic.bootstrap)
    console.login = PasswordLogin("long enough it is", console.access)
    with serving(console) as visitor:
        visitor.send("/login", password="long enough it is")
        with events(visitor, f"/topics/{ottla_topic.name}/tail") as tail:
            assert next(tail)[0] == "state"
            visitor.send("/logout")
            (last,) = [each for each in tail if each[0] != "state"]
    assert last == ("failed", "You have logged out.")


async def test_who_leaves_before_a_stream_begins_leaves_nothing() -> None:
    ended = []

    async def gone(_: object) -> None:
        raise OSError("gone")

    async def leave() -> Message:
        return {"type": "http.disconnect"}

    async def parts() -> AsyncIterator[str]:
        yield "never asked for"

    streamed = _Streamed(parts(), lambda: ended.append(True))
    with pytest.raises((OSError, ClientDisconnect)):
        await streamed({"type": "http", "asgi": {"spec_version": "2.4"}}, leave, gone)
    assert ended == [True]


async def test_an_export_that_breaks_off_says_so() -> None:
    console, key = console_of("127.0.0.1:1"), TopicPartition("t", 0)
    settings = {"bootstrap.servers": "127.0.0.1:1"}
    scan = RecordScan(settings, {key: (0, 5)}, render_json)
    console.readers = Workers(1, -1)  # none is free
    opened: Opened = ("t", NOTHING_ASKED, scan, Unasked())
    lines = [part async for part in exported(console, opened)]
    assert [*json.loads(lines[0])] == ["error"]
    assert len(lines) == 1
    scan.close()
    console.close()
