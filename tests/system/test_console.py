"""`ottla console` as a process: it starts without a cluster, and stops when it is told to."""

from __future__ import annotations

import http.client
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.console.pages.test_group_reset import moves_of
from tests.console.served_console import Visitor, console_of, serving
from tests.system.streams_member import Member
from tests.system.test_cli_streams_groups import OPTIONS
from tests.system.test_groups import fill

from ottla.client.admin.committed_offsets import commit_offsets
from ottla.client.client import Client
from ottla.client.topic_partition import TopicPartition
from ottla.console.pages.group_reset import read_moves

WAIT_S = 30
NOBODY = "127.0.0.1:1"


@contextmanager
def console(*options: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "ottla", "console", "-b", NOBODY),
            *("--listen", "127.0.0.1:0", *options),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        found = re.search(r"at http://127\.0\.0\.1:(\d+)/", line)
        assert found is not None, (line, process.communicate(timeout=WAIT_S))
        yield process, int(found[1])
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_it_serves_until_a_signal(stop: signal.Signals) -> None:
    with console() as (process, port):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=WAIT_S)
        connection.request("GET", "/")
        response = connection.getresponse()
        assert response.status == 503
        assert b"The cluster does not respond" in response.read()
        connection.close()
        process.send_signal(stop)
        assert process.wait(WAIT_S) == 0
        assert process.stderr is not None
        assert process.stderr.read() == ""


def test_a_disk_without_space_for_its_address() -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "ottla", "console", "--listen", "127.0.0.1:0"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=WAIT_S,
        )
    assert done.returncode == 1
    assert "cannot write the output: No space left" in done.stderr


@pytest.mark.parametrize("stop", [signal.SIGTERM, signal.SIGKILL])
def test_a_broker_starts_it_and_takes_it_along(stop: signal.Signals, tmp_path: Path) -> None:
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "ottla", "serve", "--listen", "127.0.0.1:0", "--console"),
            *("--data", str(tmp_path / "data"), "--log-level", "warning"),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=os.environ | {"OTTLA_CONSOLE_LISTEN": "127.0.0.1:0"},
    )
    try:
        assert process.stdout is not None
        lines = [process.stdout.readline(), process.stdout.readline()]
        said = "".join(lines)
        assert "Ottla is ready on" in said
        assert "The console of 127.0.0.1:" in said
        process.send_signal(stop)
        # The pipe ends once nobody has it any more: the console has stopped, too.
        rest = process.stdout.read()
        assert "Traceback" not in rest
        assert process.wait(WAIT_S) == (0 if stop is signal.SIGTERM else -signal.SIGKILL)
    finally:
        process.kill()
        process.communicate()


def test_the_console_of_a_secured_broker_asks_who_visits_it(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "ottla", "serve", "--listen", "127.0.0.1:0", "--secure"),
            *("--console", "--data", str(tmp_path / "data"), "--log-level", "warning"),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=os.environ
        | {
            "OTTLA_CONSOLE_LISTEN": "127.0.0.1:0",
            "OTTLA_PROFILES": str(tmp_path / "profiles.toml"),
        },
    )
    try:
        assert process.stdout is not None
        said = ""
        while (place := re.search(r"at http://127\.0\.0\.1:(\d+)/", said)) is None:
            line = process.stdout.readline()
            assert line, said
            said += line
        password = re.search(r"user admin, password (\S+)", said)
        assert password is not None, said
        visitor = Visitor(int(place[1]))
        wrong = visitor.post("/login", user="admin", password="guessed", then="/", token="")
        assert wrong.status == 403
        found = visitor.post("/login", user="admin", password=password[1], then="/", token="")
        assert found.status == 200
        assert "User:admin" in found.words
        assert "Everything works" in found.words
        process.send_signal(signal.SIGTERM)
        assert "Traceback" not in process.stdout.read()
        assert process.wait(WAIT_S) == 0
    finally:
        process.kill()
        process.communicate()


def test_of_a_streams_group_what_others_write_is_moved(new_broker: Any) -> None:
    broker = new_broker(*OPTIONS)
    fill(broker.bootstrap, "t", 5)
    with Client(broker.bootstrap) as client:
        member = Member(client, "g", "t")
        member.join(8)
        member.leave()
        repartition = TopicPartition("g-counts-repartition", 0)
        commit_offsets(client, "g", {TopicPartition("t", 0): 5, repartition: 0})
    with serving(console_of(broker.bootstrap)) as visitor:
        plan = visitor.post("/group/plan", name="g", to="offset", value="2")
        assert "is added to it (g-counts-changelog)" in plan.words
        assert {key.topic for key in read_moves(moves_of(plan))} == {"t"}
        assert len(read_moves(moves_of(plan))) == 4
        done = visitor.post("/group/apply", name="g", moves=moves_of(plan))
        assert "Moved 4 partitions of g." in done.words
