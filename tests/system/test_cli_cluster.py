"""`ottla cluster reassign`, `elect`, `throttle` and `log-dirs` on three brokers, as typed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.system.cluster_load import QUICK, create, wait_for
from tests.system.typed_command import typed

from ottla.testing import Cluster

pytestmark = pytest.mark.full


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with Cluster(3, QUICK, data=tmp_path_factory.mktemp("cluster")) as running:
        yield running


def run(cluster: Cluster, *words: object, data: bytes = b"", code: int = 0) -> str:
    return typed(cluster.bootstrap, *words, data=data, code=code)


def answer(cluster: Cluster, *words: object) -> Any:
    return json.loads(run(cluster, *words, "--json"))


def test_replicas_are_added_moved_and_dropped(cluster: Cluster, tmp_path: Path) -> None:
    a, b, c = cluster.brokers
    run(cluster, "topic", "create", "moved", "--assign", f"{a},{a}")
    run(cluster, "produce", "moved", data=b"one\ntwo\nthree\n")
    planned = answer(cluster, "cluster", "reassign", "moved", "-r", 3, "--dry-run")
    assert (planned["requested"], len(planned["moved"])) == (False, 2)
    assert cluster.state.replicas("moved") == {0: [a], 1: [a]}
    done = answer(cluster, "cluster", "reassign", "moved", "-r", 3, "-y")
    assert (done["done"], done["moved"]) == (True, planned["moved"])
    cluster.wait_in_sync("moved")
    assert {frozenset(each) for each in (cluster.state.replicas("moved") or {}).values()} == {
        frozenset((a, b, c))
    }
    file = tmp_path / "moves.json"
    file.write_text(
        json.dumps(
            {
                "version": 1,
                "partitions": [
                    {"topic": "moved", "partition": 0, "replicas": [b]},
                    {"topic": "moved", "partition": 1, "replicas": [c]},
                ],
            }
        )
    )
    run(cluster, "cluster", "reassign", "--file", file, "--yes")
    assert cluster.state.replicas("moved") == {0: [b], 1: [c]}
    assert sorted(run(cluster, "consume", "moved").split()) == ["one", "three", "two"]
    too_many = run(cluster, "cluster", "reassign", "moved", "-r", 4, "-y", code=1)
    assert "4 replicas need 4 brokers, but there are 3" in too_many
    assert "there is no live broker '99'" in run(
        cluster, "cluster", "reassign", "moved", "--brokers", 99, "-y", code=1
    )


def test_a_slow_move_is_listed_and_cancelled(cluster: Cluster) -> None:
    a, b, _ = cluster.brokers
    run(cluster, "topic", "create", "slow", "--assign", a)
    run(cluster, "produce", "slow", data=(b"x" * 999 + b"\n") * 8000)
    run(cluster, "cluster", "throttle", "slow", "--rate", "1kB")
    run(cluster, "cluster", "reassign", "slow", "--assign", b, "-y", "--no-wait")
    (listed,) = answer(cluster, "cluster", "reassign", "--list")
    assert (listed["topic"], listed["adding"], listed["removing"]) == ("slow", [b], [a])
    limited = answer(cluster, "cluster", "throttle", "--rate", "2kB")["topics"]
    assert limited == [
        {"topic": "slow", "leader_replicas": f"0:{a}", "follower_replicas": f"0:{b}"}
    ]
    said = run(cluster, "cluster", "reassign", "slow", "--cancel", "-y")
    assert "Cancelled the moves of 1 partition." in said
    assert answer(cluster, "cluster", "reassign", "--list") == []
    assert cluster.state.replicas("slow") == {0: [a]}
    run(cluster, "cluster", "throttle", "--off")


def test_limits_are_set_shown_and_removed(cluster: Cluster) -> None:
    create(cluster, "limited")
    shown = answer(cluster, "cluster", "throttle", "limited", "--rate", "10MB")
    assert {each["leader_rate"] for each in shown["brokers"]} == {10_000_000}
    assert shown["topics"] == [
        {"topic": "limited", "leader_replicas": "*", "follower_replicas": "*"}
    ]
    assert run(cluster, "cluster", "throttle", "--off") == "Replication is not limited.\n"
    after = answer(cluster, "cluster", "throttle")
    assert after["topics"] == []
    assert {each["follower_rate"] for each in after["brokers"]} == {None}


def test_leadership_goes_back_to_the_preferred_leader(cluster: Cluster) -> None:
    a, b, c = cluster.brokers
    run(cluster, "topic", "create", "led", "--assign", f"{a}:{b}:{c}")
    # With another order, the leader stays where it is.
    run(cluster, "cluster", "reassign", "led", "--assign", f"{b}:{c}:{a}", "-y")
    (planned,) = answer(cluster, "cluster", "elect", "led", "--dry-run")
    assert (planned["preferred"], planned["before"], planned["after"]) == (b, a, a)
    (elected,) = answer(cluster, "cluster", "elect", "led")
    assert (elected["after"], elected["error"]) == (b, None)
    wait_for("the election", lambda: cluster.leader("led") == b)
    assert answer(cluster, "cluster", "elect", "led") == []


def test_every_broker_says_what_it_stores(cluster: Cluster) -> None:
    a, b, _ = cluster.brokers
    run(cluster, "topic", "create", "stored", "--assign", f"{a}:{b}")
    run(cluster, "produce", "stored", data=b"0123456789\n" * 100)
    cluster.wait_in_sync("stored")
    folders = answer(cluster, "cluster", "log-dirs")
    assert [each["broker"] for each in folders] == sorted(cluster.brokers)
    assert all(each["total_bytes"] > each["usable_bytes"] > 0 for each in folders)
    of_topic = {
        each["broker"]: each["replicas"]
        for each in answer(cluster, "cluster", "log-dirs", "stored")
    }
    assert [len(of_topic[number]) for number in cluster.brokers] == [1, 1, 0]
    assert of_topic[a][0]["size_bytes"] > 1000
    assert "stored" in run(cluster, "cluster", "log-dirs", "--broker", a)
