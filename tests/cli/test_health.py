"""What a cluster's state means for its health."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from ottla.cli import health
from ottla.cli.app import carry_out

WELL: dict[str, Any] = {
    "controller": 1,
    "controller_answers": True,
    "brokers": [{"id": 1, "live": True, "replicas": 3}, {"id": 2, "live": True, "replicas": 3}],
    "partitions": 3,
    "offline": [],
    "under_min_isr": [],
    "under_replicated": [],
}
HANGS: dict[str, Any] = {"topic": "t", "partition": 0}


def place(number: int, leader: int | None = 1) -> dict[str, Any]:
    return {"topic": "t", "partition": number, "leader": leader}


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
        {"brokers": [WELL["brokers"][0], {"id": 2, "live": False, "replicas": 3}]},
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
    monkeypatch.setattr(health, "cluster_document", lambda _: WELL | change)
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
