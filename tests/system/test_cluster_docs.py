"""The pages that start a cluster are true: their commands, run in order against three brokers,
print what is shown.

What is another at every run (times, ids) is put aside on both sides. A page's ports are replaced by
free ones.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.testing.ports import free_row
from ottla.testing.zookeeper_server import ZooKeeperError, zookeeper_command

DOCS = Path(__file__).parents[2] / "docs"
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# A program of the page, with its name in its first line.
PROGRAM = re.compile(r"^```python\n# (\w+\.py)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
START = "ottla cluster start --brokers 3"
CHANGING = (
    (re.compile(r"\d{4}-\d\d-\d\d"), "DAY"),
    (re.compile(r"\b\d\d:\d\d:\d\d\.\d{3}"), "TIME"),
    (re.compile(r"producer  id \d+"), "producer  id N"),
    (re.compile(r'"brokerid":\d,"timestamp":"\d+"'), "CONTROLLER"),
    (re.compile(r"[ \d,]{9} messages/s"), "RATE"),
    (re.compile(r"between TIME and TIME"), "TIME"),
    (re.compile(r"  [+-][0-9.]+ (?:ms|s|min)\b(?: \d+ s)?"), ""),
    # Depends on the time that the first record waited.
    (re.compile(r"^.*── wait     .*\n", re.MULTILINE), ""),
)
READY_S = 60
SETTLE_S = 30
WAITED = "may include librdkafka's 0.5 s"


def steady(text: str) -> list[str]:
    for pattern, name in CHANGING:
        text = pattern.sub(name, text)
    # How long a record waited for its producer's id depends on the machine, as times do.
    return [line.rstrip() for line in text.splitlines() if WAITED not in line]


def typed_and_shown(page: str) -> Iterator[tuple[str, str]]:
    for block in BLOCK.findall((DOCS / page).read_text()):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, shown = part.partition("\n")
            yield command, shown


class Session:
    """The cluster of a page's first block, and a shell beside it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ports = dict(zip(("9092", "9093", "9094"), free_row(3), strict=True))
        self.environment = {**os.environ, "COLUMNS": "100", "PYTHONUNBUFFERED": "1"}
        self.environment["PATH"] = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        addresses = ",".join(f"127.0.0.1:{port}" for port in self.ports.values())
        self.environment["OTTLA_BOOTSTRAP"] = addresses
        self.started: list[subprocess.Popen[bytes]] = []

    def real(self, command: str) -> str:
        for shown, port in self.ports.items():
            command = command.replace(shown, str(port))
        return command

    def shown(self, output: str) -> str:
        """The output with the page's ports."""
        for shown, port in self.ports.items():
            output = output.replace(f":{port}", f":{shown}")
        return output

    def start(self, command: str) -> None:
        """A command that stays in front, in a terminal of its own; waits for its ready line."""
        out = self.folder / f"out-{len(self.started)}"
        with out.open("wb") as file:
            process = subprocess.Popen(
                self.real(command).split(),
                stdout=file,
                stderr=file,
                cwd=self.folder,
                env=self.environment,
            )
        self.started.append(process)
        deadline = time.monotonic() + READY_S
        while "eady" not in out.read_text():
            assert process.poll() is None, out.read_text()
            assert time.monotonic() < deadline, out.read_text()
            time.sleep(0.1)
        cluster = json.loads((self.folder / "ottla-cluster" / "cluster.json").read_text())
        self.ports["2181"] = cluster["zookeeper_port"]

    def save_programs(self, page: str) -> None:
        for name, text in PROGRAM.findall((DOCS / page).read_text()):
            (self.folder / name).write_text(self.real(text))

    def run(self, command: str) -> str:
        done = subprocess.run(
            ["bash", "-c", self.real(command)],
            capture_output=True,
            text=True,
            cwd=self.folder,
            env=self.environment,
            timeout=60,
            check=False,
        )
        return self.shown(done.stdout + done.stderr)

    def wait_committed(self, broker: str, line: str) -> None:
        """A follower hears of the high watermark half a second later. Killed before that, the
        leader takes with it which in-sync set committed the record: the journey says so then.
        """
        path = self.folder / "ottla-cluster" / f"broker-{broker}" / "replication-offset-checkpoint"
        deadline = time.monotonic() + SETTLE_S
        while not path.exists() or line not in path.read_text().splitlines():
            assert time.monotonic() < deadline, f"{path} has no {line!r}"
            time.sleep(0.1)

    def close(self) -> None:
        for process in reversed(self.started):
            process.send_signal(signal.SIGINT)
            process.wait(60)


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    try:
        zookeeper_command()
    except ZooKeeperError as error:
        pytest.skip(str(error))
    session = Session(tmp_path)
    yield session
    session.close()


@pytest.mark.parametrize(("page", "least"), [("cluster.md", 9), ("kafka-in-a-nutshell.md", 30)])
def test_the_walk_prints_what_the_page_shows(page: str, least: int, session: Session) -> None:
    commands = list(typed_and_shown(page))
    assert len(commands) >= least
    for command, shown in commands:
        if command.startswith(START):
            session.start(f"{command} --port {session.ports['9092']}")
            session.save_programs(page)
        else:
            if command.startswith("ottla cluster kill") and page == "cluster.md":
                session.wait_committed("2", "flights 0 1")
            wanted, deadline = steady(shown), time.monotonic() + SETTLE_S
            found = steady(session.run(command))
            # An election, and a return to the in-sync set, take their time.
            while "topic describe" in command and found != wanted:
                assert time.monotonic() < deadline, (command, found)
                time.sleep(0.5)
                found = steady(session.run(command))
            assert found == wanted, command
