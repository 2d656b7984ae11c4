"""What is written to files, in bytes a call."""

from __future__ import annotations

import os

import pytest


def sizes_written(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of the writes to log files from now on, as they come."""
    sizes: list[int] = []
    write = os.pwritev

    def pwritev(fd: int, buffers: list[bytes], position: int) -> int:
        sizes.append(sum(map(len, buffers)))
        return write(fd, buffers, position)

    monkeypatch.setattr(os, "pwritev", pwritev)
    return sizes
