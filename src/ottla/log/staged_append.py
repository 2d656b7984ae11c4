"""Writes a large batch past the end of a log, a part at a time, before it is appended.

A write of 34 MB takes 70 ms, and the event loop answers nobody meanwhile. Of a staged batch the
append writes the header only. Until then the log's end is where it was: readers stop there, and
another append takes the same bytes of the file.

Crash: zeros where the header belongs, and parts of the batch. Recovery cuts them, as half a batch.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Final

from ottla.log.log import Log
from ottla.log.segment import Segment
from ottla.protocol.errors import ApiError
from ottla.records.header import BatchHeader, Buffer

STEP_BYTES: Final = 2 << 20
"""Written at once: 3 ms, nearly all of it for the kernel to find memory."""
MAX_ATTEMPTS: Final = 3
"""To stage a batch beside other appends. After these the append writes it in one go."""


class StagedAppend:
    """The next append of one batch, which follows the last step without a pause."""

    def __init__(
        self,
        log: Log,
        header: BatchHeader,
        batch: Buffer,
        now_ms: int,
        *,
        step_bytes: int = STEP_BYTES,
    ) -> None:
        self._step_bytes = step_bytes
        self._log = log
        self._header = header
        self._batch = memoryview(batch)
        self._now_ms = now_ms
        self._segment: Segment | None = None

    def steps(self) -> Generator[None, None, None]:
        """Between two of them others may use the log. A batch of up to a step has none."""
        if len(self._batch) <= self._step_bytes:
            return
        try:
            for _ in range(MAX_ATTEMPTS):
                if (yield from self._write()):
                    return
        except ApiError:
            return  # the append meets the same error, and answers it

    def _write(self) -> Generator[None, None, bool]:
        """Returns whether all of it is there, and nothing else."""
        self._segment = segment = self._log.prepare(self._header, self._now_ms)
        segment.begin_staging(self._batch)
        left = len(self._batch)
        while left > 0:
            if segment is not self._log.active or not segment.stage(self._batch, self._step_bytes):
                return False
            left -= self._step_bytes
            if left > 0:
                yield
        return True

    def end(self) -> None:
        """Whether or not the batch was appended. Raises ApiError KAFKA_STORAGE_ERROR."""
        segment = self._segment
        if segment is self._log.active and not self._log.is_closed:
            segment.end_staging(self._batch)
