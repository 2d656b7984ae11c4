"""What is checked before a cluster starts, what its start reports, and its stop."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
from tests.devcluster.reports import Reports

from ottla.devcluster import supervisor
from ottla.devcluster.errors import DevClusterError, OptionError
from ottla.devcluster.layout import Layout
from ottla.devcluster.supervisor import check_settings, check_zookeeper, run_cluster
from ottla.security.development.secure_folder import OwnSettingError
from ottla.testing.errors import KitError
from ottla.testing.ports import HOST


def test_invalid_settings_are_rejected_before_the_start() -> None:
    check_settings({"num.partitions": "3"})
    with pytest.raises(OptionError, match=r"--config: .*num\.partitions"):
        check_settings({"num.partitions": "few"})
    with pytest.raises(OptionError, match=r"num\.partition\b"):
        check_settings({"num.partition": "3"})
    with pytest.raises(OptionError, match=r"--config node\.id cannot be the same"):
        check_settings({"node.id": "3", "num.partitions": "3"})


def test_what_secure_sets_itself_is_rejected_before_the_start(tmp_path: Path) -> None:
    data, given = tmp_path / "data", {"super.users": "User:me"}
    with pytest.raises(OwnSettingError, match=r"--secure sets super\.users itself"):
        run_cluster(1, None, data, None, None, given, Reports(), secure=True)
    assert not data.exists()


@pytest.mark.parametrize("given", ["nowhere", "h:0", "h:99999", ":::", "h,", ":2181", "/kafka"])
def test_an_invalid_ensemble_address(given: str) -> None:
    with pytest.raises(OptionError, match="--zookeeper must be HOST:PORT"):
        check_zookeeper(given, Reports())


def test_an_unreachable_ensemble() -> None:
    with socket.create_server((HOST, 0)) as server:
        port = server.getsockname()[1]
        check_zookeeper(f"{HOST}:{port}/kafka", Reports())
    with pytest.raises(
        DevClusterError, match=f"cannot reach ZooKeeper at {HOST}:{port}: connection"
    ):
        check_zookeeper(f"{HOST}:{port}", Reports())
    with pytest.raises(DevClusterError, match=r"unknown host 'nobody\.invalid'"):
        check_zookeeper("nobody.invalid:2181/kafka", Reports())


def test_without_zookeepers_jars_nothing_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reports = Reports()
    monkeypatch.setattr("ottla.testing.zookeeper_jars.find_spec", lambda name: None)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("OTTLA_MAVEN", "http://127.0.0.1:1")
    with pytest.raises(DevClusterError, match=r"cannot download ZooKeeper .*OTTLA_MAVEN=URL"):
        run_cluster(1, None, tmp_path / "data", None, None, {}, reports)
    assert "Downloading ZooKeeper" in reports.notes[0]
    assert not (tmp_path / "data").exists()


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


def test_a_slow_start_is_noted_once_with_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "SLOW_START_S", -1)
    starting, reports = Starting(tmp_path), Reports()
    supervisor.start(starting, Layout(1, 1, 2), None, None, reports)  # type: ignore[arg-type]
    assert reports.notes == [f"Still starting: brokers 1. Logs: {starting.errors}"]
    assert reports.up == ["ZooKeeper", "broker 1"]
    assert reports.ready


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


def stopped(cluster: RunningBrokers, reports: Reports) -> bool:
    return supervisor.stop(cluster, reports)  # type: ignore[arg-type]


def test_brokers_stop_in_turn_and_an_unexpected_exit_is_reported() -> None:
    cluster, reports = RunningBrokers(0, 3, 0), Reports()
    cluster.brokers[1].running = False
    assert stopped(cluster, reports)
    assert cluster.stops == [3, 2, 0]
    assert reports.notes == [
        "Stopping. Press Ctrl-C again to kill all processes at once.",
        "broker 3 stopped",
        "broker 2 stopped with exit code 3",
        "Stopped.",
    ]


def test_a_second_ctrl_c_does_not_wait() -> None:
    cluster, reports = RunningBrokers(0, KeyboardInterrupt(), 0), Reports()
    assert stopped(cluster, reports)
    assert cluster.stops == [3, 2]
    assert reports.notes[-1] == "Killed all processes."


def test_a_broker_that_does_not_stop_is_reported_in_one_line() -> None:
    error = KitError("broker 2 did not stop within 30 s:\n  its log\n  more")
    reports = Reports()
    assert not stopped(RunningBrokers(0, error), reports)
    assert reports.notes[-1] == "broker 2 did not stop within 30 s:"
