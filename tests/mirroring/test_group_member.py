"""The membership in a mirror's group, without a cluster."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from ottla.client.errors import RefusedError
from ottla.client.topic_partition import TopicPartition
from ottla.mirroring.clusters import Side
from ottla.mirroring.group_member import GroupMember
from ottla.mirroring.spec import MirrorSpec

MAP, ONE = TopicPartition("ottla-mirror-mirror", 0), TopicPartition("t", 1)


@pytest.fixture
def member() -> Iterator[Any]:
    side = Side("127.0.0.1:1", {"bootstrap.servers": "127.0.0.1:1"}, "target")
    made: Any = GroupMember(MirrorSpec(), side, lambda: None)
    consumer = made._consumer
    yield made
    made._consumer = consumer
    made._revoked(consumer, [])
    made.close()


def reason(code: str) -> Any:
    kind: Any = KafkaError
    return kind(getattr(kind, code))


@pytest.mark.parametrize(
    "name",
    ["NOT_COORDINATOR", "COORDINATOR_NOT_AVAILABLE", "COORDINATOR_LOAD_IN_PROGRESS", "_WAIT_COORD"],
)
def test_positions_wait_for_a_coordinator_that_has_gone(member: Any, name: str) -> None:
    def committed(_partitions: Any, timeout: float) -> None:
        raise KafkaException(reason(name))

    member._consumer = SimpleNamespace(committed=committed)
    assert member.positions([ONE], 1.0) is None


def test_who_holds_the_map_looks_after_groups(member: Any) -> None:
    consumer = SimpleNamespace(assign=lambda _: None, pause=lambda _: None, unassign=lambda: None)
    member._assigned(consumer, [ONE])
    assert (member.shares, member.looks_after_groups) == ({ONE}, False)
    member._assigned(consumer, [ONE, MAP])
    assert (member.shares, member.looks_after_groups) == ({ONE}, True)
    member._revoked(consumer, [])
    assert (member.shares, member.looks_after_groups) == (set(), False)


@pytest.mark.parametrize(
    ("code", "lacking"),
    [
        ("GROUP_AUTHORIZATION_FAILED", ("Read", "group", "ottla-mirror-mirror")),
        ("TOPIC_AUTHORIZATION_FAILED", None),
    ],
)
def test_a_permission_that_is_missing(
    member: Any, code: str, lacking: tuple[str, ...] | None
) -> None:
    event = SimpleNamespace(error=lambda: reason(code))
    member._consumer = SimpleNamespace(poll=lambda _: event)
    with pytest.raises(RefusedError) as refused:
        member.poll(0)
    assert refused.value.lacking == lacking
