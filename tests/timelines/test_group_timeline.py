"""What a coordinator records of a partition's groups: who committed, and after what."""

import json

import pytest

from ottla.timelines.group_timeline import GroupTimeline
from ottla.timelines.pending_steps import MAX_TRACKS, WINDOW_MS
from ottla.timelines.step import Before, By, Kind, Step

NOTHING = Before(-1, "")


@pytest.fixture
def timeline() -> GroupTimeline:
    return GroupTimeline({})


def all_steps(timeline: GroupTimeline) -> list[Step]:
    return timeline.take(10**9, all_of_them=True)


def told(batch: int, query_id: str = "") -> str:
    said = {"ottla.pipeline": 1, "query": "q", "batch": batch, "id": query_id}
    said["delta"] = {"table": "/t", "version": batch}
    said["rejects"] = {"kept": "k", "reasons": ["why"], "ranges": [[2, 3, 0]]}
    return json.dumps(said)


def test_a_first_commit_says_that_there_was_none_before(timeline: GroupTimeline) -> None:
    timeline.committed("g", 5, None, 2000, NOTHING, By.MEMBER)
    timeline.committed("g", 8, None, 3000, Before(5, ""), By.MEMBER)
    assert all_steps(timeline) == [
        Step(Kind.GROUP, "g", 2000, 2000, 5, 5, 5, True, by=By.MEMBER, is_first=True),
        Step(Kind.GROUP, "g", 3000, 3000, 5, 8, 8, by=By.MEMBER),
    ]


def test_commits_of_others_are_steps_of_their_own(timeline: GroupTimeline) -> None:
    timeline.committed("g", 5, None, 2000, Before(0, ""), By.MEMBER)
    timeline.committed("g", 6, None, 2001, Before(5, ""), By.MEMBER)
    timeline.committed("g", 9, None, 2002, Before(6, ""), By.OUTSIDE)
    timeline.committed("g", 2, None, 2003, Before(9, ""), By.OUTSIDE)
    assert [(step.kind, step.before, step.last, step.by) for step in all_steps(timeline)] == [
        (Kind.GROUP, 0, 6, By.MEMBER),
        (Kind.GROUP, 6, 9, By.OUTSIDE),
        (Kind.SET_BACK, 2, 9, By.OUTSIDE),
    ]


def test_what_another_coordinator_recorded_is_a_gap(timeline: GroupTimeline) -> None:
    """The group was coordinated here, elsewhere, and here again."""
    timeline.committed("g", 10, None, 2000, Before(0, ""), By.MEMBER)
    timeline.committed("g", 30, None, 2000 + WINDOW_MS // 2, Before(20, ""), By.MEMBER)
    timeline.committed("h", 10, None, 2060, Before(0, ""), By.MEMBER)
    timeline.committed("h", 8, None, 2070, Before(20, ""), By.MEMBER)
    assert [(step.name, step.kind, step.before, step.last) for step in all_steps(timeline)] == [
        ("g", Kind.GROUP, 0, 10),
        ("h", Kind.GROUP, 0, 10),
        ("h", Kind.SET_BACK, 8, 20),
        ("g", Kind.GROUP, 20, 30),
    ]


def test_a_reset_is_recorded_whatever_the_number_of_groups(timeline: GroupTimeline) -> None:
    for number in range(MAX_TRACKS + 2):
        timeline.committed(f"g{number}", 9, None, 2000, Before(4, ""), By.MEMBER)
    timeline.committed("g0", 2, None, 3000, Before(9, ""), By.OUTSIDE)
    back = Step(Kind.SET_BACK, "g0", 3000, 3000, 2, 2, 9, by=By.OUTSIDE)
    assert back in all_steps(timeline)


def test_a_group_that_is_deleted_begins_again(timeline: GroupTimeline) -> None:
    timeline.committed("g", 9, told(3), 2000, Before(4, told(2)), By.MEMBER)
    timeline.forgotten("g", 3000, "DeleteGroups", Before(9, told(3)))
    timeline.committed("g", 3, told(0), 4000, NOTHING, By.MEMBER)
    steps = [step for step in all_steps(timeline) if step.kind is not Kind.REJECTED]
    assert [step.kind for step in steps] == [
        *(Kind.DELIVERED, Kind.GROUP, Kind.FORGOTTEN, Kind.DELIVERED, Kind.GROUP)
    ]
    assert steps[2] == Step(Kind.FORGOTTEN, ("g", "DeleteGroups"), 3000, 3000, 0, 0, 9)
    assert (steps[3].unknown_before, steps[4].unknown_before, steps[4].is_first) == (True,) * 3


def test_what_had_no_offset_cannot_lose_it(timeline: GroupTimeline) -> None:
    timeline.forgotten("g", 3000, "DeleteGroups", NOTHING)
    timeline.forgotten("g" * 9_999, 3000, "DeleteGroups", Before(5, ""))
    assert all_steps(timeline) == []


def test_a_pipelines_last_commit_is_not_told_again(timeline: GroupTimeline) -> None:
    timeline.committed("g", 9, told(3), 2000, Before(9, told(3)), By.SIMPLE)
    assert all_steps(timeline) == []
    timeline.committed("g", 12, told(4), 2000, Before(9, told(3)), By.SIMPLE)
    delivered = next(step for step in all_steps(timeline) if step.kind is Kind.DELIVERED)
    assert (delivered.before, delivered.last, delivered.unknown_before) == (9, 12, False)
    timeline.committed("g", 14, told(5), 3000, Before(13, "a reset"), By.SIMPLE)
    delivered = next(step for step in all_steps(timeline) if step.kind is Kind.DELIVERED)
    assert (delivered.before, delivered.last) == (12, 14)


def test_without_a_replica_no_log_end_limits_a_commit(timeline: GroupTimeline) -> None:
    timeline.committed("g", 2**40, None, 2000, NOTHING, By.MEMBER)
    assert [step.last for step in all_steps(timeline)] == [2**40]


def deliveries(timeline: GroupTimeline) -> list[Step]:
    return [step for step in all_steps(timeline) if step.kind is Kind.DELIVERED]


@pytest.mark.parametrize(("query_id", "other"), [("one", "two"), ("", "")])
def test_a_new_checkpoint_may_begin_anywhere(
    timeline: GroupTimeline, query_id: str, other: str
) -> None:
    timeline.committed("g", 9, told(3, query_id), 2000, Before(4, told(2, query_id)), By.SIMPLE)
    timeline.committed("g", 20, told(1, other), 3000, Before(9, told(3, query_id)), By.SIMPLE)
    timeline.committed("g", 30, told(2, other), 4000, Before(20, told(1, other)), By.SIMPLE)
    found = deliveries(timeline)
    assert [(step.before, step.unknown_before) for step in found] == [
        (4, False),
        (20, True),
        (20, False),
    ]
    assert (found[0].checkpoint != found[1].checkpoint) is bool(query_id)
    assert found[1].checkpoint == found[2].checkpoint


def test_batches_of_which_nothing_was_committed_are_in_the_next_step(
    timeline: GroupTimeline,
) -> None:
    timeline.committed("g", 9, told(3, "one"), 2000, Before(4, told(2, "one")), By.SIMPLE)
    timeline.committed("g", 20, told(6, "one"), 3000, Before(9, told(3, "one")), By.SIMPLE)
    assert [step.versions for step in deliveries(timeline)] == [(3, 3, 3, 3), (4, 6, 4, 6)]
