"""At most one run on a checkpoint at a time."""

import json
import os
import queue
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from ottla.pipelines.checkpoint import lease
from ottla.pipelines.checkpoint.lease import FILE, Lease, taken_here
from ottla.pipelines.errors import PipelineError
from ottla.pipelines.spark.jvm.files import Files

pytestmark = pytest.mark.spark


def change(folder: Path, **said: Any) -> None:
    """Let the lease say something else, as another run or another host would."""
    file = folder / FILE
    file.write_text(json.dumps(json.loads(file.read_text()) | said))
    (folder / f".{FILE}.crc").unlink(missing_ok=True)


def test_a_lease_keeps_others_away_while_its_query_runs(spark: Any, tmp_path: Path) -> None:
    files = Files(spark, str(tmp_path))
    active = True
    first = Lease(files)
    first.acquire()
    first.keep(lambda: active, lambda reason: None)

    with pytest.raises(PipelineError, match=f"in use by process {os.getpid()} on .* Stop that"):
        Lease(files).acquire()
    active = False  # the query has ended, and its thread has not seen it yet
    second = Lease(files)
    second.acquire()
    first.release()
    assert (tmp_path / FILE).exists()  # the second's
    second.release()
    assert not (tmp_path / FILE).exists()


class SlowFolder:
    """A folder in memory, whose second write takes until `is_over` is set, or 0.3 s."""

    location = "/cp"

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}
        self.writes = 0
        self.is_writing, self.is_over = threading.Event(), threading.Event()

    def read(self, name: str) -> str | None:
        return self.texts.get(name)

    def write(self, name: str, text: str) -> None:
        self.writes += 1
        if self.writes == 2:
            self.is_writing.set()
            self.is_over.wait(0.3)
        self.texts[name] = text

    def delete(self, name: str) -> None:
        self.texts.pop(name, None)
        self.is_over.set()


def test_a_heartbeat_leaves_nothing_behind_a_release() -> None:
    """It would keep other processes away for as long as this one lives."""
    folder: Any = SlowFolder()
    made = Lease(folder)
    made.acquire()
    beat = threading.Thread(target=made.renew)
    beat.start()
    assert folder.is_writing.wait(10)
    made.release()
    beat.join()
    assert folder.texts == {}


def test_a_process_that_is_gone_holds_nothing_and_one_that_runs_does(
    spark: Any, tmp_path: Path
) -> None:
    files = Files(spark, str(tmp_path))
    Lease(files).acquire()
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    change(tmp_path, process=gone.pid)
    Lease(files).check()

    other = os.getppid()
    born = Path(f"/proc/{other}/stat").read_text().rpartition(")")[2].split()[19]
    change(tmp_path, process=other, born=born)
    with pytest.raises(PipelineError, match=f"in use by process {other}"):
        Lease(files).check()
    with pytest.raises(PipelineError, match=f"in use by process {other}"):
        Lease(files).check_here()
    change(tmp_path, born="1")  # the number was given again
    Lease(files).check()
    Lease(files).check_here()


def test_a_run_on_another_host_is_watched_for_its_beats(spark: Any, tmp_path: Path) -> None:
    files = Files(spark, str(tmp_path))
    Lease(files).acquire()
    change(tmp_path, host="elsewhere", beats=7)
    Lease(files).check(watch_s=0.2)  # it beats no more
    Lease(files).check_here()

    timer = threading.Timer(0.3, change, [tmp_path], {"beats": 8})
    timer.start()
    with pytest.raises(PipelineError, match="on elsewhere"):
        Lease(files).check(watch_s=60)
    timer.join()


def test_another_container_with_this_hosts_name_is_watched_too(spark: Any, tmp_path: Path) -> None:
    files = Files(spark, str(tmp_path))
    Lease(files).acquire()
    # Its process numbers are others: none of them tells that it is gone.
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    change(tmp_path, numbers="another boot or namespace", process=gone.pid, beats=7)
    assert taken_here(tmp_path) is None
    timer = threading.Timer(0.3, change, [tmp_path], {"beats": 8})
    timer.start()
    with pytest.raises(PipelineError, match=f"in use by process {gone.pid}"):
        Lease(files).check(watch_s=60)
    timer.join()


def test_a_run_that_loses_its_checkpoint_is_told_so(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lease, "BEAT_S", 0.05)
    kept = Lease(Files(spark, str(tmp_path)))
    kept.acquire()
    told: queue.Queue[str] = queue.Queue()
    kept.keep(lambda: True, told.put)
    change(tmp_path, token="of another run", process=4711)
    assert "was taken by process 4711 on" in told.get(timeout=60)
    assert (tmp_path / FILE).exists(), "it is the other run's"


def test_a_storage_that_fails_for_a_while_does_not_end_the_heartbeats(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(lease, "BEAT_S", 0.05)
    kept = Lease(Files(spark, str(tmp_path)))
    kept.acquire()
    told: queue.Queue[str] = queue.Queue()
    document = (tmp_path / FILE).read_text()
    (tmp_path / FILE).write_text("{")
    kept.keep(lambda: True, told.put)
    until = time.monotonic() + 60
    while not caplog.messages and time.monotonic() < until:
        time.sleep(0.01)
    (warning,) = caplog.messages
    assert "cannot be kept now, and after 10 s another host may take it" in warning
    assert "is damaged" in warning

    other = json.loads(document) | {"token": "of another run", "process": 4711}
    (tmp_path / FILE).write_text(json.dumps(other))
    assert "was taken by process 4711 on" in told.get(timeout=60)
    caplog.clear()


def test_a_run_knows_before_its_first_batch_that_another_one_was_there(
    spark: Any, tmp_path: Path
) -> None:
    kept = Lease(Files(spark, str(tmp_path)))
    kept.acquire()
    kept.check_kept()
    change(tmp_path, token="of another run", process=4711)
    with pytest.raises(PipelineError, match="was taken by process 4711 on"):
        kept.check_kept()
    (tmp_path / FILE).unlink()  # the other run has ended
    with pytest.raises(PipelineError, match="was taken while this run started"):
        kept.check_kept()


@pytest.mark.parametrize("jump_s", [-86_400.0, 86_400.0])
def test_a_clock_that_jumps_neither_frees_nor_takes_a_checkpoint(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jump_s: float
) -> None:
    files = Files(spark, str(tmp_path))
    first = Lease(files)
    first.acquire()
    first.keep(lambda: True, lambda reason: None)
    now_s = time.time
    monkeypatch.setattr(time, "time", lambda: now_s() + jump_s)

    with pytest.raises(PipelineError, match="in use by process"):
        Lease(files).acquire()
    assert first.renew() is None
    first.release()
    assert not (tmp_path / FILE).exists()


@pytest.mark.parametrize("text", ["", '{"version"', '{"version": 1, "host": "h"}'])
def test_a_damaged_lease_says_what_to_do(
    spark: Any, tmp_path: Path, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    former = Lease(Files(spark, str(tmp_path)))
    former.acquire()
    (tmp_path / FILE).write_text(text)
    with pytest.raises(PipelineError, match=r"is damaged\. Make sure that no query runs"):
        Lease(Files(spark, str(tmp_path))).acquire()

    former.release()  # the run that ends does not know whose it is
    assert (tmp_path / FILE).read_text() == text
    assert "is damaged. Make sure that no query runs" in caplog.text


def test_a_checkpoint_in_use_by_another_process_is_told_without_spark(tmp_path: Path) -> None:
    assert taken_here(tmp_path) is None
    parent = os.getppid()
    born = Path(f"/proc/{parent}/stat").read_text().rpartition(")")[2].split()[19]
    here = {"host": socket.gethostname(), "process": parent, "born": born}
    note = {"version": 1, "token": "t", "beats": 1} | here

    def found(**changes: object) -> str | None:
        (tmp_path / FILE).write_text(json.dumps(note | changes))
        return taken_here(tmp_path)

    assert f"is in use by process {parent} on {socket.gethostname()}" in str(found())
    assert found(born="1") is None, "another process has its number now"
    assert found(host="elsewhere") is None
    assert found(process=os.getpid()) is None
    (tmp_path / FILE).write_text("{damaged")
    assert taken_here(tmp_path) is None
