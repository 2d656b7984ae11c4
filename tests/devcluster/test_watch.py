"""What a running cluster does when it is asked, and when a process exits by itself."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.devcluster.reports import Reports

from ottla.devcluster.layout import Layout
from ottla.devcluster.requests import Request
from ottla.devcluster.watch import ClusterWatch
from ottla.testing.errors import KitError


class Broker(SimpleNamespace):
    """A broker process; a killed one has returned -9."""

    def said(self) -> str:
        return "its last words\n"


class FakeCluster:
    """Brokers 1 and 2; every call is noted."""

    def __init__(self, data: Path) -> None:
        self.data = data
        self.calls: list[tuple[str, Any]] = []
        self.zookeeper_is_running = True
        self.fails = False
        self.brokers = {number: self.broker(number) for number in (1, 2)}

    def broker(self, number: int) -> Broker:
        process = SimpleNamespace(returncode=-9)
        return Broker(running=True, bootstrap=f"h:{number}", process=process, errors="its log")

    def __getattr__(self, name: str) -> Any:
        def call(number: int, *more: object) -> None:
            if self.fails:
                raise KitError("broker 1 was not ready within 60 s:\n  why\n  in the end")
            self.calls.append((name, number))
            if name in ("kill", "stop", "start"):
                self.brokers[number].running = name == "start"

        return call

    def add(self, port: int, rack: str | None) -> int:
        self.calls.append(("add", (port, rack)))
        self.brokers[3] = self.broker(3)
        return 3


@pytest.fixture
def cluster(tmp_path: Path) -> FakeCluster:
    return FakeCluster(tmp_path)


def watch_of(cluster: Any, *racks: str, reports: Reports | None = None) -> ClusterWatch:
    requests: Any = SimpleNamespace()
    return ClusterWatch(cluster, Layout(2, 100, 99, racks), requests, reports or Reports())


@pytest.mark.parametrize(
    ("command", "calls", "state"),
    [
        ("kill", [("kill", 1)], "killed"),
        ("stop", [("resume", 1), ("stop", 1)], "stopped"),
        ("pause", [("pause", 1)], "paused"),
        ("resume", [("resume", 1)], "running"),
        ("restart", [("resume", 1), ("stop", 1), ("start", 1)], "running"),
    ],
)
def test_each_command(cluster: FakeCluster, command: str, calls: list[Any], state: str) -> None:
    answer = watch_of(cluster).answer(Request(command, 1))
    assert (answer["broker"], answer["state"]) == (1, state)
    assert cluster.calls == calls


def test_a_broker_that_is_down_can_only_be_restarted(cluster: FakeCluster) -> None:
    watch = watch_of(cluster)
    watch.answer(Request("kill", 1))
    for command in ("kill", "stop", "pause", "resume"):
        refusal = watch.answer(Request(command, 1))
        assert refusal["failed"] == "broker 1 is not running."
        assert "ottla cluster restart 1" in refusal["hint"]
    assert watch.answer(Request("restart", 1))["address"] == "h:1"
    assert cluster.calls[1:] == [("start", 1)]


def test_an_unknown_broker_and_a_failing_one(cluster: FakeCluster) -> None:
    watch = watch_of(cluster)
    refusal = watch.answer(Request("kill", 7))
    assert refusal["failed"] == "there is no broker 7; this cluster has 1, 2."
    cluster.fails = True
    refusal = watch.answer(Request("restart", 1))
    assert refusal == {"failed": "broker 1 was not ready within 60 s.", "hint": "in the end"}


def test_only_an_exit_that_nobody_asked_for_is_reported(cluster: FakeCluster) -> None:
    reports = Reports()
    watch = watch_of(cluster, reports=reports)
    watch.answer(Request("kill", 1))
    cluster.brokers[2].running = False
    cluster.zookeeper_is_running = False
    assert reports.notes == ["broker 1: killed, as asked"]
    watch.look()
    watch.look()
    assert reports.notes[1:] == [
        "broker 2 exited unexpectedly: signal SIGKILL, after 'its last words' (log: its log)",
        "ZooKeeper exited unexpectedly. Brokers continue to serve, but the cluster cannot change.",
    ]


def test_an_added_broker_is_in_the_layout(
    cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("ottla.devcluster.watch.claim", lambda port: (tmp_path / "claim").open("w"))
    watch = watch_of(cluster, "a", "b")
    refusal = watch.answer(Request("add"))
    assert "--rack a" in refusal["hint"]
    assert watch.answer(Request("add", rack="b"))["broker"] == 3
    assert cluster.calls == [("add", (102, "b"))]
    layout = json.loads((tmp_path / "cluster.json").read_text())
    assert (layout["brokers"], layout["racks"]) == (3, ["a", "b", "b"])
    monkeypatch.setattr("ottla.devcluster.watch.claim", lambda port: None)
    refusal = watch.answer(Request("add", rack="b"))
    assert refusal["failed"] == "port 103, for broker 4, is in use."
    assert "leave out --rack" in watch_of(cluster).answer(Request("add", rack="b"))["failed"]
