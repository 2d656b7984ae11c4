"""Whether a group can be moved over."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.client.topic_partition import TopicPartition
from ottla.mirroring.switch_plan import SwitchPlan, plan_switch
from ottla.mirroring.topic_plan import SourceTopic, TopicPlan

T, U = TopicPartition("t", 0), TopicPartition("u", 0)
THERE = TopicPartition("p.t", 0)


def planned(commits: dict[TopicPartition, int], **changes: Any) -> SwitchPlan:
    plan = TopicPlan(
        mirrored={"p.t": SourceTopic("t", "id", 1)},
        refused={"r": "it goes in a circle."},
        deleted=["p.d"],
    )
    known: dict[str, Any] = {
        "ends": {T: 20},
        "out": set(),
        "positions": {THERE: 15},
        **changes,
    }
    return plan_switch(commits, plan=plan, prefix="p.", **known)


def test_a_group_whose_records_are_all_mirrored() -> None:
    assert planned({T: 15}) == SwitchPlan(None, {}, [])


def test_a_group_that_has_read_on() -> None:
    assert planned({T: 16}).behind == {THERE: 16}
    assert planned({T: 0}, positions={}).behind == {THERE: 0}, "not begun"


@pytest.mark.parametrize(
    ("commits", "changes", "words"),
    [
        ({T: 15}, {"out": {"p.t"}}, "topic t is not mirrored on."),
        ({T: 22}, {}, "its offset in t-0, 22, is past the end of the source's log, 20."),
        ({TopicPartition("r", 0): 1, T: 1}, {}, "topic r is not mirrored: it goes in a circle."),
        ({TopicPartition("d", 0): 1, T: 1}, {}, "the source has no topic d any more."),
        ({U: 1}, {}, "it has no offsets in topics of this mirror."),
        ({}, {}, "it has no offsets in topics of this mirror."),
    ],
)
def test_refused(commits: dict[TopicPartition, int], changes: dict[str, Any], words: str) -> None:
    assert planned(commits, **changes).refused == words


def test_topics_that_are_not_meant_are_left_aside() -> None:
    assert planned({T: 15, U: 3}) == SwitchPlan(None, {}, ["u"])
