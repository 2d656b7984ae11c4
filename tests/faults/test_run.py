"""A whole run of faults, as `make faults` begins it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

WITHIN_S = 250


@pytest.mark.timeout(WITHIN_S + 20)
def test_a_secured_cluster(tmp_path: Path) -> None:
    words = ["--seed", "1", "--seconds", "5", "--secure", "--transactions"]
    done = subprocess.run(
        [sys.executable, "-m", "faults", *words, "--folder", str(tmp_path / "run")],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=WITHIN_S,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "FORBIDDEN" not in done.stdout
    assert (tmp_path / "run" / "cluster" / "secure" / "authority.pem").is_file()
