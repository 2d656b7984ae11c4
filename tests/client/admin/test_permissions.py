"""What a client may do with topics."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.client.fake_cluster import Answer, FakeCluster

from ottla.client.admin.permissions import NOT_KNOWN, topic_permissions
from ottla.client.metadata import METADATA
from ottla.protocol.access import Operation
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages import messages_of

READ_AND_DESCRIBE = 1 << Operation.READ | 1 << Operation.DESCRIBE


def answered(topics: Mapping[str, tuple[ErrorCode, int]]) -> Answer:
    """The error and the bits of each topic."""

    def answer(address: str, request: Any) -> Any:
        build = messages_of(METADATA, request.__version__)
        return build.MetadataResponse(
            brokers=(),
            controller_id=1,
            topics=tuple(
                build.MetadataResponseTopic(
                    name=name, error_code=code, topic_authorized_operations=bits, partitions=()
                )
                for name, (code, bits) in topics.items()
            ),
        )

    return answer


def test_what_is_allowed_hidden_unknown_and_missing() -> None:
    cluster = FakeCluster()
    cluster.answers[METADATA] = [
        answered(
            {
                "a": (ErrorCode.none, READ_AND_DESCRIBE),
                "hidden": (ErrorCode.topic_authorization_failed, NOT_KNOWN),
                "missing": (ErrorCode.unknown_topic_or_partition, NOT_KNOWN),
                "silent": (ErrorCode.none, NOT_KNOWN),
            }
        )
    ]
    found = topic_permissions(cluster.client(), ["a", "hidden", "missing", "silent"])
    assert found == {
        "a": {Operation.READ, Operation.DESCRIBE},
        "hidden": frozenset(),
        "silent": None,
    }
    (request,) = cluster.requests(METADATA)
    assert request.include_topic_authorized_operations
    assert not request.allow_auto_topic_creation


def test_brokers_that_do_not_know_them() -> None:
    """Before Apache Kafka 2.3."""
    cluster = FakeCluster()
    cluster.versions["b1:9092"] = {METADATA: (0, 7)}
    cluster.answers[METADATA] = [answered({"a": (ErrorCode.none, READ_AND_DESCRIBE)})]
    assert topic_permissions(cluster.client(), ["a"]) == {"a": None}


def test_nothing_is_asked_about_no_topics() -> None:
    cluster = FakeCluster()
    assert topic_permissions(cluster.client(), []) == {}
    assert not cluster.asked
