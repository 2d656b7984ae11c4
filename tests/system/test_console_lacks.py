"""Every page where something is missing: a request that an old Kafka lacks, a permission; and where
there is very much.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from tests.console.served_console import console_of, serving

from ottla.client import connection
from ottla.client.admin.groups import ListedGroup
from ottla.client.admin.lags import GroupLag, Lags
from ottla.client.admin.topic_sizes import TopicSize
from ottla.client.errors import ClosedError
from ottla.client.metadata import Broker as MetadataBroker
from ottla.client.metadata import Metadata, Partition
from ottla.client.metadata import Topic as MetadataTopic
from ottla.client.wire import Wire
from ottla.console import shared_answers
from ottla.console.pages import topics as topics_page
from ottla.protocol.errors import ErrorCode
from ottla.testing import Broker, SharedBroker

NEWEST_KEY = 44
"""Of Apache Kafka 2.3: IncrementalAlterConfigs (KIP-339)."""
NEWEST = {9: 5, 10: 2, 15: 4, 16: 2}
"""Of requests about groups, before they had many groups (KIP-709) and states (KIP-518)."""
NOTHING_ALLOWED = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:somebody-else",
}
TOPIC_PAGES = (
    *("messages", "messages?key=k", "messages/0/0", "messages/0/0/journey", "partitions"),
    *("partitions/0", "settings", "groups", "produce", "send-again"),
)


def paths(topic: str) -> list[str]:
    """Of all pages."""
    return [
        *("/", "/topics", "/topics/new", "/groups", "/transactions", "/pipelines", "/security"),
        *("/brokers/1", "/jump?q=none", "/places?q=o"),
        *(f"/topics/{topic}/{each}" for each in TOPIC_PAGES),
    ]


def test_an_old_kafka_shows_what_it_has(
    ottla_broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked_versions = connection._asked_versions

    def old_versions(wire: Wire, within_s: float) -> Any:
        return {
            key: (least, min(most, NEWEST.get(key, most)))
            for key, (least, most) in asked_versions(wire, within_s).items()
            if key <= NEWEST_KEY
        }

    def closed(self: Any, *_: Any) -> Any:
        raise ClosedError("the broker closed the connection.")

    topic = ottla_broker.create_topic()
    topic.produce("a value")
    monkeypatch.setattr(connection, "_asked_versions", old_versions)
    monkeypatch.setattr(connection.Connection, "ask_bytes", closed)
    with serving(console_of(ottla_broker.bootstrap)) as visitor:
        found = {path: visitor.get(path) for path in paths(topic.name)}
    lacking = {path for path, got in found.items() if got.status != 200}
    assert lacking == {"/transactions"}
    assert "Controller 1" in found["/"].words
    for path in lacking:
        assert found[path].status == 501
        assert "This Kafka is too old for that" in found[path].words
        assert "Apache Kafka" in found[path].words.partition("too old for that")[2]
    assert "a value" in found[f"/topics/{topic.name}/messages"].words


@pytest.mark.ottla(config=NOTHING_ALLOWED)
def test_who_may_nothing_is_told_which_acl_he_lacks(ottla_broker: Broker) -> None:
    with serving(console_of(ottla_broker.bootstrap)) as visitor:
        for path in paths("orders"):
            found = visitor.get(path)
            assert found.status in (200, 403, 404), (path, found.words)
            if found.status == 403:
                assert "Not permitted" in found.words, path
                assert "As an administrator: ottla acl add" in found.words, path
        lacking = {
            "/transactions": "",
            "/security": "Describe on the cluster",
            "/brokers/1": "DescribeConfigs on",
            "/topics/orders/messages": "Describe on topic orders",
        }
        for path, acl in lacking.items():
            assert acl in visitor.get(path).words, path


def large(topics: int, groups: int) -> tuple[Metadata, list[ListedGroup], Lags]:
    """A cluster."""
    partition = Partition(1, 0, (1,), (1,), ())
    names = [f"topic-{number:05d}" for number in range(topics)]
    known = {
        name: MetadataTopic(name, UUID(int=1), ErrorCode.none, False, {0: partition, 1: partition})
        for name in names
    }
    listed = [ListedGroup(f"group-{number:05d}", "empty", "consumer") for number in range(groups)]
    lags = [
        GroupLag(each.group, names[number % topics], groups - number, 2)
        for number, each in enumerate(listed)
    ]
    brokers = {1: MetadataBroker(1, "localhost", 1)}
    return Metadata("cluster", 1, brokers, known), listed, Lags(lags, True)


def test_ten_thousand_topics_and_five_thousand_groups(
    ottla_session_broker: SharedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    metadata, listed, lags = large(10_000, 5_000)
    sized: list[int] = []

    def sizes(_: Any, chosen: Any) -> Any:
        sized.append(len(chosen))
        return {name: TopicSize(number, number) for number, name in enumerate(chosen)}, {}

    monkeypatch.setattr(topics_page, "shared_metadata", lambda _: metadata)
    monkeypatch.setattr(topics_page, "topic_sizes", sizes)
    monkeypatch.setattr(shared_answers, "listed_groups", lambda _: listed)
    monkeypatch.setattr(shared_answers, "lags", lambda _: lags)
    with serving(console_of(ottla_session_broker.bootstrap)) as visitor:
        first = visitor.get("/topics")
        assert first.status == 200
        assert sized == [topics_page.PER_PAGE], "only those of the page"
        assert "topic-00099" in first.words
        assert "topic-00100" not in first.words
        assert "5,000" in first.words, "the worst lag is in the list"
        assert "topic-09999" in visitor.get("/topics?page=100").words
        assert "topic-00000" in visitor.get("/topics?sort=lag").words
        assert sized[1:] == [topics_page.PER_PAGE] * 2
        groups = visitor.get("/groups?sort=lag")
        assert "group-00000" in groups.words
        assert "group-00100" not in groups.words
        assert "group-04999" in visitor.get("/groups?page=50").words
        overview = visitor.get("/").words
        assert "5,000" in overview
        assert max(len(each.body) for each in (first, groups)) < 200_000
