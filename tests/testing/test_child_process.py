"""Children end with their parent, however it ends."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from ottla.testing.child_process import pause_child, start_child

GONE_WITHIN_S = 60
PARENT = """
import os, sys, threading
from pathlib import Path
from ottla.testing.child_process import pause_child, start_child
children = []
def start():
    children.append(start_child(["sleep", "600"], output=Path(sys.argv[1])))
thread = threading.Thread(target=start)
thread.start()
thread.join()
print(children[0].pid, flush=True)
sys.stdin.readline()
"""


def is_gone(pid: int) -> bool:
    """Whether the process is gone or a zombie."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return True
    return status.rpartition(")")[2].split()[0] == "Z"


@pytest.mark.skipif(sys.platform != "linux", reason="asks the Linux kernel")
def test_a_child_dies_with_its_parent_but_not_with_the_thread_that_started_it(
    tmp_path: Path,
) -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, str(tmp_path / "output")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    assert not is_gone(child)
    parent.kill()
    parent.communicate()
    until = time.monotonic() + GONE_WITHIN_S
    while not is_gone(child):
        assert time.monotonic() < until, "the child outlives its parent"
        time.sleep(0.01)


def test_output_is_appended(tmp_path: Path) -> None:
    output, errors = tmp_path / "output", tmp_path / "errors"
    for word in ("one", "two"):
        start_child(["sh", "-c", f"echo {word}; echo bad >&2"], output=output).wait(20)
    assert output.read_text() == "one\nbad\ntwo\nbad\n"
    start_child(["sh", "-c", "echo good; echo bad >&2"], output=output, errors=errors).wait(20)
    assert errors.read_text() == "bad\n"
    assert output.read_text().endswith("good\n")


def test_a_missing_program_raises_in_the_caller(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        start_child(["/no/such/program"], output=tmp_path / "output")


def test_many_threads_may_start_children(tmp_path: Path) -> None:
    codes = []

    def start(number: int) -> None:
        child = start_child(["sh", "-c", f"exit {number}"], output=tmp_path / "output")
        codes.append(child.wait(20))

    threads = [threading.Thread(target=start, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(codes) == list(range(8))


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("times", [8, pytest.param(20, marks=pytest.mark.full)])
def test_a_paused_child_has_stopped_in_every_thread(tmp_path: Path, times: int) -> None:
    program = """if True:
        import threading, zlib
        def work():
            while True:
                zlib.crc32(bytes(1_000_000))  # without the interpreter's lock
        for _ in range(8):
            threading.Thread(target=work).start()
    """
    for _ in range(times):
        child = start_child([sys.executable, "-c", program], output=tmp_path / "output")
        threads = Path(f"/proc/{child.pid}/task")
        while len(list(threads.iterdir())) < 9:
            assert child.poll() is None
            time.sleep(0.005)
        pause_child(child)
        states = [
            (each / "stat").read_text().rpartition(")")[2].split()[0] for each in threads.iterdir()
        ]
        child.kill()
        child.wait()
        assert set(states) == {"T"}


def test_a_child_that_has_ended_is_not_waited_for(tmp_path: Path) -> None:
    child = start_child(["true"], output=tmp_path / "output")
    time.sleep(0.1)  # gone, but nobody has asked for its exit code
    pause_child(child)
    assert child.wait() == 0
