import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.protocol.errors import DecodeError
from ottla.protocol.frames import (
    read_request_body,
    read_request_header,
    read_response,
    write_request,
    write_response,
)
from ottla.protocol.messages import messages_of


@pytest.mark.parametrize("version", [3, 8, 9, 13])
@pytest.mark.parametrize("client_id", [None, "", "a client"])
def test_request_round_trips(version: int, client_id: str | None) -> None:
    build = messages_of(0, version, "request")
    request = build.ProduceRequest(acks=-1, timeout=1500)
    frame = write_request(request, 77, client_id)
    assert int.from_bytes(frame[:4], "big") == len(frame) - 4
    header = read_request_header(frame[4:])
    assert header[:4] == (0, version, 77, client_id or "")
    assert read_request_body(header, frame[4:]) == request


@pytest.mark.parametrize(("key", "version"), [(12, 0), (12, 4), (18, 0), (18, 4)])
def test_response_round_trips(key: int, version: int) -> None:
    name = {12: "HeartbeatResponse", 18: "ApiVersionsResponse"}[key]
    response = getattr(messages_of(key, version), name)(throttle_time=5)
    frame = b"".join(write_response(response, 9))
    assert int.from_bytes(frame[:4], "big") == len(frame) - 4
    assert read_response(key, version, frame[4:]) == (9, response)


def test_the_api_versions_response_header_is_never_flexible() -> None:
    frame = b"".join(write_response(messages_of(18, 3).ApiVersionsResponse(), 9))
    assert frame[4:10] == b"\0\0\0\x09" + b"\0\0", "the error code follows the correlation id"


@given(st.binary(max_size=40))
def test_random_bytes_are_a_header_or_a_decode_error(noise: bytes) -> None:
    try:
        header = read_request_header(noise)
    except DecodeError:
        return
    assert header.body_position <= len(noise)
