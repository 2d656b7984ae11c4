"""Which replicas partitions have, which ones change, and waiting for the end of the moves."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from tests.client.answers import moving
from tests.client.fake_cluster import FakeCluster

from ottla.cli.cluster.moves import show_moves, wait_moved
from ottla.cli.failures import Failed
from ottla.client.admin.reassignments import (
    LIST_PARTITION_REASSIGNMENTS,
    Move,
    Reassignment,
    current_assignments,
    moves_between,
)
from ottla.client.topic_partition import TopicPartition


def test_replicas_that_are_leaving_already_do_not_count() -> None:
    brokers = FakeCluster()
    brokers.leaders = {("flights", 0): 2, ("flights", 1): 2}
    brokers.replicas = {("flights", 0): (1, 2, 3), ("flights", 1): (2, 3)}
    under_way = {TopicPartition("flights", 0): Reassignment((1, 2, 3), (), (1,))}
    assert current_assignments(brokers.client(), under_way) == {"flights": [[2, 3], [2, 3]]}


def test_only_what_changes_is_a_move() -> None:
    moves = moves_between({"t": [[1, 2], [2, 1]]}, {"t": {1: (2, 1), 0: (3, 2)}})
    assert moves == [Move("t", 0, [1, 2], [3, 2])]
    assert moves[0].added == {3}


def test_a_long_plan_shows_its_beginning(capsys: pytest.CaptureFixture[str]) -> None:
    moves = [Move("t", n, [1], [2]) for n in range(60)]
    show_moves(moves)
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split() == ["t", "0", "1", "2"]
    assert len(lines) == 1 + 50 + 1
    assert lines[-1] == "10 more. To see all: --dry-run --json"


def wait(*under_way: list[tuple[str, int]], **options: Any) -> FakeCluster:
    """`under_way`: what moves at each look; the last stays."""
    move = Reassignment((1, 2), (2,), (1,))

    def look(places: list[tuple[str, int]]) -> dict[tuple[str, int], Reassignment]:
        return dict.fromkeys(places, move)

    looks = [moving(partial(look, each)) for each in under_way]
    cluster = FakeCluster({LIST_PARTITION_REASSIGNMENTS: looks})
    wait_moved(
        cluster.client(),
        [TopicPartition("t", 0), TopicPartition("t", 1)],
        title="Moving",
        watch_hint="Look there.",
        quiet=True,
        **options,
    )
    return cluster


def test_waits_for_these_partitions_only() -> None:
    cluster = wait([("t", 0), ("u", 0)], [("t", 1)], [("u", 0)], timeout_s=60)
    assert len(cluster.requests(LIST_PARTITION_REASSIGNMENTS)) == 3


def test_a_move_that_takes_too_long_goes_on_by_itself() -> None:
    with pytest.raises(Failed, match="1 partition of 2 still moving after -1 s") as raised:
        wait([("t", 1)], timeout_s=-1)
    assert raised.value.hint == "Look there."
