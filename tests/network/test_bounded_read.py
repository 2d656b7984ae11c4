"""What blocks, in a few threads and within a time."""

from __future__ import annotations

import threading

import pytest

from ottla.network.bounded_read import MAX_THREADS, BoundedReads
from ottla.security.sasl.signed_token import KeysError


class Reader:
    def read(self) -> bytes:
        return b"7"

    def give_up(self) -> None:
        pass


async def test_a_machine_without_threads_is_no_attempt_that_hangs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def start(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    reads = BoundedReads("reads")
    with monkeypatch.context() as without:
        without.setattr(threading.Thread, "start", start)
        for _ in range(MAX_THREADS):
            with pytest.raises(KeysError, match="can't start new thread"):
                await reads.read(Reader(), int)
    assert await reads.read(Reader(), int) == 7
