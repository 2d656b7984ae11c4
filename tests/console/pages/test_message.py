"""One record, whole; sending it again; sending a new one."""

from __future__ import annotations

import json

import pytest
from confluent_kafka import Producer
from tests.console.served_console import Visitor

from ottla.testing import Topic

LARGE = 5_000_000


def test_a_record_and_its_parts_as_files(visitor: Visitor, ottla_topic: Topic) -> None:
    producer = Producer({"bootstrap.servers": ottla_topic.bootstrap})
    producer.produce(ottla_topic.name, b"\x00\xff<b>", "key", headers=[("h", b"v"), ("n", None)])
    producer.flush()
    page = f"/topics/{ottla_topic.name}/messages/0/0"
    words = visitor.get(page).words
    assert "Value hex, 5 bytes" in words
    assert "00000000 00 ff 3c 62 3e |..<b>|" in words
    assert "Key text, 3 bytes" in words
    got = visitor.get(f"{page}/file?part=value")
    assert got.body == b"\x00\xff<b>"
    assert got.headers["content-type"] == "application/octet-stream"
    assert got.headers["content-disposition"].startswith("attachment")
    line = json.loads(visitor.get(f"{page}/file?part=json").body)
    assert line["headers"] == [{"name": "h", "value": "v"}, {"name": "n", "value": None}]
    assert visitor.get(f"{page}/file?part=all").status == 400


@pytest.mark.ottla_topic(config={"max.message.bytes": 6_000_000})
def test_a_value_of_5_mb_is_shown_in_part_and_saved_whole(
    visitor: Visitor, ottla_topic: Topic
) -> None:
    producer = Producer(
        {"bootstrap.servers": ottla_topic.bootstrap, "message.max.bytes": 6_000_000}
    )
    for _ in range(5):
        producer.produce(ottla_topic.name, b'{"a":"' + b"x" * LARGE + b'"}')
    producer.flush()
    listed = visitor.get(f"/topics/{ottla_topic.name}/messages")
    assert "5.0 MB" in listed.words
    assert len(listed.body) < 50_000
    page = f"/topics/{ottla_topic.name}/messages/0/4"
    found = visitor.get(page)
    assert len(found.body) < 1_000_000
    assert "more bytes: save it to see all." in found.words
    assert len(visitor.get(f"{page}/file").body) == LARGE + 8


@pytest.mark.parametrize("place", ["0/7", "9/0", "0/9223372036854775807"])
def test_what_is_not_there(visitor: Visitor, ottla_topic: Topic, place: str) -> None:
    found = visitor.get(f"/topics/{ottla_topic.name}/messages/{place}")
    assert found.status == 404
    assert "has no record at offset" in found.words


def test_an_offset_beyond_the_end_is_no_other_record(visitor: Visitor, ottla_topic: Topic) -> None:
    producer = Producer({"bootstrap.servers": ottla_topic.bootstrap})
    producer.produce(ottla_topic.name, b"the first")
    producer.flush()
    page = f"/topics/{ottla_topic.name}/messages/0/5000"
    for got in (
        visitor.get(page),
        visitor.get(f"{page}/file"),
        visitor.post(f"{page}/send", target=ottla_topic.name),
    ):
        assert got.status == 404
        assert "has no record at offset 5000" in got.words
    assert visitor.get(f"/topics/{ottla_topic.name}/messages/0/1").status == 404


@pytest.mark.ottla_topic(partitions=3)
def test_a_record_is_sent_and_sent_again(visitor: Visitor, ottla_topic: Topic) -> None:
    name = ottla_topic.name
    made = visitor.post(
        f"/topics/{name}/produce",
        key="k", value="a\r\nä", headers="h=1\n x = y", partition="2",
    )  # fmt: skip
    assert f"Sent to {name}, partition 2, offset 0." in made.words
    assert "a ä" in made.words
    assert "Headers h 1 x y" in made.words or "Headers h 1 x  y" in made.words
    again = visitor.post(f"/topics/{name}/messages/2/0/send", target=name, same_partition="1")
    assert f"Sent to {name}, partition 2, offset 1." in again.words
    assert visitor.get(f"/topics/{name}/messages/2/1/file").body == "a\nä".encode()
    missing = visitor.post(f"/topics/{name}/messages/2/0/send", target="no-such-topic")
    assert missing.status == 404
    assert visitor.post(f"/topics/{name}/produce", value="x", partition="7").status == 400
    assert visitor.post(f"/topics/{name}/produce", value="x", headers="x").status == 400
    none = visitor.post(f"/topics/{name}/produce", key="gone", null="1", value="ignored")
    assert "Value null" in none.words


def test_a_record_that_the_broker_refuses(visitor: Visitor, ottla_topic: Topic) -> None:
    refused = visitor.post(f"/topics/{ottla_topic.name}/produce", value="x" * 2_000_000)
    assert refused.status == 502
    assert "The record was not sent" in refused.words
