"""The topics that a request names, in the fields of each request type."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from ottla.protocol.messages import messages_of
from ottla.testing.controlled.requested_topics import requested_topics

ORDERS_ID = UUID(int=7)


def named(request: Any, session: dict[int, set[Any]] | None = None) -> frozenset[str]:
    """The topics that a broker finds which knows the id of `orders`, and these fetch sessions."""
    sessions = session or {}
    known = {ORDERS_ID: SimpleNamespace(name="orders")}
    broker = SimpleNamespace(
        image=SimpleNamespace(topic_by_id=known.get),
        fetch_sessions=SimpleNamespace(topics=lambda number: sessions.get(number, set())),
    )
    return requested_topics(request, broker)


def produce(version: int, **topic: Any) -> Any:
    build = messages_of(0, version, "request")
    data = (build.PartitionProduceData(index=0, records=b""),)
    topics = (build.TopicProduceData(partition_data=data, **topic),)
    return build.ProduceRequest(acks=1, timeout=1_000, topic_data=topics)


def fetch(session_id: int, *names: str) -> Any:
    build = messages_of(1, 12, "request")
    topics = tuple(build.FetchTopic(topic=name, partitions=()) for name in names)
    return build.FetchRequest(
        max_wait=0, min_bytes=1, session_id=session_id, session_epoch=1, topics=topics
    )


def test_a_topic_is_found_by_name_and_by_id() -> None:
    assert named(produce(9, name="orders")) == {"orders"}
    assert named(produce(13, topic_id=ORDERS_ID)) == {"orders"}


def test_an_id_that_no_topic_has_names_none() -> None:
    assert named(produce(13, topic_id=UUID(int=8))) == frozenset()


def test_a_fetch_names_the_topics_of_its_session_too() -> None:
    sessions = {5: {"from the session", ORDERS_ID, None}}
    assert named(fetch(5, "t"), sessions) == {"t", "from the session", "orders"}
    assert named(fetch(6, "t"), sessions) == {"t"}


def test_the_names_of_groups_are_not_topics() -> None:
    for key, version in ((15, 5), (42, 2)):
        build = messages_of(key, version, "request")
        field = {15: "groups", 42: "groups_names"}[key]
        request = getattr(build, {15: "DescribeGroupsRequest", 42: "DeleteGroupsRequest"}[key])
        assert named(request(**{field: ("orders",)})) == frozenset()


def test_topics_inside_groups_and_transactions_are_found() -> None:
    build = messages_of(9, 8, "request")
    topic = build.OffsetFetchRequestTopics(name="orders", partition_indexes=(0,))
    group = build.OffsetFetchRequestGroup(group_id="g", topics=(topic,))
    assert named(build.OffsetFetchRequest(groups=(group,), require_stable=False)) == {"orders"}


@pytest.mark.parametrize("names", [(), ("a",), ("a", "b")])
def test_names_in_a_plain_list(names: tuple[str, ...]) -> None:
    build = messages_of(20, 5, "request")
    request = build.DeleteTopicsRequest(topic_names=names, timeout=1_000)
    assert named(request) == set(names)
