"""How Spark's process ended, with real processes in its place."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark import SparkContext

from ottla.pipelines.errors import PipelineError
from ottla.pipelines.failures.known import About
from ottla.pipelines.run.reported import reported
from ottla.pipelines.spark.jvm.process import kill_process, process_ended, process_id


def place(monkeypatch: pytest.MonkeyPatch, code: str) -> subprocess.Popen[bytes]:
    process = subprocess.Popen([sys.executable, "-c", code])
    monkeypatch.setattr(SparkContext, "_gateway", SimpleNamespace(proc=process))
    return process


def test_a_process_that_ran_out_of_memory(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    monkeypatch.setenv("OTTLA_STATE_DIR", str(tmp_path_factory.mktemp("state")))
    place(monkeypatch, "raise SystemExit(52)")
    # Its end is waited for: a connection is refused before.
    words = r"^Spark ran out of memory\. Give it more"
    with pytest.raises(PipelineError, match=words), reported(About()):
        raise ConnectionRefusedError("refused")
    ended = process_ended()
    assert ended is not None
    assert ended.message == "Spark's process ended (out of memory, exit code 52)"


def test_a_process_that_runs_or_is_another_one_has_not_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(SparkContext, "_gateway", None)
    assert process_ended() is None
    # The failure of a connection to something else stays what it is.
    with pytest.raises(ConnectionRefusedError), reported(About()):
        raise ConnectionRefusedError("refused")
    process = place(monkeypatch, "input()")
    try:
        assert process_ended() is None
    finally:
        process.kill()
        process.wait()
    ended = process_ended()
    assert ended is not None
    assert ended.message == "Spark's process ended (killed, perhaps for lack of memory)"


def test_the_process_is_the_one_that_this_one_has_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SparkContext, "_gateway", None)
    kill_process()
    process = place(monkeypatch, "input()")
    assert process_id() == process.pid
    kill_process()
    assert process.wait() < 0


@pytest.mark.spark
def test_pyspark_keeps_its_process(spark: Any) -> None:
    assert process_id() == spark._jvm.java.lang.ProcessHandle.current().pid()
    assert process_ended() is None
