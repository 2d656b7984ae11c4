"""The processes of a pool: a new one after some runs, and none that outlives the pool's owner."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from simulation.workers import LostWorkerError, results, workers

RUN_S = 60
OWNER = f"""
import os, time
from simulation.workers import workers

def run():
    print("begun", flush=True)
    time.sleep({RUN_S})
    print("ended", flush=True)

if __name__ == "__main__":
    with workers(1, 8) as pool:
        pool.apply(run)
"""


@pytest.mark.full
def test_a_process_ends_after_its_runs() -> None:
    with workers(1, 2) as pool:
        first, second, third = (pool.apply(os.getpid) for _ in range(3))
    assert first == second != third


def _half_or_killed(number: int) -> int:
    if not number:
        os.kill(os.getpid(), signal.SIGKILL)
    return number // 2


def test_a_killed_process_ends_the_wait_for_its_run(monkeypatch: pytest.MonkeyPatch) -> None:
    with workers(1, 8) as pool:
        assert sorted(results(pool, _half_or_killed, (2, 4))) == [1, 2]
        monkeypatch.setattr("simulation.workers.WAIT_S", 0.2)
        with pytest.raises(LostWorkerError, match="no run has ended for 2 s: a worker process was"):
            list(results(pool, _half_or_killed, (0,)))


@pytest.mark.parametrize(
    "ending", [pytest.param(signal.SIGTERM, marks=pytest.mark.full), signal.SIGKILL]
)
def test_a_busy_process_ends_with_its_owner(tmp_path: Path, ending: signal.Signals) -> None:
    script = tmp_path / "owner.py"
    script.write_text(OWNER)
    command = [sys.executable, str(script)]
    environment = os.environ | {"PYTHONPATH": os.getcwd()}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == "begun\n"
        owner.send_signal(ending)
        # All that the owner started writes to this pipe: it ends with the last of them.
        assert owner.stdout.read() == ""
    assert owner.returncode == -ending
