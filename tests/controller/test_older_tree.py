"""What must not go back with an older tree."""

from __future__ import annotations

from typing import Any

from ottla.controller.image import ClusterImage
from ottla.controller.older_tree import SKIPPED_PRODUCER_IDS, make_up
from ottla.controller.producer_ids import reserve_producer_ids


def test_epochs_are_above_those_of_the_logs_and_no_producer_id_is_given_twice(world: Any) -> None:
    world.topic("t", "1@4 1 | 1", "1@4 1 | 1", "1@4 1 | 1")
    assert world.do(reserve_producer_ids(world.image, 1)) is not None
    first = world.image.next_producer_id
    raised = world.do(make_up(world.image, 1, {("t", 0): 9, ("t", 1): 4, ("t", 2): -1}))
    assert raised == 1
    assert world.show() == ["1@10 1 | 1", "1@4 1 | 1", "1@4 1 | 1"]
    assert world.image.next_producer_id == first + SKIPPED_PRODUCER_IDS


def test_a_tree_without_producer_ids_gets_them(image: ClusterImage) -> None:
    plan = make_up(image, 1, {})
    for delta in plan.deltas:
        image.apply(delta)
    assert plan.reply == 0
    assert image.next_producer_id == SKIPPED_PRODUCER_IDS
