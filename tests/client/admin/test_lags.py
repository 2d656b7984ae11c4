"""How far groups are behind."""

from __future__ import annotations

from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as PartitionAt

from ottla.client.admin.committed_offsets import Commit
from ottla.client.admin.groups import ListedGroup
from ottla.client.admin.lags import GroupLag, Lags, computed_lags, lags, left_behind
from ottla.client.client import Client
from ottla.client.topic_partition import TopicPartition
from ottla.testing import Topic


def at(offset: int) -> Commit:
    return Commit(offset, "", -1)


def test_the_worst_first_and_only_what_is_known() -> None:
    t0, t1, u0, gone = (TopicPartition(*each) for each in (("t", 0), ("t", 1), ("u", 0), ("x", 0)))
    found = computed_lags(
        {
            "a": {t0: at(3), t1: at(9), gone: at(1)},
            "b": {u0: at(0), t0: at(20)},
            "c": {gone: at(1)},
        },
        {t0: 10, t1: 10, u0: 50},
    )
    assert found == [
        GroupLag("b", "u", 50, 1),
        GroupLag("a", "t", 8, 2),
        GroupLag("b", "t", 0, 1),
    ]


def test_of_a_real_group(ottla_topic: Topic) -> None:
    producer = Producer({"bootstrap.servers": ottla_topic.bootstrap})
    for number in range(7):
        producer.produce(ottla_topic.name, str(number), partition=0)
    producer.flush()
    group = f"lag-{ottla_topic.name}"
    consumer = Consumer({"bootstrap.servers": ottla_topic.bootstrap, "group.id": group})
    consumer.commit(offsets=[PartitionAt(ottla_topic.name, 0, 3)], asynchronous=False)
    consumer.close()
    with Client(ottla_topic.bootstrap) as client:
        found = lags(client)
    assert found.is_whole
    assert found.by_group()[group] == [GroupLag(group, ottla_topic.name, 4, 1)]
    assert found.by_topic()[ottla_topic.name] == [GroupLag(group, ottla_topic.name, 4, 1)]


def test_who_is_behind_without_members() -> None:
    behind = (("a", "t", 7), ("b", "t", 5), ("b", "u", 5), ("c", "t", 0), ("d", "t", 9))
    known = Lags([GroupLag(*each, 1) for each in behind], True)
    groups = [ListedGroup(name, "empty", "classic") for name in "abcx"]
    groups.append(ListedGroup("d", "stable", "classic"))
    assert left_behind(groups, known) == [("b", 10), ("a", 7)]
