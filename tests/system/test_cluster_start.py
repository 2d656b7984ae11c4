"""`ottla cluster` as a person types it: three brokers, one drained, Ctrl-C, and again."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from confluent_kafka import Producer

from ottla.testing.ports import free_row

OTTLA = [sys.executable, "-m", "ottla"]
WITHIN_S = 90
INTERRUPTED = 130


class Started:
    """One `ottla cluster start`, its output in a file."""

    def __init__(self, folder: Path, *words: object) -> None:
        self.output = folder / "shown"
        folder.mkdir(exist_ok=True)
        with self.output.open("wb") as output:
            self.process = subprocess.Popen(
                [*OTTLA, "cluster", "start", "--data", str(folder / "data"), *map(str, words)],
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=folder,
                start_new_session=True,
            )

    def shown(self) -> str:
        return self.output.read_text()

    def until(self, pattern: str) -> re.Match[str]:
        limit = time.monotonic() + WITHIN_S
        while not (found := re.search(pattern, self.shown())):
            assert self.process.poll() is None, self.shown()
            assert time.monotonic() < limit, self.shown()
            time.sleep(0.05)
        return found

    def interrupt(self) -> int:
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(WITHIN_S)


def three_ports() -> int:
    """The first of three free ports in a row."""
    return free_row(3)[0]


def ended(*started: Started) -> None:
    """Whatever became of the test, none of them is left."""
    for each in started:
        if each.process.poll() is None:
            each.process.kill()
            each.process.wait(WITHIN_S)


def asked(*words: object, code: int = 0) -> str:
    """What a command prints, on either output."""
    done = subprocess.run(
        [*OTTLA, *map(str, words)], capture_output=True, text=True, timeout=WITHIN_S, check=False
    )
    assert done.returncode == code, done.stderr
    return done.stdout + done.stderr


def typed(bootstrap: str, *words: object) -> Any:
    done = subprocess.run(
        [*OTTLA, *map(str, words), "--json", "--bootstrap", bootstrap],
        capture_output=True,
        timeout=WITHIN_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    return json.loads(done.stdout)


def test_a_cluster_is_started_grows_is_drained_stopped_and_goes_on(tmp_path: Path) -> None:
    first = free_row(4)[0]
    started = Started(tmp_path, "--port", first, "--racks", "a,b,c")
    here = ("--data", tmp_path / "data")
    try:
        bootstrap = started.until(r"OTTLA_BOOTSTRAP=(\S+)")[1]
        assert sorted(each.name for each in tmp_path.iterdir()) == ["data", "shown"]
        assert len(bootstrap.split(",")) == 3
        typed(bootstrap, "topic", "create", "flights", "-p", 4)
        producer = Producer({"bootstrap.servers": bootstrap})
        for number in range(400):
            producer.produce("flights", str(number).encode())
        assert producer.flush(WITHIN_S) == 0
        refused = asked("cluster", "drain", 3, "--bootstrap", bootstrap, code=1)
        internal = "__consumer_offsets (50), __transaction_state (50)"
        assert f"partitions of {internal}, flights (4) have replicas on" in refused
        assert "ottla cluster add" in refused
        added = json.loads(asked("cluster", "add", "--rack", "c", "--json", *here))
        assert added == {"broker": 4, "state": "running", "address": f"127.0.0.1:{first + 3}"}
        drained = typed(bootstrap, "cluster", "drain", 3)
        moved = {each["topic"] for each in drained["moved"]}
        assert moved == {"flights", "__consumer_offsets", "__transaction_state"}
        described = typed(bootstrap, "cluster", "describe")
        assert [each["replicas"] for each in described["brokers"]] == [104, 104, 0, 104]
        assert described["controller"] in (1, 2, 3, 4)
        assert described["controller_epoch"] >= 1
        # Its exit is no surprise, as long as it is down and when it is back.
        assert asked("cluster", "kill", 3, *here) == "Killed broker 3 (SIGKILL).\n"
        assert "broker 3 is not running" in asked("cluster", "stop", 3, *here, code=1)
        back = asked("cluster", "restart", 3, *here)
        assert back == f"Broker 3 is ready on 127.0.0.1:{first + 2}.\n"
        assert started.interrupt() == INTERRUPTED, started.shown()
        assert "Stopped." in started.shown()
        assert "unexpectedly" not in started.shown()
        assert "no `ottla cluster start` runs on" in asked("cluster", "kill", 1, *here, code=1)
        started = Started(tmp_path)
        assert started.until(r"OTTLA_BOOTSTRAP=(\S+)")[1].startswith(f"{bootstrap},")
        described = typed(bootstrap, "cluster", "describe")
        assert described["partitions"] == 104
        assert [each["rack"] for each in described["brokers"]] == ["a", "b", "c", "c"]
    finally:
        ended(started)


def children(process: int) -> list[int]:
    """The processes that it has started."""
    listed = Path(f"/proc/{process}/task").glob("*/children")
    return [int(each) for file in listed for each in file.read_text().split()]


def program(process: int) -> bytes:
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return b""


def all_gone(processes: list[int]) -> None:
    limit = time.monotonic() + WITHIN_S
    while left := [each for each in processes if program(each)]:
        assert time.monotonic() < limit, left
        time.sleep(0.05)


def test_killed_it_leaves_no_process_and_its_data_and_a_second_ctrl_c_ends_all_at_once(
    tmp_path: Path,
) -> None:
    started = Started(tmp_path, "--brokers", 1, "--port", three_ports())
    try:
        bootstrap = started.until(r"OTTLA_BOOTSTRAP=(\S+)")[1]
        typed(bootstrap, "topic", "create", "flights", "-p", 2)
        theirs = children(started.process.pid)
        assert len(theirs) == 2
        started.process.kill()
        started.process.wait(WITHIN_S)
        all_gone(theirs)
        started = Started(tmp_path)
        assert started.until(r"OTTLA_BOOTSTRAP=(\S+)")[1] == bootstrap
        (topic,) = typed(bootstrap, "topic", "describe", "flights")
        assert [each["state"] for each in topic["partitions"]] == ["ok", "ok"]
        theirs = children(started.process.pid)
        # A broker that waits for ZooKeeper's answer leaves time for the second Ctrl-C.
        (zookeeper,) = (each for each in theirs if b"QuorumPeerMain" in program(each))
        os.kill(zookeeper, signal.SIGSTOP)
        started.process.send_signal(signal.SIGINT)
        started.until("Stopping. Press Ctrl-C again to kill all processes at once.")
        assert started.interrupt() == INTERRUPTED
        assert "Killed all processes." in started.shown()
        assert "Traceback" not in started.shown()
        all_gone(theirs)
    finally:
        ended(started)


def test_a_broker_that_ends_by_itself_is_told(tmp_path: Path) -> None:
    started = Started(tmp_path, "--brokers", 1, "--port", three_ports())
    try:
        started.until("OTTLA_BOOTSTRAP")
        children = Path(f"/proc/{started.process.pid}/task").glob("*/children")
        for child in " ".join(each.read_text() for each in children).split():
            if b"serve" in Path(f"/proc/{child}/cmdline").read_bytes():
                os.kill(int(child), signal.SIGKILL)
        assert started.process.wait(WITHIN_S) == 1
        assert "broker 1 exited unexpectedly: signal SIGKILL" in started.shown()
        assert "No broker is running." in started.shown()
    finally:
        ended(started)


def test_clusters_that_start_in_the_same_second_do_not_take_each_others_ports(
    tmp_path: Path,
) -> None:
    """ZooKeeper's port is chosen; the brokers' are asked for, and refused to the second start."""
    first, second = three_ports(), three_ports()
    started = [
        Started(tmp_path / name, "--brokers", 1, "--port", port)
        for name, port in (("a", first), ("b", first), ("c", second))
    ]
    try:
        started[2].until("OTTLA_BOOTSTRAP")
        until = time.monotonic() + WITHIN_S
        while all(each.process.poll() is None for each in started[:2]):
            assert time.monotonic() < until
            time.sleep(0.05)
        (refused,) = (each for each in started if each.process.poll() is not None)
        assert refused.process.returncode == 1
        assert refused.shown() == (
            f"ottla cluster start: port {first}, for broker 1, is in use.\n"
            "  Stop the process that listens there, or give another --port.\n"
        )
        ports = [
            each.until(r"ZooKeeper +127\.0\.0\.1:(\d+)(?s:.*)OTTLA_BOOTSTRAP")[1]
            for each in started
            if each is not refused
        ]
        assert len(set(ports)) == 2
        again = Started(tmp_path / "c")
        assert again.process.wait(WITHIN_S) == 1
        assert "is in use by another `ottla cluster start`" in again.shown()
        for each in started:
            if each is not refused:
                assert each.interrupt() == INTERRUPTED, each.shown()
    finally:
        ended(*started)


def test_where_a_leader_is_silent_the_offsets_of_the_others_are_shown(tmp_path: Path) -> None:
    # Long, so that nobody takes over from the silent one meanwhile.
    patient = ("--config", "zookeeper.session.timeout.ms=60000")
    started = Started(tmp_path, "--brokers", 2, "--port", three_ports(), *patient)
    try:
        bootstrap = started.until(r"OTTLA_BOOTSTRAP=(\S+)")[1]
        typed(bootstrap, "topic", "create", "flights", "--assign", "1:2,2:1")
        processes = children_of(started.process).items()
        (second,) = (each for each, words in processes if b"broker-2\0" in words)
        os.kill(second, signal.SIGSTOP)
        (topic,) = typed(bootstrap, "topic", "describe", "flights")
        os.kill(second, signal.SIGCONT)
        led, silent = topic["partitions"]
        assert (led["leader"], led["start_offset"], led["end_offset"]) == (1, 0, 0)
        assert led["offsets_error"] is None
        assert (silent["leader"], silent["end_offset"]) == (2, None)
        assert silent["offsets_error"] == "no response from its leader within 5 s"
        (topic,) = typed(bootstrap, "topic", "describe", "flights")
        assert [each["end_offset"] for each in topic["partitions"]] == [0, 0]
    finally:
        ended(started)


def test_without_a_controller_the_cluster_is_described_and_a_drain_says_why_it_waits(
    tmp_path: Path,
) -> None:
    started = Started(tmp_path, "--brokers", 2, "--port", three_ports())
    try:
        bootstrap = started.until(r"OTTLA_BOOTSTRAP=(\S+)")[1]
        typed(bootstrap, "topic", "create", "flights", "--assign", "1:2,2:1")
        described = typed(bootstrap, "cluster", "describe")
        assert described["controller_answers"] is True
        controller = described["controller"]
        # Without an ensemble nobody can succeed it.
        needed = (b"QuorumPeerMain", b"broker-%d\0" % controller)
        for each in needed:
            processes = children_of(started.process).items()
            (process,) = (number for number, words in processes if each in words)
            os.kill(process, signal.SIGKILL)
            all_gone([process])
        described = typed(bootstrap, "cluster", "describe")
        assert (described["controller"], described["controller_answers"]) == (controller, False)
        assert described["partitions"] == 102
        (topic,) = typed(bootstrap, "topic", "describe", "flights")
        told = {each["leader"]: each["offsets_error"] for each in topic["partitions"]}
        assert told.pop(controller) == "no response from its leader within 5 s"
        assert set(told.values()) == {None}
        drain = subprocess.Popen(
            [*OTTLA, "cluster", "drain", "1", "--bootstrap", bootstrap],
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        assert drain.stderr is not None
        with drain:
            assert drain.stderr.readline() == "Waiting up to 30 s for a controller ...\n"
            drain.send_signal(signal.SIGINT)
            assert drain.stderr.read() == ""
        assert drain.returncode == INTERRUPTED
    finally:
        ended(started)


def children_of(process: subprocess.Popen[bytes]) -> dict[int, bytes]:
    """Command lines of its children, by process number."""
    found = Path(f"/proc/{process.pid}/task").glob("*/children")
    numbers = [int(each) for file in found for each in file.read_text().split()]
    return {each: Path(f"/proc/{each}/cmdline").read_bytes() for each in numbers}


def test_a_second_ctrl_c_ends_all_at_once(tmp_path: Path) -> None:
    started = Started(tmp_path, "--brokers", 1, "--port", three_ports())
    children: dict[int, bytes] = {}
    try:
        started.until("OTTLA_BOOTSTRAP")
        children = children_of(started.process)
        assert len(children) == 2
        (ensemble,) = (each for each, words in children.items() if b"QuorumPeerMain" in words)
        # A broker that leaves without an ensemble takes its time.
        os.kill(ensemble, signal.SIGSTOP)
        started.process.send_signal(signal.SIGINT)
        started.until("Press Ctrl-C again to kill all processes at once")
        assert started.interrupt() == INTERRUPTED, started.shown()
        assert started.shown().endswith("Killed all processes.\n")
        assert not any(Path(f"/proc/{each}").exists() for each in children)
    finally:
        if started.process.poll() is None:
            for each in (*children, started.process.pid):
                os.kill(each, signal.SIGKILL)
            started.process.wait(WITHIN_S)
