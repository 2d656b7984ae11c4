"""What a journey's request is answered when the message cannot be explained."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from ottla.protocol.errors import ApiError, ErrorCode
from ottla.runtime.one_at_a_time import OneAtATime
from ottla.tracing import trace as tracing
from ottla.tracing.find_message import JourneyError, MessageQuery
from ottla.tracing.trace import trace

QUERY = MessageQuery("t", None, 5, None, False)


class Traced:
    """A broker that leads partition 0 of topic t; another one leads partition 1."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, is_closed: bool = False) -> None:
        self.partition = SimpleNamespace(index=0, log=SimpleNamespace(is_closed=is_closed))
        self.topics: dict[str, Any] = {}
        self.image = SimpleNamespace(topic=self.topics.get)
        self.timelines = SimpleNamespace(explaining=OneAtATime())
        self.fault: Exception | None = None
        monkeypatch.setattr(tracing, "led_partitions", lambda *_: [self.partition])
        monkeypatch.setattr(tracing, "led_elsewhere", lambda *_: [1])
        monkeypatch.setattr(tracing, "find_message", self.find)

    async def find(self, *_: Any) -> tuple[Any, int, None]:
        assert self.timelines.explaining.is_taken, "one message at a time"
        if self.fault is not None:
            raise self.fault
        return self.partition, 5, None

    async def error(self, fault: Exception | None = None) -> JourneyError:
        self.fault = fault
        with pytest.raises(JourneyError) as failed:
            await trace(QUERY, self)  # type: ignore[arg-type]
        assert not self.timelines.explaining.is_taken
        return failed.value


@pytest.mark.parametrize(
    ("code", "answer"),
    [
        (ErrorCode.kafka_storage_error, "storage_error"),
        (ErrorCode.corrupt_message, "storage_error"),
        (ErrorCode.offset_out_of_range, "not_available"),
        (ErrorCode.not_leader_or_follower, "not_available"),
    ],
)
async def test_errors_of_the_log(
    monkeypatch: pytest.MonkeyPatch, code: ErrorCode, answer: str
) -> None:
    error = await Traced(monkeypatch).error(ApiError(code, "why"))
    assert (error.code, str(error)) == (answer, "why")


async def test_a_log_that_was_closed_was_deleted(monkeypatch: pytest.MonkeyPatch) -> None:
    traced = Traced(monkeypatch, is_closed=True)
    error = await traced.error(ApiError(ErrorCode.kafka_storage_error))
    assert (error.code, str(error)) == ("unknown_topic", "topic 't' was deleted in the meantime")


async def test_who_else_may_have_the_message(monkeypatch: pytest.MonkeyPatch) -> None:
    error = await Traced(monkeypatch).error(JourneyError("empty", "no records"))
    assert (error.code, error.elsewhere) == ("empty", [1])


@pytest.mark.parametrize("partitions", [None, ()])
async def test_a_topic_that_is_deleted_while_it_is_searched(
    monkeypatch: pytest.MonkeyPatch, partitions: tuple[()] | None
) -> None:
    """Or deleted and created again with fewer partitions."""
    traced = Traced(monkeypatch)
    if partitions is not None:
        traced.topics["t"] = SimpleNamespace(partitions=partitions)
    assert (await traced.error()).code == "unknown_topic"
