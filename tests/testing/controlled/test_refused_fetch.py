"""A refused fetch goes on with the client's session, as the client expects it (KIP-227)."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.messages import messages_of
from ottla.replica.fetch_session import FetchSessions
from ottla.testing.controlled.refused_fetch import refused_fetch

VERSION = 12
CODE = ErrorCode.not_leader_or_follower
HIGH_WATERMARK = 30


class _Broker:
    """A broker that holds partition 0 of every topic but `moved`, with 30 records."""

    def __init__(self) -> None:
        self.fetch_sessions = FetchSessions(10, lambda: 77)
        self.clock = SimpleNamespace(monotonic_ms=lambda: 1_000)
        self.image = SimpleNamespace(topic_by_id=lambda topic_id: None)
        self.partitions = self

    def find(self, topic: str, index: int) -> Any:
        if topic == "moved":
            raise ApiError(ErrorCode.unknown_topic_or_partition)
        return SimpleNamespace(
            high_watermark=HIGH_WATERMARK,
            last_stable_offset=20,
            log=SimpleNamespace(start_offset=3),
        )


def fetch(session_id: int, epoch: int, *topics: str) -> Any:
    build = messages_of(1, VERSION, "request")
    partition = build.FetchPartition(partition=0, fetch_offset=5, partition_max_bytes=100)
    return build.FetchRequest(
        max_wait=0,
        min_bytes=1,
        session_id=session_id,
        session_epoch=epoch,
        topics=tuple(build.FetchTopic(topic=each, partitions=(partition,)) for each in topics),
    )


def refused(
    broker: _Broker, request: Any, topic: str | None = None, code: ErrorCode = CODE
) -> tuple[Any, dict[str, Any]]:
    """The response, and its partitions by topic."""
    context: Any = SimpleNamespace(broker=broker, version=VERSION, messages=messages_of(1, VERSION))
    answer = refused_fetch(request, context, code, topic)
    return answer, {each.topic: each.partitions[0] for each in answer.responses or ()}


def test_a_new_session_begins_with_the_error_in_every_partition() -> None:
    answer, found = refused(_Broker(), fetch(0, 0, "a", "b"))
    assert answer.session_id == 77
    assert {name: each.error_code for name, each in found.items()} == {"a": CODE, "b": CODE}


def test_a_session_goes_on_with_the_next_epoch_and_names_what_it_holds() -> None:
    broker = _Broker()
    refused(broker, fetch(0, 0, "a", "b"))
    # Nothing has changed for the client, so it names no partition.
    answer, found = refused(broker, fetch(77, 1))
    assert answer.error_code is ErrorCode.none
    assert set(found) == {"a", "b"}
    answer, _ = refused(broker, fetch(77, 1))
    assert answer.error_code is ErrorCode.invalid_fetch_session_epoch


def test_other_topics_get_no_error_and_no_records() -> None:
    _, found = refused(_Broker(), fetch(0, 0, "a", "b"), "a")
    assert found["a"].error_code is CODE
    assert found["b"].error_code is ErrorCode.none
    assert (found["b"].high_watermark, found["b"].last_stable_offset) == (HIGH_WATERMARK, 20)
    assert found["b"].log_start_offset == 3
    assert found["b"].records == b""


def test_other_topics_of_a_session_are_left_out() -> None:
    broker = _Broker()
    refused(broker, fetch(0, 0, "a", "b"))
    _, found = refused(broker, fetch(77, 1), "a")
    assert set(found) == {"a"}


def test_another_topic_that_is_not_here_has_its_own_error() -> None:
    _, found = refused(_Broker(), fetch(0, 0, "a", "moved"), "a")
    assert found["moved"].error_code is ErrorCode.unknown_topic_or_partition


def test_the_partition_is_sent_again_after_the_error() -> None:
    broker = _Broker()
    request = fetch(0, 0, "a")
    refused(broker, request)
    session = broker.fetch_sessions.begin(fetch(77, 1), VERSION, 2_000)
    (each,) = session.partitions.values()
    assert (each.sent_high_watermark, each.sent_log_start) == (-1, -1)


@pytest.mark.parametrize(
    "code", [ErrorCode.fetch_session_id_not_found, ErrorCode.invalid_fetch_session_epoch]
)
def test_an_error_of_the_session_refuses_the_request_as_a_whole(code: ErrorCode) -> None:
    broker = _Broker()
    answer, found = refused(broker, fetch(0, 0, "a"), code=code)
    assert (answer.error_code, found) == (code, {})
    assert len(broker.fetch_sessions) == 0


def test_a_fetch_without_a_session_leaves_none() -> None:
    broker = _Broker()
    answer, found = refused(broker, fetch(0, -1, "a"))
    assert (answer.session_id, set(found)) == (0, {"a"})
    assert len(broker.fetch_sessions) == 0
