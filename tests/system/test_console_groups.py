"""Pages of a cluster with many real groups: each has committed, some are behind."""

from __future__ import annotations

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions
from confluent_kafka import TopicPartition as PartitionAt
from confluent_kafka.admin import AdminClient
from tests.console.served_console import console_of, serving

from ottla.testing import Broker, Topic

AT_ONCE = 250
WAIT_S = 60.0
MAX_BYTES = 200_000


def commit(bootstrap: str, topic: str, count: int, end: int) -> None:
    """Group n has read up to n, or to the end."""
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    for first in range(0, count, AT_ONCE):
        asked = [
            admin.alter_consumer_group_offsets(
                [
                    ConsumerGroupTopicPartitions(
                        f"many-{number:05d}", [PartitionAt(topic, 0, min(number, end))]
                    )
                ]
            )
            for number in range(first, min(first + AT_ONCE, count))
        ]
        for each in asked:
            for answer in each.values():
                answer.result(WAIT_S)


@pytest.mark.ottla
@pytest.mark.parametrize("count", [500, pytest.param(5_000, marks=pytest.mark.full)])
def test_many_groups(ottla_broker: Broker, ottla_topic: Topic, count: int) -> None:
    end = 20
    for number in range(end):
        ottla_topic.produce(b"%d" % number)
    commit(ottla_broker.bootstrap, ottla_topic.name, count, end)
    with serving(console_of(ottla_broker.bootstrap)) as visitor:
        overview = visitor.get("/")
        assert f"Groups {count:,}" in overview.words
        # Those that have not read to the end, without members; a few are named.
        assert "many-00000: 20 records" in overview.words
        assert "many-00011: 9 records" in overview.words
        assert "and 8 more" in overview.words
        listed = visitor.get("/groups?sort=lag")
        order = [listed.words.index(f"many-{number:05d}") for number in range(end)]
        assert order == sorted(order), "the most behind first"
        last = visitor.get(f"/groups?page={-(-count // 100)}")
        assert f"many-{count - 1:05d}" in last.words
        topics = visitor.get("/topics")
        assert f"{count:,}" in topics.words, "how many groups read the topic"
        of_topic = visitor.get(f"/topics/{ottla_topic.name}/groups")
        assert "many-00000" in of_topic.words
        assert "many-00100" not in of_topic.words, "it is on the second page"
        one = visitor.get("/group?name=many-00003")
        assert "17" in one.words
        for page in (overview, listed, last, topics, of_topic, one):
            assert page.status == 200
            assert len(page.body) < MAX_BYTES
