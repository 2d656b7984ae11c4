"""A transport that encrypts, in slices: so that one large response does not hold the loop.

Encrypting takes a second per gigabyte, and what is written to a transport with TLS is encrypted at
once. So of a large response one slice is written in each turn of the loop.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable
from typing import Any, Final

from ottla.network.tls_transport import reading_of

SLICE_BYTES: Final = 1 << 20


class SlicedTransport(asyncio.Transport):
    """Writes to `inner` what is written to it."""

    def __init__(self, inner: asyncio.Transport) -> None:
        super().__init__()
        self._inner = inner
        self._reading = reading_of(inner)
        self._queue: deque[memoryview] = deque()
        self._queued_bytes = 0
        self._closes = False
        """Once the queue has been written."""

    def write(self, data: Any) -> None:
        if self._closes:
            return
        if not self._queue and len(data) <= SLICE_BYTES:
            self._inner.write(data)
            return
        if not self._queue:
            asyncio.get_running_loop().call_soon(self._write_slice)
        self._queue.append(memoryview(data))
        self._queued_bytes += len(data)

    def writelines(self, list_of_data: Iterable[Any]) -> None:
        parts = list(list_of_data)
        if not self._queue and sum(map(len, parts)) <= SLICE_BYTES:
            self.write(b"".join(parts))
            return
        for part in parts:
            self.write(part)

    def _write_slice(self) -> None:
        left = SLICE_BYTES
        while self._queue and left:
            data = self._queue.popleft()
            if len(data) > left:
                self._queue.appendleft(data[left:])
                data = data[:left]
            left -= len(data)
            self._queued_bytes -= len(data)
            self._inner.write(data)
        if self._queue:
            asyncio.get_running_loop().call_soon(self._write_slice)
        elif self._closes and not self._inner.is_closing():
            self._inner.close()

    def close(self) -> None:
        """After what was written has been sent."""
        self._closes = True
        if not self._queue:
            self._inner.close()

    def abort(self) -> None:
        self._closes = True
        self._queue.clear()
        self._queued_bytes = 0
        self._inner.abort()

    def is_closing(self) -> bool:
        return self._closes or self._inner.is_closing()

    def get_write_buffer_size(self) -> int:
        return self._queued_bytes + self._inner.get_write_buffer_size()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._inner.set_write_buffer_limits(high, low)

    def pause_reading(self) -> None:
        self._reading.pause_reading()

    def resume_reading(self) -> None:
        self._reading.resume_reading()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self._inner.get_extra_info(name, default)
