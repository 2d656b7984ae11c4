"""Dead letters of share groups in a node (KIP-1191): where they go, and what stops them."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from tests.api.test_share_fetch import ACCEPT, OK, REJECT, RELEASE, Bench, acquired

from ottla.cluster import dead_letters
from ottla.network.peer import PeerError
from ottla.protocol.errors import ErrorCode
from ottla.records.compression import Compression
from ottla.records.header import iterate_headers
from ottla.records.iterate import iterate_records
from ottla.records.record import Record

ALLOWED = {"errors_deadletterqueue_group_enable": "true"}
PREFIX = "__dlq.errors."


@pytest.fixture
async def shares(start_node: Any) -> Bench:
    call = await start_node(
        share_coordinator_state_topic_num_partitions="1", offsets_topic_num_partitions="1"
    )
    await call.create("t", partitions=3)
    bench = Bench(call)
    await bench.initialize()
    await bench.configure("errors.deadletterqueue.topic.name", "dlq.t")
    return bench


def letters(shares: Bench, topic: str = "dlq.t", index: int = 0) -> list[Record]:
    partition = shares.node.partitions.get(topic, index)
    if partition is None:
        return []
    log = partition.log
    data = log.read(log.start_offset, max_bytes=1 << 24).read()
    found: list[Record] = []
    position = 0
    for header in iterate_headers(data):
        found += iterate_records(memoryview(data)[position:], header)
        position += header.size_bytes
    return found


def offsets(shares: Bench, index: int = 0) -> list[int]:
    return [
        int(dict(record.headers)[PREFIX + "offset"] or b"")
        for record in letters(shares, index=index)
    ]


async def is_over(shares: Bench, start: int, eventually: Callable[..., Any]) -> None:
    """Everything before this offset is."""
    shared = next(iter(shares.node.shared_partitions._shared.values()))
    await eventually(lambda: shared.progress[0] == start and shared.is_idle)


async def test_rejected_records_get_dead_letters(
    shares: Bench, eventually: Callable[..., Any]
) -> None:
    await shares.call.create("dlq.t", partitions=2, **ALLOWED)
    await shares.produce(b"a", b"b", b"c")
    await shares.fetch("a")
    assert await shares.acknowledge("a", (0, 2, REJECT, ACCEPT, REJECT)) is OK
    await eventually(lambda: len(letters(shares)) == 2)
    record = letters(shares)[0]
    assert (record.key, record.value) == (None, None)
    assert dict(record.headers) == {
        PREFIX + "topic": b"t",
        PREFIX + "partition": b"0",
        PREFIX + "offset": b"0",
        PREFIX + "group": b"g",
        PREFIX + "delivery.count": b"1",
        PREFIX + "message": b"Offset rejected by client.",
    }
    assert record.timestamp_ms > 1_000_000
    assert offsets(shares) == [0, 2]
    await is_over(shares, 3, eventually)
    dead = shares.node.shared_partitions.dead_letters
    assert (dead.written, dead.given_up) == (2, 0)


async def test_records_that_are_delivered_too_often_get_dead_letters(
    shares: Bench, eventually: Callable[..., Any]
) -> None:
    await shares.call.create("dlq.t", **ALLOWED)
    await shares.configure("share.delivery.count.limit", "2")
    await shares.produce(b"a")
    for _ in range(2):
        await shares.fetch("a")
        assert await shares.acknowledge("a", (0, 0, RELEASE)) is OK
    await eventually(lambda: letters(shares))
    headers = dict(letters(shares)[0].headers)
    assert headers[PREFIX + "delivery.count"] == b"2"
    message = headers[PREFIX + "message"]
    assert message == b"Offset delivery count exceeded the threshold."
    await is_over(shares, 1, eventually)


@pytest.mark.parametrize("codec", [Compression.none, Compression.lz4])
async def test_key_and_value_are_copied(
    shares: Bench, codec: int, eventually: Callable[..., Any]
) -> None:
    """But of what is larger than a batch of the topic may be; the headers of the record are not."""
    await shares.call.create("dlq.t", **ALLOWED, max_message_bytes="3000")
    await shares.configure("errors.deadletterqueue.copy.record.enable", "true")
    large = b"y" * 4_000
    await shares.produce(b"a", b"b", large, compression=codec)
    await shares.produce(*[b"x" * 1_000] * 5, compression=Compression.none)
    await shares.fetch("a")
    await shares.fetch("a", (0, 2, REJECT), max_wait=0)
    assert await shares.acknowledge("a", (3, 7, REJECT)) is OK
    await eventually(lambda: len(letters(shares)) == 8)
    values = [record.value for record in letters(shares)]
    # A compressed batch that is too large is not copied at all, as in Kafka.
    first = [b"a", b"b"] if codec == Compression.none else [None, None]
    assert values == [*first, None, *[b"x" * 1_000] * 5]
    assert offsets(shares) == list(range(8))
    await is_over(shares, 8, eventually)


async def test_a_topic_is_created_if_that_is_allowed(
    shares: Bench, eventually: Callable[..., Any]
) -> None:
    shares.node.config.reconfigure({"errors.deadletterqueue.auto.create.topics.enable": "true"}, {})
    await shares.produce(b"a")
    await shares.fetch("a")
    assert await shares.acknowledge("a", (0, 0, REJECT)) is OK
    await eventually(lambda: letters(shares))
    topic = shares.node.image.topic("dlq.t")
    assert dict(topic.overrides) == {
        "errors.deadletterqueue.group.enable": "true",
        "message.timestamp.type": "CreateTime",
    }


@pytest.mark.parametrize(
    ("exists", "name", "text"),
    [
        (False, "dlq.t", "does not exist and auto create is disabled"),
        (True, "dlq.t", "DLQ is not enabled on configured DLQ topic"),
        (False, "dead", "does not exist"),
    ],
)
async def test_what_cannot_be_written_is_archived_all_the_same(
    shares: Bench,
    exists: bool,
    name: str,
    text: str,
    caplog: pytest.LogCaptureFixture,
    eventually: Callable[..., Any],
) -> None:
    caplog.set_level(logging.ERROR)
    if exists:
        await shares.call.create(name)
    await shares.configure("errors.deadletterqueue.topic.name", name)
    await shares.produce(b"a", b"b")
    await shares.fetch("a")
    assert await shares.acknowledge("a", (0, 1, REJECT)) is OK
    await is_over(shares, 2, eventually)
    dead = shares.node.shared_partitions.dead_letters
    assert (dead.written, dead.given_up) == (0, 2)
    assert letters(shares) == []
    assert text in caplog.text


async def test_a_fault_that_passes_is_waited_for(
    shares: Bench, monkeypatch: pytest.MonkeyPatch, eventually: Callable[..., Any]
) -> None:
    monkeypatch.setattr(dead_letters, "FIRST_PAUSE_MS", 1)
    await shares.call.create("dlq.t", **ALLOWED)
    dead = shares.node.shared_partitions.dead_letters
    right, refusals = dead._ask, [ErrorCode.not_enough_replicas, ErrorCode.unknown_topic_id]

    async def ask(broker_id: int, request: Any) -> Any:
        response = await right(broker_id, request)
        if refusals:
            (topic,) = response.responses
            (part,) = topic.partition_responses
            parts = (replace(part, error_code=refusals.pop()),)
            return replace(response, responses=(replace(topic, partition_responses=parts),))
        return response

    monkeypatch.setattr(dead, "_ask", ask)
    await shares.produce(b"a")
    await shares.fetch("a")
    assert await shares.acknowledge("a", (0, 0, REJECT)) is OK
    await is_over(shares, 1, eventually)
    assert offsets(shares) == [0, 0, 0]
    assert (dead.written, dead.given_up) == (1, 0)


async def test_a_broker_that_ends_before_the_dead_letter_is_written_writes_it_later(
    start_node: Any, eventually: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = {"share_coordinator_state_topic_num_partitions": "1"}
    call = await start_node(**settings)
    await call.create("t")
    await call.create("dlq.t", **ALLOWED)
    bench = Bench(call)
    await bench.initialize()
    await bench.configure("errors.deadletterqueue.topic.name", "dlq.t")
    await bench.produce(b"a", b"b")
    await bench.fetch("a")
    monkeypatch.setattr(dead_letters, "AGAIN", frozenset(ErrorCode))

    async def nowhere(*_: Any) -> Any:
        raise PeerError("cut off")

    monkeypatch.setattr(call.node.shared_partitions.dead_letters, "_ask", nowhere)
    assert await bench.acknowledge("a", (0, 1, REJECT)) is OK
    await call.node.close()
    again = Bench(await start_node(**settings))
    assert letters(again) == []
    assert acquired(await again.fetch("a", max_wait=0)) == []
    await eventually(lambda: offsets(again) == [0, 1])
    await is_over(again, 2, eventually)


async def test_with_share_version_1_there_are_none(
    shares: Bench, eventually: Callable[..., Any]
) -> None:
    await shares.call.create("dlq.t", **ALLOWED)
    build = shares.call.request(57, 1)
    update = build.FeatureUpdateKey(feature="share.version", max_version_level=1, upgrade_type=2)
    answer = await shares.call.ask(
        build.UpdateFeaturesRequest(timeout=30_000, feature_updates=(update,), validate_only=False)
    )
    assert answer.error_code is OK
    await shares.produce(b"a")
    await shares.fetch("a")
    assert await shares.acknowledge("a", (0, 0, REJECT)) is OK
    await is_over(shares, 1, eventually)
    assert letters(shares) == []
