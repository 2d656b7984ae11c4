"""What the tests of pipelines need around them, and those of the whole product as well."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

START_WITHIN_S = 60
FETCH_WITHIN_S = 240


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


def fetch_jars_once(folders: pytest.TempPathFactory) -> None:
    """Have Spark's Ivy fetch its jars, in one process alone: two at a time spoil its cache."""
    # Workers of one run have folders of their own in one that they share.
    shared = folders.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent
    with (shared / "ivy.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = shared / "ivy.done"
        if not done.exists() and not _in_cache():
            fetch = f"from ottla.pipelines import session; session('fetch', formats={formats()!r})"
            subprocess.run(
                [sys.executable, "-c", fetch],
                check=True,
                capture_output=True,
                timeout=FETCH_WITHIN_S,
            )
        done.touch()


def formats() -> list[str]:
    """The modules of Spark's for formats that the tests' session has.

    The lane of the newest Spark names its jars in spark-defaults.conf, without these.
    """
    return [] if _given_jars() else ["avro"]


def _given_jars() -> list[str]:
    from ottla.pipelines.spark.jars import JARS, names, read_given
    from ottla.pipelines.spark.start import _spark_home

    return names(read_given(os.environ, _spark_home()).settings.get(JARS))


def _in_cache() -> bool:
    """Tell whether this user's Ivy has the very jars that session() asks for."""
    from ottla.pipelines.spark.jars import wanted_packages
    from ottla.pipelines.spark.start import find_installed

    given = _given_jars()
    wanted = [
        package.split(":") for package in wanted_packages(find_installed(), [], given, formats())
    ]
    return all(
        list(Path.home().glob(f".ivy2*/jars/{group}_{name}-{version}.jar"))
        for group, name, version in wanted
    )
