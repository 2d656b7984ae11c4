import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.network.frame_reader import (
    FIRST_ALLOCATION_BYTES,
    MAX_GROWTH_BYTES,
    MIN_ALLOCATION_BYTES,
    FrameReader,
)


def read(reader: FrameReader, data: bytes, step: int) -> list[bytes]:
    """Like a transport: reads into the room of a large frame, or into a buffer of its own."""
    frames = []
    while data:
        room = reader.room
        if room is None:
            count = min(step, len(data))
            found = reader.feed(memoryview(bytearray(data[:count])))
        else:
            count = min(step, len(data), len(room))
            room[:count] = data[:count]
            found = reader.filled(count)
        frames += [bytes(frame) for frame in found]
        data = data[count:]
    return frames


def framed(*frames: bytes) -> bytes:
    return b"".join(len(each).to_bytes(4, "big") + each for each in frames)


@settings(deadline=None, max_examples=60)
@given(st.lists(st.binary(max_size=300), max_size=10), st.lists(st.integers(1, 90), min_size=1))
def test_frames_are_complete_however_the_stream_is_split(
    frames: list[bytes], cuts: list[int]
) -> None:
    reader, data, found = FrameReader(min_bytes=0, max_bytes=1 << 24), framed(*frames), []
    for size in cuts * (1 + len(data) // len(cuts)):
        found += read(reader, data[:size], 50)
        data = data[size:]
    assert found == frames
    assert reader.bad_size is None


@settings(deadline=None, max_examples=60)
@given(st.lists(st.binary(max_size=300), max_size=10), st.integers(1, 400))
def test_bytes_of_a_large_frame_may_be_fed(frames: list[bytes], step: int) -> None:
    """A transport that cannot read into a buffer."""
    reader, data, found = FrameReader(min_bytes=0, max_bytes=1 << 24), framed(*frames), []
    for position in range(0, len(data), step):
        found += reader.feed(data[position : position + step])
    assert [bytes(each) for each in found] == frames


def test_a_frame_does_not_share_the_read_buffer() -> None:
    scratch = bytearray(framed(b"first", bytes(5000)))
    small, large = FrameReader(min_bytes=0, max_bytes=1 << 24).feed(memoryview(scratch))
    scratch[:] = b"x" * len(scratch)
    assert (bytes(small), bytes(large)) == (b"first", bytes(5000))


@pytest.mark.parametrize(
    ("size", "expected"), [(b"\x00\x00\x00\x03", 3), (b"\x00\x00\x00\x15", 21), (b"\xff" * 4, -1)]
)
def test_a_size_out_of_bounds_ends_the_stream_after_the_frames_before_it(
    size: bytes, expected: int
) -> None:
    reader = FrameReader(min_bytes=4, max_bytes=20)
    assert reader.feed(framed(b"four") + size) == [b"four"]
    assert reader.bad_size == expected
    assert reader.feed(framed(b"five5")) == []


def test_memory_grows_with_the_received_bytes() -> None:
    reader, frame = FrameReader(min_bytes=0, max_bytes=1 << 24), bytes(3 * FIRST_ALLOCATION_BYTES)
    data, rooms, found = framed(frame), [], []
    for position in range(0, len(data), 1 << 20):
        found += read(reader, data[position : position + (1 << 20)], 1 << 20)
        rooms.append(len(reader.room or b""))
    assert found == [frame]
    assert max(rooms) <= 2 * FIRST_ALLOCATION_BYTES


def test_an_incomplete_frame_is_dropped_with_its_stream() -> None:
    reader = FrameReader(min_bytes=0, max_bytes=1 << 24)
    assert reader.feed(framed(bytes(1000))[:500]) == []
    assert reader.room is not None
    reader.forget()
    assert reader.room is None


def limit_of(key: int) -> int:
    return 16 << 20 if key == 0 else 2 << 20


def limited() -> FrameReader:
    return FrameReader(min_bytes=0, max_bytes=1 << 24, limit_of=limit_of)


@pytest.mark.parametrize("step", [1, 5, 1 << 20])
def test_the_request_type_limits_its_frame(step: int) -> None:
    size = 3 << 20
    reader = limited()
    assert read(reader, framed(b"small", b"\0\1" + bytes(size))[: 9 + step * 20], step) == [
        b"small"
    ]
    assert reader.bad_size == size + 2
    assert reader.room is None


def test_a_large_frame_of_a_type_that_may_have_it_is_read() -> None:
    frame = bytes(3 << 20)
    assert read(limited(), framed(b"\0\1", frame, b"\0\1"), 1000) == [b"\0\1", frame, b"\0\1"]


def test_few_bytes_of_a_large_frame_hold_little_memory() -> None:
    reader = limited()
    assert reader.feed((16 << 20).to_bytes(4, "big") + bytes(10)) == []
    assert len(reader.room or b"") <= MIN_ALLOCATION_BYTES


def test_a_large_frame_grows_by_a_bounded_part() -> None:
    """Each growth holds the event loop."""
    allocated: list[int] = []
    reader = FrameReader(min_bytes=0, max_bytes=1 << 26, allocated=allocated.append)
    content = bytes(range(256)) * (5 * MAX_GROWTH_BYTES // 256)
    frames = reader.feed(framed(content)[:100])
    for start in range(100, len(content) + 4, 1 << 20):
        frames = reader.feed(framed(content)[start : start + (1 << 20)])
    assert frames == [content]
    assert max(allocated) == MAX_GROWTH_BYTES


def test_allocations_are_reported_and_held_until_the_frame_is_whole() -> None:
    allocated: list[int] = []
    reader = FrameReader(min_bytes=0, max_bytes=1 << 24, allocated=allocated.append)
    data = framed(bytes(3 * FIRST_ALLOCATION_BYTES))
    assert (reader.held_bytes, allocated) == (0, [])
    frames = reader.feed(data[:100])
    assert reader.held_bytes == sum(allocated) > 0
    for start in range(100, len(data), 50_000):
        assert not frames
        assert reader.held_bytes == sum(allocated) <= 3 * FIRST_ALLOCATION_BYTES
        frames = reader.feed(data[start : start + 50_000])
    assert (len(frames), reader.held_bytes) == (1, 0)
    assert sum(allocated) == 3 * FIRST_ALLOCATION_BYTES
    assert not reader.feed(data[:100])
    reader.forget()
    assert reader.held_bytes == 0
