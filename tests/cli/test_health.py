"""What a cluster's state means for its health."""

from __future__ import annotations

import json
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from tests.client.answers import configs, described, epoch
from tests.client.fake_cluster import FakeCluster, closing

from ottla.cli.app import carry_out
from ottla.cli.health import show_health
from ottla.client.admin.cluster import (
    DESCRIBE_CLUSTER,
    DESCRIBE_QUORUM,
    BrokerState,
    ClusterState,
    PartitionState,
)
from ottla.client.admin.configs import DESCRIBE_CONFIGS
from ottla.client.admin.health import judged
from ottla.client.admin.transactions import DESCRIBE_PRODUCERS

WELL = ClusterState(
    cluster_id="x",
    controller=1,
    controller_epoch=4,
    controller_answers=True,
    brokers=[BrokerState(n, "h", n, None, True, 3, 3, 3) for n in (1, 2)],
    topics=1,
    partitions=3,
    offline=[],
    under_min_isr=[],
    under_replicated=[],
)
HANGS: dict[str, Any] = {"topic": "t", "partition": 0}


def partition(number: int, leader: int | None = 1) -> PartitionState:
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
            "offline": [partition(0, None)],
            "under_min_isr": [partition(0, None), partition(1)],
            "under_replicated": [partition(0, None), partition(1), partition(2)],
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
    ({"hanging": None}, "healthy", []),
    ({"days_left": {1: 29, 2: 30}}, "degraded", ["the certificate of broker 1 expires in 29 days"]),
    (
        {"hanging": [HANGS]},
        "degraded",
        ["1 transaction hanging: read_committed consumers and compaction stop before it"],
    ),
]


@pytest.mark.parametrize(("change", "state", "problems"), CASES)
def test_the_state_and_what_is_wrong(
    change: dict[str, Any],
    state: str,
    problems: list[str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    others = ("hanging", "days_left")
    described = {name: value for name, value in change.items() if name not in others}
    hanging, days_left = change.get("hanging", []), change.get("days_left")
    found = judged(replace(WELL, **described), hanging, days_left)
    show_health(found)
    shown = capsys.readouterr()
    assert ("ottla transaction hanging" in shown.err) == bool(change.get("hanging"))
    first, *rest = shown.out.splitlines()
    assert first.startswith(f"{state}: ")
    assert [line.strip() for line in rest] == problems
    assert found.state == state
    assert found.broken + found.degraded == problems


@pytest.mark.parametrize(
    ("other", "commands"),
    [([], "group describe"), (["x"], "cluster describe and ottla group describe")],
)
def test_where_to_see_what_groups_lose(
    other: list[str], commands: str, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = [*other, "group g: 2 unread records of t-0 go in 1 h", "group g: 1 of t-1 goes now"]
    show_health(replace(judged(WELL, []), broken=broken, losing_groups=["g"]))
    assert capsys.readouterr().err == f"To see which: ottla {commands}\n"


@pytest.mark.parametrize(
    ("in_sync", "leader", "state", "code", "code_if_allowed"),
    [
        ((1, 2), 1, "healthy", 0, 0),
        ((1,), 1, "degraded", 1, 0),
        ((1,), -1, "broken", 1, 1),
    ],
)
def test_the_exit_code(
    in_sync: tuple[int, ...],
    leader: int,
    state: str,
    code: int,
    code_if_allowed: int,
    capsys: pytest.CaptureFixture[str],
) -> None:
    fake = FakeCluster(
        {
            DESCRIBE_CLUSTER: [described(1)],
            DESCRIBE_QUORUM: [epoch(4)],
            DESCRIBE_CONFIGS: [configs({})],
            DESCRIBE_PRODUCERS: [closing],
        }
    )
    fake.leaders = {("t", 0): leader}
    fake.in_sync = {("t", 0): in_sync}
    cluster = SimpleNamespace(client=fake.client())
    assert carry_out(["health"], cluster) == code
    assert capsys.readouterr().out.startswith(f"{state}: ")
    assert carry_out(["health", "--allow-degraded", "--json"], cluster) == code_if_allowed
    assert json.loads(capsys.readouterr().out)["state"] == state
