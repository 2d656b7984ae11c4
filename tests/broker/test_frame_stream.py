from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.broker.frame_stream import FIRST_ALLOCATION_BYTES, FrameStream


class Frames(FrameStream):
    def __init__(self, scratch_bytes: int = 100, least: int = 0, most: int = 1 << 24) -> None:
        scratch = memoryview(bytearray(scratch_bytes))
        super().__init__(scratch, min_bytes=least, max_bytes=most)
        self.frames: list[bytes] = []
        self.sizes: list[int] = []

    def received(self, frame: memoryview) -> None:
        self.frames.append(bytes(frame))

    def refused(self, size_bytes: int) -> None:
        self.sizes.append(size_bytes)

    def feed(self, data: bytes) -> None:
        while data:
            room = self.get_buffer(-1)
            count = min(len(room), len(data))
            assert count > 0
            room[:count] = data[:count]
            self.buffer_updated(count)
            data = data[count:]


def framed(*frames: bytes) -> bytes:
    return b"".join(len(each).to_bytes(4, "big") + each for each in frames)


@settings(deadline=None, max_examples=60)
@given(st.lists(st.binary(max_size=300), max_size=10), st.lists(st.integers(1, 90), min_size=1))
def test_frames_come_whole_however_the_stream_is_cut(frames: list[bytes], cuts: list[int]) -> None:
    stream, data = Frames(), framed(*frames)
    for size in cuts * (1 + len(data) // len(cuts)):
        stream.feed(data[:size])
        data = data[size:]
    assert stream.frames == frames
    assert stream.sizes == []


def test_a_size_out_of_bounds_is_refused_behind_the_frames_before_it() -> None:
    for size, told in ((b"\x00\x00\x00\x03", 3), (b"\x00\x00\x00\x15", 21), (b"\xff" * 4, -1)):
        stream = Frames(least=4, most=20)
        stream.feed(framed(b"four") + size)
        assert (stream.frames, stream.sizes) == ([b"four"], [told])


def test_memory_comes_with_the_bytes() -> None:
    stream, frame = Frames(1 << 16), bytes(3 * FIRST_ALLOCATION_BYTES)
    rooms = []
    data = framed(frame)
    while data:
        rooms.append(len(stream.get_buffer(-1)))
        stream.feed(data[: 1 << 20])
        data = data[1 << 20 :]
    assert stream.frames == [frame]
    assert max(rooms) <= 2 * FIRST_ALLOCATION_BYTES
