"""What one message may hold, counted over all its arrays and tagged fields."""

from threading import Thread
from typing import Any

import pytest

from ottla.protocol.codec import decode
from ottla.protocol.errors import DecodeError
from ottla.protocol.frames import (
    body_reader,
    read_request_body,
    read_request_header,
    read_response,
    write_request,
    write_response,
)
from ottla.protocol.message_budget import LOOP, MESSAGE, Budget, LongMessageError
from ottla.protocol.messages import message_class, messages_of

OFFSET_FETCH, METADATA, REASSIGN = 9, 3, 45


def offset_fetch(topics: int, partitions: int, version: int = 7) -> bytes:
    build = messages_of(OFFSET_FETCH, version, "request")
    each = build.OffsetFetchRequestTopic(name="t", partition_indexes=tuple(range(partitions)))
    request = build.OffsetFetchRequest(group_id="g", topics=(each,) * topics)
    return write_request(request, 1, "x")[4:]


def decoded(frame: bytes, budget: Budget = MESSAGE) -> Any:
    header = read_request_header(frame)
    position = header.body_position + 1  # no tagged fields in the header
    return decode(message_class(header.key, header.version, "request"), frame, position, budget)[0]


def test_elements_are_counted_over_nested_arrays() -> None:
    frame = offset_fetch(100, 60)
    assert len(decoded(frame).topics) == 100
    with pytest.raises(LongMessageError):
        decoded(frame, LOOP)
    assert len(decoded(frame, Budget(6_100, 0)).topics) == 100
    with pytest.raises(LongMessageError):
        decoded(frame, Budget(6_099, 0))


def test_a_message_beyond_the_limits_is_refused() -> None:
    frame = offset_fetch(1_100, 1_000)
    with pytest.raises(DecodeError, match="more than 1,000,000 elements in arrays"):
        decoded(frame)


def reassignments(partitions: int) -> bytes:
    """Each with three replicas."""
    build = messages_of(REASSIGN, 0, "request")
    each = tuple(
        build.ReassignablePartition(partition_index=index, replicas=(1, 2, 3))
        for index in range(partitions)
    )
    topic = build.ReassignableTopic(name="t", partitions=each)
    request = build.AlterPartitionReassignmentsRequest(timeout=1_000, topics=(topic,))
    return write_request(request, 1, "x")[4:]


def test_a_request_that_changes_the_cluster_may_hold_less() -> None:
    frame = reassignments(25_000)
    header = read_request_header(frame)
    assert len(read_request_body(header, frame).topics[0].partitions) == 25_000
    frame = reassignments(25_001)
    with pytest.raises(DecodeError, match="more than 100,000 elements in arrays"):
        read_request_body(header, frame)
    with pytest.raises(LongMessageError):
        body_reader(REASSIGN, 0)(frame, header.body_position, LOOP)


def with_tags(count: int) -> bytes:
    """A Metadata request with so many unknown tagged fields at its end."""
    build = messages_of(METADATA, 12, "request")
    frame = write_request(build.MetadataRequest(topics=()), 1, "x")[4:]
    assert frame.endswith(b"\0")
    return frame[:-1] + varint(count) + b"\x7f\0" * count


def varint(value: int) -> bytes:
    data = bytearray()
    while value > 0x7F:
        data.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(data) + bytes([value])


def test_tagged_fields_are_counted() -> None:
    decoded(with_tags(10_000))
    with pytest.raises(LongMessageError):
        decoded(with_tags(1_001), LOOP)
    with pytest.raises(DecodeError, match="more than 10,000 tagged fields"):
        decoded(with_tags(10_001))


def test_a_header_has_few_tagged_fields() -> None:
    build = messages_of(METADATA, 12, "request")
    frame = write_request(build.MetadataRequest(topics=()), 1, "x")[4:]
    header = read_request_header(frame)
    at = header.body_position
    assert frame[at] == 0
    spoiled = frame[:at] + varint(101) + b"\x7f\0" * 101 + frame[at + 1 :]
    with pytest.raises(DecodeError, match="more than 100 tagged fields in the request header"):
        read_request_body(header, spoiled)
    sound = frame[:at] + varint(100) + b"\x7f\0" * 100 + frame[at + 1 :]
    assert read_request_body(header, sound).topics == ()


def test_threads_have_budgets_of_their_own() -> None:
    frame = offset_fetch(50, 60)
    found: list[Any] = []
    threads = [
        Thread(target=lambda: found.extend(decoded(frame, LOOP) for _ in range(50)))
        for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 150


def test_a_response_may_hold_more_than_a_request() -> None:
    build = messages_of(METADATA, 12)
    topic = build.MetadataResponseTopic(name="t")
    frame = b"".join(write_response(build.MetadataResponse(topics=(topic,) * 1_000_001), 1))
    _, response = read_response(METADATA, 12, memoryview(frame)[4:])
    assert len(response.topics) == 1_000_001
