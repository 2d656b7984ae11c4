"""What is looked at before a cluster starts, how the start is told, and its stop."""

from __future__ import annotations

import signal
import socket
from pathlib import Path

import pytest

from ottla.cli import cluster_start
from ottla.cli.cluster_layout import Layout
from ottla.cli.cluster_start import (
    check_settings,
    check_zookeeper,
    interrupted_by_signals,
    run_cluster,
)
from ottla.cli.failures import EXIT_FAILED, EXIT_INTERRUPTED, Failed, UsageFailed
from ottla.testing.errors import KitError
from ottla.testing.ports import HOST


def test_invalid_settings_are_rejected_before_the_start() -> None:
    check_settings({"num.partitions": "3"})
    with pytest.raises(UsageFailed, match=r"--config: .*num\.partitions"):
        check_settings({"num.partitions": "few"})
    with pytest.raises(UsageFailed, match=r"num\.partition\b"):
        check_settings({"num.partition": "3"})
    with pytest.raises(UsageFailed, match=r"--config node\.id cannot be the same"):
        check_settings({"node.id": "3", "num.partitions": "3"})


@pytest.mark.parametrize("given", ["nowhere", "h:0", "h:99999", ":::", "h,", ":2181", "/kafka"])
def test_an_invalid_ensemble_address(given: str) -> None:
    with pytest.raises(UsageFailed, match="--zookeeper must be HOST:PORT"):
        check_zookeeper(given)


def test_an_unreachable_ensemble() -> None:
    with socket.create_server((HOST, 0)) as server:
        port = server.getsockname()[1]
        check_zookeeper(f"{HOST}:{port}/kafka")
    with pytest.raises(Failed, match=f"cannot reach ZooKeeper at {HOST}:{port}: connection"):
        check_zookeeper(f"{HOST}:{port}")
    with pytest.raises(Failed, match=r"unknown host 'nobody\.invalid'"):
        check_zookeeper("nobody.invalid:2181/kafka")


def test_without_zookeepers_jars_nothing_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("ottla.testing.zookeeper_jars.find_spec", lambda name: None)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("OTTLA_MAVEN", "http://127.0.0.1:1")
    with pytest.raises(Failed, match=r"cannot download ZooKeeper .*OTTLA_MAVEN=URL"):
        run_cluster(1, None, tmp_path / "data", None, None, {})
    assert "Downloading ZooKeeper" in capsys.readouterr().err
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_end_it_as_ctrl_c_does(number: signal.Signals) -> None:
    before = signal.signal(number, signal.SIG_DFL)
    try:
        with pytest.raises(KeyboardInterrupt), interrupted_by_signals():
            signal.raise_signal(number)
        assert signal.getsignal(number) == signal.SIG_DFL
    finally:
        signal.signal(number, before)


def test_with_nohup_it_survives_the_terminal() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with interrupted_by_signals():
            signal.raise_signal(signal.SIGHUP)
            assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


class Starting:
    """A cluster whose brokers are ready when asked for the second time."""

    def __init__(self, data: Path) -> None:
        self.data = data
        self.asked = 0
        self.brokers = {1: self}
        self.zookeeper = self.bootstrap = "h:1"
        self.errors = data / "broker-1.stderr"

    def prepare(self) -> None:
        pass

    def launch(self, number: int) -> None:
        assert number == 1

    def is_ready(self) -> bool:
        self.asked += 1
        return self.asked == 2

    def create_internal_topics(self) -> None:
        pass


def test_a_slow_start_prints_one_notice_with_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(cluster_start, "SLOW_START_S", -1)
    starting = Starting(tmp_path)
    cluster_start.start(starting, Layout(1, 1, 2), None)  # type: ignore[arg-type]
    shown = capsys.readouterr()
    assert shown.err == f"Still starting: brokers 1. Logs: {starting.errors}\n"
    assert "Ready." in shown.out


class Running:
    """A broker that runs; its stop ends as `how` says."""

    def __init__(self, stops: list[int], number: int, how: int | BaseException) -> None:
        self.running = True
        self._stops, self._number, self._how = stops, number, how

    def resume(self) -> None:
        assert self.running

    def stop(self) -> int:
        self._stops.append(self._number)
        if isinstance(self._how, BaseException):
            raise self._how
        self.running = False
        return self._how


class RunningBrokers:
    """A cluster up to its stop."""

    def __init__(self, *how: int | BaseException) -> None:
        self.stops: list[int] = []
        """Brokers that were asked to stop, and 0 for all that is left then."""
        self.brokers = {
            number: Running(self.stops, number, each) for number, each in enumerate(how, 1)
        }

    def close(self) -> None:
        self.stops.append(0)


def stopped(cluster: RunningBrokers) -> int:
    return cluster_start.stop(cluster)  # type: ignore[arg-type]


def test_brokers_stop_in_turn_and_an_unexpected_exit_is_reported(
    capsys: pytest.CaptureFixture[str],
) -> None:
    cluster = RunningBrokers(0, 3, 0)
    cluster.brokers[1].running = False
    assert stopped(cluster) == EXIT_INTERRUPTED
    assert cluster.stops == [3, 2, 0]
    assert capsys.readouterr().err.splitlines() == [
        "Stopping. Press Ctrl-C again to kill all processes at once.",
        "broker 3 stopped",
        "broker 2 stopped with exit code 3",
        "Stopped.",
    ]


def test_a_second_ctrl_c_does_not_wait(capsys: pytest.CaptureFixture[str]) -> None:
    cluster = RunningBrokers(0, KeyboardInterrupt(), 0)
    assert stopped(cluster) == EXIT_INTERRUPTED
    assert cluster.stops == [3, 2]
    assert capsys.readouterr().err.splitlines()[-1] == "Killed all processes."


def test_a_broker_that_does_not_stop_is_reported_in_one_line(
    capsys: pytest.CaptureFixture[str],
) -> None:
    cluster = RunningBrokers(0, KitError("broker 2 did not stop within 30 s:\n  its log\n  more"))
    assert stopped(cluster) == EXIT_FAILED
    assert capsys.readouterr().err.splitlines()[-1] == "broker 2 did not stop within 30 s:"
