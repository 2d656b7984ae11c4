"""Pages of one topic with very many partitions: each is bounded, and shows what is asked for."""

from __future__ import annotations

import json
import re

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, Producer
from confluent_kafka import TopicPartition as PartitionAt
from confluent_kafka.admin import AdminClient
from tests.console.served_console import console_of, serving

from ottla.client.admin.topics import NewTopic, create_topics
from ottla.client.client import Client
from ottla.testing import Broker

WAIT_S = 60.0
MAX_BYTES = 250_000
PER_PAGE = 200
SOME_PAGES = 4


def fill(bootstrap: str, count: int) -> None:
    """Two records of each partition; the group `behind` has read one of each."""
    with Client(bootstrap) as client:
        create_topics(client, [NewTopic("wide", count, 1)])
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 50})
    for number in range(2 * count):
        value = json.dumps({"n": number})
        producer.produce("wide", value, b"k%d" % number, partition=number % count)
        producer.poll(0)
    assert producer.flush(WAIT_S) == 0
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    read = [PartitionAt("wide", number, 1) for number in range(count)]
    asked = admin.alter_consumer_group_offsets([ConsumerGroupTopicPartitions("behind", read)])
    for answer in asked.values():
        answer.result(WAIT_S)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("count", [500, pytest.param(10_000, marks=pytest.mark.full)])
def test_a_topic_with_very_many_partitions(count: int) -> None:
    last = count - 1
    with Broker() as broker, serving(console_of(broker.bootstrap)) as visitor:
        fill(broker.bootstrap, count)
        found = {
            path: visitor.get(path)
            for path in (
                *("/", "/topics", "/groups", "/group?name=behind", "/topics/wide/partitions"),
                f"/topics/wide/partitions?page={-(-count // PER_PAGE)}",
                *("/topics/wide/partitions?show=wrong", f"/topics/wide/partitions/{last}"),
                *("/topics/wide/groups", "/topics/wide/settings", "/topics/wide/messages"),
                *("/topics/wide/messages?start=oldest", "/topics/wide/messages?text=nobody"),
                f"/topics/wide/messages?partition={last}",
                f"/topics/wide/messages/{last}/1",
                f"/topics/wide/messages/{last}/1/journey",
            )
        }
        for path, page in found.items():
            assert page.status == 200, (path, page.words)
            assert len(page.body) < MAX_BYTES, path
        words = {path: page.words for path, page in found.items()}
        assert f"behind: {count:,} records" in words["/"]
        first = found["/topics/wide/partitions"].text
        assert f"/topics/wide/partitions/{PER_PAGE - 1}" in first
        assert f'"/topics/wide/partitions/{PER_PAGE}"' not in first
        assert (
            f'"/topics/wide/partitions/{last}"'
            in found[f"/topics/wide/partitions?page={-(-count // PER_PAGE)}"].text
        )
        # Some of the partitions of a group are listed, and the number of the others is said.
        assert f"Lag {count:,}" in words["/group?name=behind"]
        if count > 1000:
            assert f"{count - 1000:,} more partitions" in words["/group?name=behind"]
        assert f"50 records of {2 * count:,} offsets" in words["/topics/wide/messages"]
        assert "wide 1 " not in words["/topics/wide/groups"]
        assert f"behind {count:,} {count:,}" in words["/topics/wide/groups"]
        # Each page looks for a moment; where the list goes on has a name, as it is too long.
        listed: list[str] = []
        path = "/topics/wide/messages?text=k"
        for _ in range(SOME_PAGES):
            following = visitor.get(path)
            assert following.status == 200, (path, following.words)
            listed += re.findall(r'/messages/(\d+/\d+)"', following.text)
            link = re.search(r'id="next" href="([^"]+)"', following.text)
            assert link is not None
            assert "rest=kept-" in link[1]
            path = link[1].replace("&amp;", "&")
        assert listed
        assert len(listed) == len(set(listed)), "a record is on two pages"
        lost = visitor.get("/topics/wide/messages?rest=kept-0123")
        assert lost.status == 400
        assert "no longer kept" in lost.words
        # What an address cannot name is refused in words.
        again = visitor.get("/topics/wide/send-again?text=nobody")
        assert again.status == 400
        assert "too many partitions to do this at once" in again.words
        one = visitor.get(f"/topics/wide/messages?key=k{last}").words
        assert "1 found" in one or "offsets left" in one
        searched = visitor.get(f"/topics/wide/search?key=k{last}").text
        assert searched.count("<tr") == 1
        assert f'"passed": {2 * count}, "total": {2 * count}' in searched
        exported = visitor.get("/topics/wide/export").body.splitlines()
        assert len(exported) == 2 * count
