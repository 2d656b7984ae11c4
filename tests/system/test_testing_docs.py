"""The examples of docs/testing.md run as they are pasted into an empty folder."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from ottla.testing.zookeeper_server import ZooKeeperError, zookeeper_command

PAGE = Path(__file__).parents[2] / "docs" / "testing.md"
WITHIN_S = 120


def test_both_examples_run_as_pasted(tmp_path: Path) -> None:
    try:
        zookeeper_command()
    except ZooKeeperError as error:
        pytest.skip(str(error))
    with_pytest, without = re.findall(
        r"^```python\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL
    )
    (tmp_path / "test_pasted.py").write_text(with_pytest)
    (tmp_path / "pasted.py").write_text(without)
    # Side by side: each waits for processes most of the time.
    words = {"test_pasted.py": ["-m", "pytest", "-q", "test_pasted.py"], "pasted.py": ["pasted.py"]}
    running = {
        name: subprocess.Popen(
            [sys.executable, *command],
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for name, command in words.items()
    }
    for name, process in running.items():
        said, _ = process.communicate(timeout=WITHIN_S)
        assert process.returncode == 0, f"{name}\n{said}"
