"""What a cluster's state means for its health."""

from __future__ import annotations

import json
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from ottla.cli import health
from ottla.cli.app import carry_out
from ottla.cli.cluster.description import BrokerState, Description, PartitionState

WELL = Description(
    cluster_id="x",
    controller=1,
    controller_epoch=4,
    controller_answers=True,
    brokers=[BrokerState(n, f"h:{n}", "h", n, None, True, 3, 3, 3, "") for n in (1, 2)],
    topics=1,
    partitions=3,
    offline=[],
    under_min_isr=[],
    under_replicated=[],
)
HANGS: dict[str, Any] = {"topic": "t", "partition": 0}


def place(number: int, leader: int | None = 1) -> PartitionState:
    return PartitionState("t", number, leader, [1, 2], [1], 2)


CASES = [
    ({}, "healthy", []),
    ({"controller": None}, "broken", ["there is no controller"]),
    (
        {"controller_answers": False},
        "broken",
        ["the controller, broker 1, does not respond"],
    ),
    (
        {
            "offline": [place(0, None)],
            "under_min_isr": [place(0, None), place(1)],
            "under_replicated": [place(0, None), place(1), place(2)],
        },
        "broken",
        [
            "1 partition without a leader",
            "1 partition under min.insync.replicas reject acks=all",
            "1 partition with fewer replicas in sync than assigned",
        ],
    ),
    (
        {"brokers": [WELL.brokers[0], replace(WELL.brokers[1], live=False)]},
        "degraded",
        ["broker 2 is down and holds 3 replicas"],
    ),
    ({"controller_answers": None}, "healthy", []),
    ({"hanging": None}, "healthy", []),
    (
        {"hanging": [HANGS]},
        "degraded",
        ["1 transaction hanging: read_committed consumers and compaction stop before it"],
    ),
]


@pytest.mark.parametrize(("change", "state", "problems"), CASES)
def test_the_state_and_the_exit_code(
    change: dict[str, Any],
    state: str,
    problems: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    cluster = SimpleNamespace(connection=None)
    described = {name: value for name, value in change.items() if name != "hanging"}
    monkeypatch.setattr(health, "description_of", lambda _: replace(WELL, **described))
    monkeypatch.setattr(health, "hanging_transactions", lambda _: change.get("hanging", []))
    code = carry_out(["health"], cluster)
    shown = capsys.readouterr()
    assert ("ottla transaction hanging" in shown.err) == bool(change.get("hanging"))
    first, *rest = shown.out.splitlines()
    assert first.startswith(f"{state}: ")
    assert [line.strip() for line in rest] == problems
    assert code == (0 if state == "healthy" else 1)
    assert carry_out(["health", "--allow-degraded", "--json"], cluster) == (
        1 if state == "broken" else 0
    )
    document = json.loads(capsys.readouterr().out)
    assert document["state"] == state
    assert document["broken"] + document["degraded"] == problems
