"""A transport's calls, and what the receiver gets."""

from typing import Any

import pytest

from ottla.network.frame_protocol import FrameProtocol
from ottla.network.frame_reader import MIN_ALLOCATION_BYTES, FrameReader

MAX_BYTES = 5 << 20


class Receiver:
    def __init__(self) -> None:
        self.calls: list[Any] = []

    def received(self, frames: list[Any]) -> None:
        self.calls.append([bytes(each) for each in frames])

    def refused(self, size_bytes: int) -> None:
        self.calls.append(size_bytes)

    def lost(self, error: Exception | None) -> None:
        self.calls.append(error)

    def pause_writing(self) -> None:
        self.calls.append("pause")

    def resume_writing(self) -> None:
        self.calls.append("resume")


@pytest.fixture
def receiver() -> Receiver:
    return Receiver()


@pytest.fixture
def protocol(receiver: Receiver) -> FrameProtocol:
    reader = FrameReader(min_bytes=0, max_bytes=MAX_BYTES)
    made = FrameProtocol(memoryview(bytearray(1024)), reader, lambda transport: receiver)
    made.connection_made(None)  # type: ignore[arg-type]
    return made


def feed(protocol: FrameProtocol, data: bytes) -> None:
    """Like the event loop: fills the buffers that the protocol returns."""
    while data:
        room = protocol.get_buffer(-1)
        count = min(len(room), len(data))
        assert count > 0
        room[:count] = data[:count]
        protocol.buffer_updated(count)
        data = data[count:]


def framed(*frames: bytes) -> bytes:
    return b"".join(len(each).to_bytes(4, "big") + each for each in frames)


def test_one_read_returns_all_its_frames_at_once(
    protocol: FrameProtocol, receiver: Receiver
) -> None:
    feed(protocol, framed(b"a", b"", b"c"))
    assert receiver.calls == [[b"a", b"", b"c"]]


def test_a_large_frame_is_read_into_a_buffer_of_its_own(
    protocol: FrameProtocol, receiver: Receiver
) -> None:
    frame = bytes(MAX_BYTES)
    feed(protocol, framed(frame)[:100])
    assert receiver.calls == [[]]
    assert len(protocol.get_buffer(-1)) == MIN_ALLOCATION_BYTES - 96
    feed(protocol, framed(frame)[100:])
    assert [each for each in receiver.calls if each] == [[frame]]
    assert len(protocol.get_buffer(-1)) == 1024


@pytest.mark.parametrize("size", [MAX_BYTES + 1, 2**31 - 1])
def test_a_size_over_the_limit_is_refused_after_the_frames_before_it(
    protocol: FrameProtocol, receiver: Receiver, size: int
) -> None:
    feed(protocol, framed(b"a") + size.to_bytes(4, "big"))
    assert receiver.calls == [[b"a"], size]


def test_the_receiver_is_notified_of_transport_events(
    protocol: FrameProtocol, receiver: Receiver
) -> None:
    protocol.pause_writing()
    protocol.resume_writing()
    error = OSError("reset")
    protocol.connection_lost(error)
    assert receiver.calls == ["pause", "resume", error]
