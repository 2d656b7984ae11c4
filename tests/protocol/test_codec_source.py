"""Generated code for each shape of field; `test_codec` has every message and version."""

from typing import Any

import pytest

from ottla.protocol.codec import decode, encode
from ottla.protocol.errors import DecodeError, ErrorCode
from ottla.protocol.messages import messages_of

METADATA, PRODUCE, JOIN_GROUP = 3, 0, 11


def bytes_of(message: Any) -> bytes:
    return b"".join(bytes(part) for part in encode(message).parts())


@pytest.mark.parametrize("version", [0, 9])
@pytest.mark.parametrize("name", ["", "t", "x" * 126, "y" * 127, "z" * 300, "ü" * 16_383])
def test_strings_of_every_length(version: int, name: str) -> None:
    build = messages_of(JOIN_GROUP, version, "request")
    message = build.JoinGroupRequest(group_id=name)
    assert decode(type(message), bytes_of(message))[0].group_id == name


@pytest.mark.parametrize("version", [1, 12])
@pytest.mark.parametrize("count", [0, 1, 2, 126, 127, 1000])
def test_arrays_of_every_length(version: int, count: int) -> None:
    build = messages_of(METADATA, version, "request")
    topics = tuple(build.MetadataRequestTopic(name=str(number)) for number in range(count))
    message = build.MetadataRequest(topics=topics)
    assert decode(type(message), bytes_of(message))[0].topics == topics


@pytest.mark.parametrize("version", [3, 9])
@pytest.mark.parametrize("records", [None, b"", b"r", bytes(5000)])
def test_records_of_every_length(version: int, records: bytes | None) -> None:
    build = messages_of(PRODUCE, version, "request")
    data = build.PartitionProduceData(index=7, records=records)
    message = build.ProduceRequest(topic_data=(build.TopicProduceData(partition_data=(data,)),))
    (topic,) = decode(type(message), memoryview(bytes_of(message)))[0].topic_data
    (found,) = topic.partition_data
    assert (found.index, found.records) == (7, records)


@pytest.mark.parametrize("version", [1, 12])
def test_null_is_decoded_only_if_allowed(version: int) -> None:
    build = messages_of(METADATA, version, "request")
    message = build.MetadataRequest(topics=None)
    assert decode(type(message), bytes_of(message))[0].topics is None
    with pytest.raises(AssertionError, match="null"):
        encode(messages_of(JOIN_GROUP, 9, "request").JoinGroupRequest(group_id=None))
    with pytest.raises(DecodeError, match="null in a field that must not be null"):
        decode(type(messages_of(JOIN_GROUP, 9, "request").JoinGroupRequest()), b"\0")


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"\x05ab", "a field of 4 bytes, but 2 are left"),
        (b"\x81\x80\x02" + bytes(33_000), "a string of 32768 bytes; the maximum is 32767"),
        (b"\x03\xff\xfe", "a string that is not UTF-8"),
        (b"\xff\xff\xff\xff\xff\xff", "a varint longer than five bytes"),
    ],
)
def test_bad_strings_are_refused(data: bytes, why: str) -> None:
    cls = type(messages_of(JOIN_GROUP, 9, "request").JoinGroupRequest())
    with pytest.raises(DecodeError, match=f"JoinGroupRequest: {why}"):
        decode(cls, data)


def test_error_codes_are_written_with_adjacent_numbers() -> None:
    build = messages_of(PRODUCE, 3)
    message = build.PartitionProduceResponse(
        index=1, error_code=ErrorCode.message_too_large, base_offset=-1
    )
    assert bytes_of(message)[:14] == b"\0\0\0\x01" + b"\0\x0a" + b"\xff" * 8
    assert decode(type(message), bytes_of(message))[0].error_code is ErrorCode.message_too_large


def test_a_message_prints_as_its_definition_does() -> None:
    message = messages_of(12, 0).HeartbeatResponse(error_code=ErrorCode.none)
    assert repr(message) == f"HeartbeatResponse(error_code={ErrorCode.none!r})"
