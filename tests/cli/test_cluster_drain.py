"""What a drain requests and prints."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from ottla.cli import cluster_drain, cluster_moves
from ottla.cli.cluster_drain import drain_broker, show_drained
from ottla.cli.failures import Failed


def test_moves_are_counted_by_target(capsys: pytest.CaptureFixture[str]) -> None:
    moved = [
        {"topic": "a", "partition": 0, "from": [1, 2], "to": [3, 2]},
        {"topic": "a", "partition": 1, "from": [1, 3], "to": [2, 3]},
        {"topic": "b", "partition": 0, "from": [2, 1], "to": [2, 3]},
    ]
    show_drained({"broker": 1, "done": True, "moved": moved})
    shown = capsys.readouterr()
    lines = shown.out.splitlines()
    assert lines[0] == "Moved 3 replicas of 2 topics off broker 1:"
    assert [line.split() for line in lines[2:]] == [["2", "1"], ["3", "2"]]
    assert "holds no replicas now" in shown.err


def test_an_empty_broker_has_nothing_to_move(capsys: pytest.CaptureFixture[str]) -> None:
    show_drained({"broker": 7, "done": True, "moved": []})
    assert capsys.readouterr().out == "Broker 7 holds no replicas.\n"


def connection_of_three_brokers() -> Any:
    """A topic on brokers 1 and 2 of three."""
    partitions = {0: SimpleNamespace(replicas=[1, 2])}
    nodes = [SimpleNamespace(id=number, rack=None) for number in (1, 2, 3)]
    return SimpleNamespace(
        bootstrap="h:1",
        settings={},
        answer_timeout_s=1.0,
        admin=SimpleNamespace(describe_cluster=lambda request_timeout: None),
        wait=lambda future, doing: SimpleNamespace(nodes=nodes),
        topics=lambda: {"flights": SimpleNamespace(partitions=partitions)},
    )


def test_ctrl_c_leaves_the_moves_running_and_prints_that(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[Any] = []
    moving = SimpleNamespace(removing_replicas=())
    monkeypatch.setattr(cluster_drain, "reassign", lambda _, targets, __: asked.append(targets))
    for module in (cluster_drain, cluster_moves):
        monkeypatch.setattr(module, "reassignments", lambda *_: {("flights", 0): moving})

    def interrupted(seconds: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("time.sleep", interrupted)
    with pytest.raises(KeyboardInterrupt):
        drain_broker(connection_of_three_brokers(), 1, dry_run=False, quiet=False, timeout_s=5)
    assert asked == [{"flights": {0: (3, 2)}}]
    assert "The brokers continue the move" in capsys.readouterr().err


def test_an_unknown_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_drain, "reassignments", lambda *_: {})
    with pytest.raises(Failed, match="there is no broker '7'"):
        drain_broker(connection_of_three_brokers(), 7, dry_run=True, quiet=False, timeout_s=5)


def test_a_drain_that_cannot_end_moves_nothing_and_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cluster_drain, "reassignments", lambda *_: {})
    monkeypatch.setattr(cluster_drain, "reassign", lambda *_: pytest.fail("moved"))
    connection = connection_of_three_brokers()
    connection.topics().clear()
    partitions = {0: SimpleNamespace(replicas=[1, 2, 3])}
    connection.topics = lambda: {"__consumer_offsets": SimpleNamespace(partitions=partitions)}
    with pytest.raises(Failed, match=r"__consumer_offsets \(1\) have replicas on every") as caught:
        drain_broker(connection, 1, dry_run=False, quiet=False, timeout_s=5)
    assert "ottla cluster add" in str(caught.value.hint)
