"""CPU time of a tree of processes, and of any moment between two samples."""

import subprocess
import sys
import time
from pathlib import Path

import pytest
from bench.cpu_over_time import CpuOverTime, tree_cpu_seconds

SPIN = "import time\nwhile time.process_time() < 0.3: pass"


def write_stat(proc: Path, pid: int, parent: int, ticks: int) -> None:
    (proc / str(pid)).mkdir()
    (proc / str(pid) / "stat").write_text(
        f"{pid} (a (b) c) S {parent}" + " 0" * 9 + f" {ticks} 0 0 0"
    )


def test_all_descendants_count_and_no_other_process(tmp_path: Path) -> None:
    for pid, parent, ticks in ((10, 1, 100), (11, 10, 200), (12, 11, 400), (13, 1, 800)):
        write_stat(tmp_path, pid, parent, ticks)
    (tmp_path / "self").mkdir()
    (tmp_path / "14").mkdir()  # it ended after it was listed

    assert tree_cpu_seconds(10, tmp_path) == 7.0


def test_a_child_counts_while_it_lives_and_after_it_was_waited_for() -> None:
    with CpuOverTime() as cpu:
        began = time.time()
        subprocess.run([sys.executable, "-c", SPIN], check=True)
        ended = time.time()

    assert cpu.at(time.time()) - cpu.at(0.0) >= 0.25  # the kernel counts in ticks
    middle = cpu.at((began + ended) / 2)
    assert cpu.at(began) <= middle <= cpu.at(ended)


def test_between_samples_time_is_shared_out() -> None:
    with CpuOverTime() as cpu:
        pass
    assert cpu.at(0.0) == pytest.approx(cpu.at(1.0))
