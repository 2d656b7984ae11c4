"""What is wrong comes first, in words with what to do."""

from __future__ import annotations

from tests.console.served_console import Visitor

from ottla.client.admin.cluster import PartitionState
from ottla.client.admin.health import Problem
from ottla.console.pages.overview import MAX_LINKS, shown


def test_a_healthy_broker(visitor: Visitor) -> None:
    words = visitor.get("/").words
    assert "Everything works" in words
    assert "Controller 1 epoch" in words


def test_a_problem_names_the_first_partitions() -> None:
    bad = tuple(PartitionState("t", number, None, [1], [], 1) for number in range(MAX_LINKS + 5))
    found = shown(Problem("17 partitions without a leader", "Start it.", True, bad))
    assert found.links[0] == ("t-0", "/topics/t/partitions")
    assert len(found.links) == MAX_LINKS
    assert found.more == 5
