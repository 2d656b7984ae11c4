import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TESTS = """
import os, re, signal, time

def test_hangs_with_the_lock():
    re.match(r"(a*)*b", "a" * 60)

def test_is_killed():
    os.kill(os.getpid(), signal.SIGKILL)

def test_aborts():
    os.abort()

def test_passes():
    pass
"""


@pytest.mark.parametrize(
    ("test", "said"),
    [
        ("hangs_with_the_lock", "Timeout (0:00:02)!"),
        ("is_killed", "It wrote no stack: it was killed, or it left by itself."),
        ("aborts", "Fatal Python error: Aborted"),
    ],
)
def test_a_worker_that_ends_leaves_its_stacks(tmp_path: Path, test: str, said: str) -> None:
    (tmp_path / "test_some.py").write_text(TESTS)
    plugins = ("-p", "tests.stacks", "-c", "/dev/null", "--timeout", "2", "-n", "1")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *plugins, str(tmp_path), "-k", f"{test} or passes"],
        cwd=ROOT,
        env={"PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert "1 failed, 1 passed" in done.stdout, done.stdout + done.stderr
    assert said in done.stdout
    if "killed" not in test:
        assert f"in test_{test}" in done.stdout
