"""What the tests of pipelines need around them, and those of the whole product as well."""

from __future__ import annotations

import contextlib
import re
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

START_WITHIN_S = 60


@contextlib.contextmanager
def serve(data: Path, listen: str = "127.0.0.1:0") -> Iterator[str]:
    """Run `ottla serve`, on a free port unless one is given; gives its address."""
    arguments = ["serve", "--listen", listen, "--data", str(data)]
    errors = data.parent / f"{data.name}.stderr"
    with errors.open("w") as file:
        process = subprocess.Popen(
            [sys.executable, "-m", "ottla", *arguments],
            stdout=subprocess.PIPE,
            stderr=file,
            text=True,
        )
    try:
        yield _address(process, errors)
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=START_WITHIN_S)


def _address(process: subprocess.Popen[str], errors: Path) -> str:
    assert process.stdout is not None
    until = time.monotonic() + START_WITHIN_S
    # Not `select`, which takes no descriptor above 1,023: other tests of the process have files.
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while time.monotonic() < until and process.poll() is None:
            if selector.select(0.1):
                found = re.search(r"ready on (\S+:\d+)", process.stdout.readline())
                if found:
                    return found[1]
    raise AssertionError(f"the broker did not start: {errors.read_text()}")
