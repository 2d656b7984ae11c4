import io
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kio.serial import entity_reader, entity_writer

from ottla.protocol.codec import codec_of, decode, encode
from ottla.protocol.errors import DecodeError
from ottla.protocol.messages import message_class, messages_of
from ottla.protocol.versions import APIS, REFUSED_BELOW

EVERY_MESSAGE = [
    (api.key, version, kind)
    for api in APIS.values()
    for version in range(max(api.min_version, REFUSED_BELOW.get(api.key, 0)), api.max_version + 1)
    for kind in ("request", "response")
]


def default_message(key: int, version: int, kind: str) -> Any:
    cls = message_class(key, version, kind)
    return getattr(messages_of(key, version, kind), cls.__name__)()


@pytest.mark.parametrize(("key", "version", "kind"), EVERY_MESSAGE)
def test_every_message_of_every_version_round_trips(key: int, version: int, kind: str) -> None:
    message = default_message(key, version, kind)
    encoded = b"".join(encode(message).parts())
    assert decode(type(message), encoded) == (message, len(encoded))
    # A second check of the bytes: kio's own reader reads all of them.
    _, size = entity_reader(type(message))(encoded, 0)
    assert size == len(encoded)


def test_nested_message_has_the_bytes_that_kio_writes() -> None:
    build = messages_of(9, 8, "response")
    message = build.OffsetFetchResponse(
        groups=(
            build.OffsetFetchResponseGroup(
                group_id="g",
                topics=(
                    build.OffsetFetchResponseTopics(
                        name="t",
                        partitions=(
                            build.OffsetFetchResponsePartitions(
                                partition_index=3, committed_offset=7, metadata="m"
                            ),
                        ),
                    ),
                ),
            ),
        )
    )
    expected = io.BytesIO()
    cls: Any = type(message)
    for field in codec_of(cls).fields:
        if field.name == "groups":
            array_of = entity_writer(type(message.groups[0]))
            expected.write(b"\x02")
            array_of(expected, message.groups[0])
    assert expected.getvalue() in b"".join(encode(message).parts())


@settings(max_examples=300)
@given(message=st.sampled_from(EVERY_MESSAGE), noise=st.binary(max_size=200))
def test_any_bytes_raise_only_decode_error(message: tuple[int, int, str], noise: bytes) -> None:
    cls = message_class(*message)
    try:
        decoded, _ = decode(cls, noise)
    except DecodeError:
        return
    assert isinstance(decoded, cls)


@given(message=st.sampled_from(EVERY_MESSAGE), cut=st.integers(1, 30))
def test_a_truncated_message_is_refused(message: tuple[int, int, str], cut: int) -> None:
    encoded = b"".join(encode(default_message(*message)).parts())
    if cut > len(encoded):
        return
    with pytest.raises(DecodeError):
        decode(message_class(*message), encoded[:-cut])


def test_unknown_tagged_fields_are_ignored() -> None:
    message = default_message(12, 4, "request")
    encoded = b"".join(encode(message).parts())
    assert encoded.endswith(b"\0")
    with_tag = encoded[:-1] + b"\x01\x63\x03abc"
    assert decode(type(message), with_tag) == (message, len(with_tag))


def test_a_time_beyond_any_calendar_is_a_number() -> None:
    build = messages_of(0, 9, "request")
    message = build.ProduceRequest(timeout=-(2**31))
    encoded = b"".join(encode(message).parts())
    assert decode(type(message), encoded)[0].timeout == -(2**31)


def test_fields_of_a_message_are_set_without_a_method_lookup() -> None:
    # CPython uses its slow path for both if a class replaces one of the two.
    own: Any = codec_of(message_class(0, 12, "request")).cls
    assert own.__setattr__ is object.__setattr__
    assert own.__delattr__ is object.__delattr__
