"""One `ottla` command as typed, in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys

WITHIN_S = 120


def typed(
    bootstrap: str, *words: object, data: bytes = b"", code: int = 0, notes: bool = False
) -> str:
    """Type a command at these brokers, with `data` as its input.

    Returns what it prints, followed by its `notes`, or its error where another exit `code` than 0
    is expected.
    """
    done = subprocess.run(
        [sys.executable, "-m", "ottla", *map(str, words)],
        input=data,
        capture_output=True,
        env={**os.environ, "OTTLA_BOOTSTRAP": bootstrap},
        timeout=WITHIN_S,
        check=False,
    )
    assert done.returncode == code, done.stderr.decode()
    assert b"Traceback" not in done.stderr
    said = done.stdout if code == 0 else b""
    return (said + (done.stderr if code or notes else b"")).decode()
