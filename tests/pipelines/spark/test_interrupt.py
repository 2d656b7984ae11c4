"""Ctrl-C in a program that uses `session`: one line, and the exit code of an interrupt."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.pipelines.environment import START_WITHIN_S
from tests.pipelines.jars import fetch_jars_once

pytestmark = pytest.mark.spark

PROGRAM = """
import sys
from ottla.pipelines import session

spark = session("interrupted", master="local[1]", conf={"spark.ui.enabled": False})
rows = spark.readStream.format("rate").option("rowsPerSecond", 10).load()

def write(frame, batch):
    if batch == 1:
        print("RUNNING", flush=True)
    frame.write.format("delta").mode("append").save(sys.argv[1] + "/table")

writer = rows.writeStream.option("checkpointLocation", sys.argv[1] + "/c")
writer.foreachBatch(write).start().awaitTermination()
"""


def test_ctrl_c_ends_a_program_in_one_line(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The terminal sends SIGINT to the JVM as well; a batch is being written."""
    fetch_jars_once(tmp_path_factory)
    with (tmp_path / "stderr").open("w") as stderr:
        program = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(tmp_path)],
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
            start_new_session=True,
        )
    try:
        assert program.stdout is not None
        assert program.stdout.readline() == "RUNNING\n"
        before = (tmp_path / "stderr").read_text()
        os.killpg(program.pid, signal.SIGINT)
        # A shell says 130: Python ends by the signal itself.
        assert program.wait(START_WITHIN_S) == -signal.SIGINT
    finally:
        program.kill()
        program.communicate()
    assert (tmp_path / "stderr").read_text().removeprefix(before) == "Interrupted\n"


HANDLERS = """
import signal
from ottla.pipelines import session

def mine(number, frame):
    raise SystemExit(7)

signal.signal(signal.SIGINT, mine)
spark = session("handlers", master="local[1]", conf={"spark.ui.enabled": False})
assert signal.getsignal(signal.SIGINT) is mine
signal.raise_signal(signal.SIGINT)
"""


def test_a_handler_of_the_programs_own_stays(tmp_path_factory: pytest.TempPathFactory) -> None:
    fetch_jars_once(tmp_path_factory)
    done = subprocess.run(
        [sys.executable, "-c", HANDLERS], capture_output=True, text=True, timeout=240
    )

    assert done.returncode == 7, done.stderr
