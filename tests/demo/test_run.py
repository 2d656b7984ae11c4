"""The whole demo, as `make demo` runs it."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.pipelines.jars import fetch_jars_once

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]


@pytest.fixture
def demo(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[subprocess.Popen[str]]:
    """Its parameter: the demo to run."""
    environment = os.environ | {"TMPDIR": str(tmp_path), "COLUMNS": "100"}
    process = subprocess.Popen(
        [sys.executable, "-m", "demo", *getattr(request, "param", ())],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=environment,
        cwd=Path(__file__).parents[2],
    )
    yield process
    if process.poll() is None:
        process.terminate()
        process.communicate()


def left_behind(folder: Path) -> list[str]:
    """Return the command lines of the processes that know the demo's folder."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue
        if str(folder) in words:
            found.append(words)
    return found


@pytest.mark.parametrize(
    "demo",
    [
        pytest.param((), id="plain"),
        pytest.param(("secured",), id="secured", marks=pytest.mark.full),
    ],
    indirect=True,
)
def test_the_demo_takes_every_flight_to_its_row(
    demo: subprocess.Popen[str], tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    fetch_jars_once(tmp_path_factory)
    said, _ = demo.communicate(timeout=560)

    assert demo.returncode == 0, said
    assert "336,776 flights in, 336,776 rows out: equal" in said
    assert re.search(r"Hawaiian Airlines Inc\.\s+342\s+4\.9\s+21:41\s+51\s+JFK-HNL", said)
    assert re.search(r"flights-delta.*lag 0", said)
    (folder,) = tmp_path.glob("ottla-demo-*")
    assert f"The Delta table is {folder}/flights" in said
    assert (folder / "flights" / "_delta_log").is_dir()
    assert "Traceback" not in said
    assert left_behind(folder) == []


def test_ctrl_c_ends_it_cleanly(demo: subprocess.Popen[str], tmp_path: Path) -> None:
    until = time.monotonic() + 60
    while not list(tmp_path.glob("ottla-demo-*/pipeline.log")) and time.monotonic() < until:
        time.sleep(0.05)
    (folder,) = tmp_path.glob("ottla-demo-*")

    demo.send_signal(signal.SIGINT)
    said, _ = demo.communicate(timeout=60)

    assert demo.returncode == 130
    assert "Stopped." in said
    assert f"All that the demo made is in {folder}" in said
    assert "Traceback" not in said
    assert left_behind(folder) == []
