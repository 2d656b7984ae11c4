import asyncio
from typing import Any

from ottla.network.sliced_transport import SLICE_BYTES, SlicedTransport


class Inner(asyncio.Transport):
    def __init__(self) -> None:
        super().__init__()
        self.written: list[bytes] = []
        self.events: list[str] = []
        self.unsent = 0

    def write(self, data: Any) -> None:
        self.written.append(bytes(data))

    def close(self) -> None:
        self.events.append("closed")

    def abort(self) -> None:
        self.events.append("aborted")

    def is_closing(self) -> bool:
        return bool(self.events)

    def get_write_buffer_size(self) -> int:
        return self.unsent

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self.events.append(f"limits {high} {low}")

    def pause_reading(self) -> None:
        self.events.append("paused")

    def resume_reading(self) -> None:
        self.events.append("resumed")

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return default if name == "ssl_object" else name


async def test_small_writes_go_through_at_once() -> None:
    inner = Inner()
    transport = SlicedTransport(inner)
    transport.write(b"one")
    transport.writelines([b"two", memoryview(b"three")])
    assert inner.written == [b"one", b"twothree"]


async def test_a_large_write_takes_turns_and_keeps_its_order() -> None:
    inner = Inner()
    transport = SlicedTransport(inner)
    parts = [b"a" * 10, b"b" * (2 * SLICE_BYTES), b"c" * 10]
    transport.writelines(parts)
    transport.write(b"later")
    whole = b"".join(parts) + b"later"
    inner.unsent = 7
    assert inner.written == parts[:1]
    assert transport.get_write_buffer_size() == len(whole) - 10 + 7
    await asyncio.sleep(0)
    assert sum(map(len, inner.written)) == 10 + SLICE_BYTES
    transport.close()
    assert transport.is_closing()
    transport.write(b"too late")
    for _ in range(3):
        await asyncio.sleep(0)
    assert b"".join(inner.written) == whole
    assert inner.events == ["closed"]
    assert transport.get_write_buffer_size() == 7


async def test_an_abort_drops_what_waits() -> None:
    inner = Inner()
    transport = SlicedTransport(inner)
    transport.write(b"a" * (2 * SLICE_BYTES))
    transport.abort()
    await asyncio.sleep(0)
    assert (inner.written, inner.events) == ([], ["aborted"])
    assert transport.get_write_buffer_size() == 0


async def test_everything_else_is_the_inner_transports() -> None:
    inner = Inner()
    transport = SlicedTransport(inner)
    transport.set_write_buffer_limits(high=5)
    transport.pause_reading()
    transport.resume_reading()
    assert inner.events == ["limits 5 None", "paused", "resumed"]
    assert transport.get_extra_info("socket") == "socket"
