import os
import sys
from pathlib import Path

import pytest
from components.child import Child, ChildDiedError, cpu_seconds_in

from ottla.testing.ports import free_ports

SERVER = (
    "import socket, sys; s = socket.create_server(('127.0.0.1', int(sys.argv[1])))\n"
    "while True: s.accept()[0].close()"
)


def test_cpu_seconds_include_user_system_and_children_for_any_name() -> None:
    stat = "12 (a ) name) S 1 1 1 0 -1 4194304 1 2 3 4 100 50 7 3 20 0 4 0 99"
    assert cpu_seconds_in(stat) == pytest.approx(160 / os.sysconf("SC_CLK_TCK"))


def test_a_child_is_measured_and_ended(tmp_path: Path) -> None:
    port = free_ports(1)[0]
    child = Child([sys.executable, "-c", SERVER, str(port)], tmp_path / "log")
    child.wait_for_port(port, 20_000)
    assert child.rss_bytes() > 1_000_000
    assert child.cpu_seconds() >= 0
    assert child.stop() == -15
    assert child.stop() == -15


def test_the_error_has_a_dead_childs_last_output(tmp_path: Path) -> None:
    child = Child([sys.executable, "-c", "raise SystemExit('no such folder')"], tmp_path / "log")
    with pytest.raises(ChildDiedError, match="no such folder"):
        child.wait_for_port(free_ports(1)[0], 20_000)


def test_a_port_that_never_opens_raises(tmp_path: Path) -> None:
    child = Child([sys.executable, "-c", "import time; time.sleep(60)"], tmp_path / "log")
    try:
        with pytest.raises(ChildDiedError, match="did not open in 100 ms"):
            child.wait_for_port(free_ports(1)[0], 100)
    finally:
        child.kill()
    assert child.process.returncode == -9
