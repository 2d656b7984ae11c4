"""Runs of `ottla pipeline` with all that happens to them: signals, brokers, terminals."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import termios
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from components.apache_kafka import ApacheKafka
from confluent_kafka.admin import AdminClient, NewTopic
from tests.pipelines.environment import serve
from tests.pipelines.jars import fetch_jars_once
from tests.system.pipeline_commands import TEXT, WAIT_S, Running, ottla, produce, statuses, words

from components import fixture
from ottla.testing.ports import free_ports

kafka_jars, apache_kafka = fixture.kafka_jars, fixture.apache_kafka
pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

TWO = """
[spark]
master = "local[2]"
[spark.conf]
spark.sql.shuffle.partitions = 2
spark.driver.extraJavaOptions = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""
ONE_OF_TWO = """
[[pipeline]]
name = "{name}"
[pipeline.source]
bootstrap_servers = "{bootstrap}"
topic = "{topic}"
schema = "n INT NOT NULL"
[pipeline.transform]
sql = "SELECT value.n, value.n * {times} AS m FROM {view}"
[pipeline.sink]
target = "./lake/{name}"
[pipeline.delivery]
checkpoint = "./cp/{name}"
group = "{topic}-{name}"
trigger = "1 second"
"""
SLOW_TO_STOP = """
import pathlib, time

from ottla.pipelines.progress.query_reporter import QueryReporter

PIPELINE = {{
    "source": {{"bootstrap_servers": "{bootstrap}", "topic": "{topic}", "schema": "n INT"}},
    "sink": {{"target": "./lake/numbers"}},
    "delivery": {{"checkpoint": "./cp/numbers", "group": "{topic}-delta"}},
    "spark": {{"master": "local[2]"}},
}}


def stop_in_an_hour(reporter, by):
    pathlib.Path("{stopping}").touch()
    time.sleep(3_600)


QueryReporter.stop = stop_in_an_hour


def transform(rows):
    return rows.select("value.n")
"""


@pytest.fixture(autouse=True)
def jars(tmp_path_factory: pytest.TempPathFactory) -> None:
    fetch_jars_once(tmp_path_factory)


@pytest.fixture
def bootstrap(tmp_path: Path) -> Iterator[str]:
    with serve(tmp_path / "data") as address:
        yield address


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[[Path], Running]]:
    """Starts runs, and ends what is left of them."""
    started: list[Running] = []

    def run(file: Path) -> Running:
        started.append(Running(file, tmp_path / f"spark-{len(started)}.log"))
        return started[-1]

    yield run
    for one in started:
        one.kill()


def make_topic(bootstrap: str) -> str:
    name = f"numbers-{uuid.uuid4().hex[:8]}"
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(name, 2, 1)])[name].result(timeout=30)
    return name


def write_file(folder: Path, bootstrap: str, topic: str) -> Path:
    text = TEXT.format(bootstrap=bootstrap, topic=topic, view=topic.replace("-", "_"))
    file = folder / "numbers.toml"
    file.write_text(text)
    return file


def processes_of(group: int) -> list[str]:
    """The command lines of the processes of a process group, without those that have ended."""
    listed = subprocess.run(
        ["ps", "-eo", "pgid=,stat=,args="], capture_output=True, text=True, check=True
    )
    lines = [line.split(None, 2) for line in listed.stdout.splitlines()]
    return [args for pgid, stat, args in lines if int(pgid) == group and "Z" not in stat]


@pytest.mark.full
@pytest.mark.kafka
def test_state_and_stop_on_apache_kafka(
    apache_kafka: ApacheKafka, tmp_path: Path, start: Callable[[Path], Running]
) -> None:
    bootstrap = apache_kafka.address
    topic = make_topic(bootstrap)
    file = write_file(tmp_path, bootstrap, topic)
    produce(bootstrap, topic, ['{"n": 1}', '{"n": 2}', "no number"])

    run = start(file)
    # From the first moment on, long before Spark runs.
    run.wait_for(lambda: statuses(file)[0]["state"] == "starting")
    assert statuses(file)[0]["pid"] == run.process.pid
    run.wait_for_rows(3)
    (said,) = statuses(file)
    assert (said["state"], said["rejected"], said["lag_messages"]) == ("running", 1, 0)
    assert said["table"] == str(tmp_path / "lake/numbers")

    stopped = ottla("stop", str(file), timeout=WAIT_S)
    assert stopped.returncode == 0, stopped.stderr
    assert run.wait() == 0
    (said,) = statuses(file)
    assert said["state"] == "stopped"
    assert "@" in str(said["by"])


def test_two_pipelines_of_one_file_and_sigterm(
    bootstrap: str, tmp_path: Path, start: Callable[[Path], Running]
) -> None:
    topic = make_topic(bootstrap)
    view = topic.replace("-", "_")
    file = tmp_path / "two.toml"
    file.write_text(
        TWO
        + "".join(
            ONE_OF_TWO.format(name=name, bootstrap=bootstrap, topic=topic, view=view, times=times)
            for name, times in (("tens", 10), ("hundreds", 100))
        )
    )
    produce(bootstrap, topic, ['{"n": 1}', '{"n": 2}', "no number"])

    run = start(file)
    for name in ("tens", "hundreds"):
        run.wait_for_rows(3, name)
    states = {said["pipeline"]: said for said in statuses(file)}
    assert {said["state"] for said in states.values()} == {"running"}
    assert {said["rejected"] for said in states.values()} == {1}

    stopped = ottla("stop", str(file), "--only", "tens", timeout=WAIT_S)
    assert stopped.returncode == 0, stopped.stderr
    assert stopped.stdout.startswith("tens has stopped after ")
    produce(bootstrap, topic, ['{"n": 3}'])
    run.wait_for_rows(4, "hundreds")
    assert run.process.poll() is None

    run.process.send_signal(signal.SIGTERM)
    assert run.wait() == 0
    states = {said["pipeline"]: said for said in statuses(file)}
    assert states["hundreds"]["by"] == "SIGTERM"
    assert [states[name]["state"] for name in ("tens", "hundreds")] == ["stopped", "stopped"]
    assert (states["tens"]["lag_messages"], states["hundreds"]["lag_messages"]) == (1, 0)
    assert "Traceback" not in run.errors.read_text()
    assert processes_of(run.process.pid) == []


def test_a_second_ctrl_c_ends_the_process_and_spark_at_once(
    bootstrap: str, tmp_path: Path, start: Callable[[Path], Running]
) -> None:
    """Spark's own stop cancels the tasks and takes a moment, so this one is made to take an hour:
    otherwise the second signal meets a process that ends anyway.
    """
    topic = make_topic(bootstrap)
    stopping = tmp_path / "stopping"
    file = tmp_path / "numbers.py"
    file.write_text(SLOW_TO_STOP.format(bootstrap=bootstrap, topic=topic, stopping=stopping))
    produce(bootstrap, topic, ['{"n": 1}'])
    run = start(file)
    run.wait_for_rows(1)
    os.kill(run.process.pid, signal.SIGINT)
    run.wait_for(stopping.exists)
    run.wait_for(lambda: "Stopping the queries; again to end at once." in run.errors.read_text())

    os.kill(run.process.pid, signal.SIGINT)

    assert run.wait() == 130
    assert "Traceback" not in run.errors.read_text()
    until = time.monotonic() + WAIT_S
    while processes := [line for line in processes_of(run.process.pid) if "java" in line]:
        assert time.monotonic() < until, processes
        time.sleep(0.2)


class Terminal:
    """A command at a terminal of some width, and all that it shows."""

    def __init__(self, columns: int, command: list[str]) -> None:
        self.ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
        environment = {**os.environ, "NO_COLOR": "1", "TERM": "xterm"}
        # COLUMNS of the environment of the tests would override the width of this terminal.
        for name in ("COLUMNS", "LINES"):
            environment.pop(name, None)
        self.process = subprocess.Popen(
            command, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
            env=environment,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )  # fmt: skip
        os.close(theirs)
        self._bytes = b""
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        while True:
            try:
                self._bytes += os.read(self.ours, 65_536)
            except OSError:
                return  # the last process that had it open has ended

    def shown(self) -> str:
        """What was written, without the moves of the cursor."""
        text = self._bytes.decode(errors="replace").replace("\r\n", "\n").replace("\r", "\n")
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)

    def wait_for(self, pattern: str) -> None:
        until = time.monotonic() + WAIT_S
        while not re.search(pattern, self.shown(), re.DOTALL):
            assert time.monotonic() < until, self.shown()[-4_000:]
            assert self.process.poll() is None, self.shown()[-4_000:]
            time.sleep(0.2)

    def type(self, keys: bytes) -> None:
        os.write(self.ours, keys)

    def close(self) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait(30)
        self._thread.join(30)
        os.close(self.ours)


@pytest.mark.full
@pytest.mark.parametrize("columns", [57, 150])
def test_the_live_table_over_a_restart_of_the_broker(tmp_path: Path, columns: int) -> None:
    address = f"127.0.0.1:{free_ports(1)[0]}"
    terminal: Terminal | None = None
    try:
        with serve(tmp_path / "data", address):
            topic = make_topic(address)
            file = write_file(tmp_path, address, topic)
            produce(address, topic, ['{"n": 1}', '{"n": 2}'])
            terminal = Terminal(columns, words("run", str(file), "--log", str(tmp_path / "log")))
            terminal.wait_for(r"rows +2\s" if columns == 57 else r"running +[\d,]+ +2 ")
        terminal.wait_for(f"No broker answers at {address}")
        with serve(tmp_path / "data", address):
            produce(address, topic, ['{"n": 3}'])
            terminal.wait_for("answers again")
            terminal.wait_for(r"rows +3\s" if columns == 57 else r"running +[\d,]+ +3 ")
            terminal.type(b"\x03")
            assert terminal.process.wait(WAIT_S) == 130
            (said,) = statuses(file)
            assert (said["state"], said["by"], said["lag_messages"]) == ("stopped", "Ctrl-C", 0)
    finally:
        if terminal is not None:
            terminal.close()
    lines = terminal.shown().splitlines()
    assert max(map(len, lines)) <= columns
    # Where the table does not fit, each value has a line of its own.
    assert any(line.startswith("rows/s ") for line in lines) == (columns == 57)
    assert any(re.match("pipeline +state +rows/s", line) for line in lines) == (columns == 150)
    assert "Traceback" not in terminal.shown()


def test_check_plans_the_query_with_spark(bootstrap: str, tmp_path: Path) -> None:
    topic = make_topic(bootstrap)
    file = write_file(tmp_path, bootstrap, topic)
    produce(bootstrap, topic, ['{"n": 1}'])

    done = ottla("check", str(file), timeout=WAIT_S)
    assert done.returncode == 0, done.stderr
    assert "numbers writes: n int, offset bigint" in done.stdout
    assert done.stdout.rstrip().endswith("Nothing wrong was found.")
    assert done.stderr.splitlines() == [
        "numbers: the newest record fits the schema.",
        "Starting Spark to plan the queries.",
    ]
    assert not (tmp_path / "lake").exists()
    assert not (tmp_path / "cp").exists()
