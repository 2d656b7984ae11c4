"""`ottla cluster start --secure` as a person types it: twice, interrupted in the middle, and on a
folder that was not secure before.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.system.test_cluster_start import INTERRUPTED, Started, ended, three_ports

WAIT_S = 60
pytestmark = pytest.mark.full


@pytest.fixture(autouse=True)
def own_profiles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "profiles.toml"
    monkeypatch.setenv("OTTLA_PROFILES", str(path))
    for name in ("OTTLA_BOOTSTRAP", "OTTLA_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    return path


def typed(*words: str, code: int = 0) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "ottla", *words],
        capture_output=True,
        text=True,
        env=os.environ,
        timeout=WAIT_S,
        check=False,
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_from_nothing_and_again(tmp_path: Path, own_profiles: Path) -> None:
    first = Started(tmp_path / "cluster", "--secure", "--brokers", "3", "--port", three_ports())
    try:
        (password,) = re.findall(r"password (\S+) \(shown", first.until(r"(?s).*Ready")[0])
        typed("topic", "create", "t", "--replication-factor", "3", "--profile", "secure")
        processes = subprocess.run(["ps", "axww"], capture_output=True, text=True, check=True)
        assert password not in processes.stdout
        assert first.interrupt() == INTERRUPTED
        second = Started(tmp_path / "cluster")
        try:
            assert password not in second.until(r"(?s).*Ready")[0]
            assert "t" in typed("topic", "list", "--profile", "secure").split()
            assert second.interrupt() == INTERRUPTED
        finally:
            ended(second)
    finally:
        ended(first)
    for log in (tmp_path / "cluster" / "data").glob("broker-*.stderr"):
        assert "Traceback" not in log.read_text()


@pytest.mark.parametrize("after", ["ZooKeeper", r"broker \d"])
def test_interrupted_in_the_middle(after: str, tmp_path: Path) -> None:
    first = Started(tmp_path / "cluster", "--secure", "--port", three_ports())
    try:
        first.until(after)
        assert first.interrupt() == INTERRUPTED
        second = Started(tmp_path / "cluster")
        try:
            second.until("Ready")
            typed("topic", "create", "t", "--profile", "secure")
            assert second.interrupt() == INTERRUPTED
        finally:
            ended(second)
    finally:
        ended(first)


def test_a_cluster_that_was_not_secure(tmp_path: Path) -> None:
    first = Started(tmp_path / "cluster", "--brokers", "2", "--port", three_ports())
    try:
        bootstrap = first.until(r"OTTLA_BOOTSTRAP=(\S+)")[1]
        typed("topic", "create", "t", "-b", bootstrap)
        assert first.interrupt() == INTERRUPTED
        second = Started(tmp_path / "cluster", "--secure")
        try:
            second.until("Ready")
            assert "t" in typed("topic", "list", "--profile", "secure").split()
            assert "wants SASL_SSL" in typed("topic", "list", "-b", bootstrap, code=1)
            assert second.interrupt() == INTERRUPTED
        finally:
            ended(second)
    finally:
        ended(first)
