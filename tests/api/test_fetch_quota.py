"""A consumer over its quota gets an empty response, and its records later."""

from typing import Any

import pytest

from ottla.protocol.errors import ErrorCode
from ottla.quotas.entity import Entity, Kind
from ottla.records.header import iterate_headers

KEY = 1


class Consumer:
    """Fetches t-0 in a session, from an offset that it remembers."""

    def __init__(self, node_call: Any, version: int = 12) -> None:
        self.call, self.version = node_call, version
        self.session_id = self.epoch = self.offset = 0

    async def fetch(self, *, named: bool = True) -> tuple[int, list[int]]:
        """The time to wait, and the offsets of the batches."""
        build = self.call.request(KEY, self.version)
        partition = build.FetchPartition(
            partition=0,
            fetch_offset=self.offset,
            partition_max_bytes=1 << 20,
            current_leader_epoch=-1,
        )
        topics = (build.FetchTopic(topic="t", partitions=(partition,)),) if named else ()
        answer = await self.call.ask(
            build.FetchRequest(
                topics=topics,
                max_wait=0,
                min_bytes=1,
                max_bytes=1 << 20,
                session_id=self.session_id,
                session_epoch=self.epoch,
            )
        )
        assert answer.error_code is ErrorCode.none
        self.session_id = answer.session_id
        self.epoch = self.epoch + 1 if answer.session_id else 0
        found = [
            header.base_offset
            for topic in answer.responses
            for each in topic.partitions
            for header in iterate_headers(each.records or b"")
        ]
        if found:
            self.offset = found[-1] + 1
        return answer.throttle_time, found


@pytest.fixture
async def limited(node_call: Any) -> Any:
    """A consumer's broker with three batches of 500 bytes each in t-0."""
    for _ in range(3):
        await node_call.produce("t", node_call.batch(bytes(430)))
    return node_call


def limit(node_call: Any, bytes_a_second: float | None) -> None:
    throttling = node_call.node.throttling
    values = {} if bytes_a_second is None else {Kind.FETCH: bytes_a_second}
    throttling.meters.set(Entity("ANONYMOUS"), values)
    throttling.changed()


async def test_what_is_read_at_once_is_within_the_quota(limited: Any) -> None:
    limit(limited, 60)  # 600 bytes at once
    consumer = Consumer(limited)
    assert await consumer.fetch() == (0, [0])
    throttle_ms, found = await consumer.fetch()
    assert throttle_ms > 0
    assert found == []


async def test_a_throttled_session_goes_on_with_what_it_did_not_get(limited: Any) -> None:
    consumer = Consumer(limited)
    limit(limited, 60)
    assert await consumer.fetch() == (0, [0])
    assert consumer.session_id
    assert (await consumer.fetch())[1] == []
    assert consumer.session_id
    limit(limited, None)
    # The client names it no more: the session knows what it has not got.
    assert await consumer.fetch(named=False) == (0, [1, 2])


async def test_a_session_that_begins_throttled_does_not_begin(limited: Any) -> None:
    limit(limited, 60)
    assert await Consumer(limited).fetch() == (0, [0])
    other = Consumer(limited)
    throttle_ms, found = await other.fetch()
    assert throttle_ms > 0
    assert (other.session_id, found) == (0, [])
    assert len(limited.node.fetch_sessions) == 1


async def test_with_a_byte_a_second_each_batch_arrives_in_the_end(limited: Any) -> None:
    limit(limited, 1)
    consumer = Consumer(limited)
    throttle_ms, found = await consumer.fetch()
    assert throttle_ms > 100_000
    assert found == [0]
    throttle_ms, found = await consumer.fetch()
    assert throttle_ms > 100_000
    assert found == []
