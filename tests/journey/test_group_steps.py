"""A few steps tell of an offset what all of them tell."""

from hypothesis import given
from hypothesis import strategies as st

from ottla.journey.facts import Position
from ottla.journey.group_reads import group_reads
from ottla.journey.group_steps import MAX_STEPS_TOLD, about, in_order
from ottla.timelines.partition_timeline import PartitionTimeline
from ottla.timelines.step import Before, By, Kind, Step


@given(
    st.lists(
        st.tuples(
            st.sampled_from("gh"),
            st.integers(-1, 20),
            st.integers(1, 300),
            st.sampled_from(list(By)),
        ),
        max_size=40,
    ),
    st.integers(0, 20),
)
def test_reads_are_the_same(commits: list[tuple[str, int, int, By]], offset: int) -> None:
    timeline = PartitionTimeline(
        start_offset=0, end_offset=20, high_watermark=20, now_ms=0, dirty={}
    )
    now_ms = 0
    positions: dict[str, Position] = {}
    for group, position, pause_ms, by in commits:
        now_ms += pause_ms
        before = Before(positions[group].offset if group in positions else -1, "")
        if position < 0:
            positions.pop(group, None)
            timeline.forgotten(group, now_ms, "OffsetDelete", before)
            continue
        timeline.committed(group, position, None, now_ms, before, by)
        positions[group] = Position(position, "", committed_ms=now_ms)
    steps = timeline.take(now_ms, all_of_them=True)
    some = about(steps, offset)
    assert group_reads(some, offset, positions) == group_reads(steps, offset, positions)
    assert [step for step in steps if step in some] == some


def test_a_group_that_commits_often_has_few() -> None:
    steps = [Step(Kind.GROUP, "g", at, at, at, at + 1, at + 1) for at in range(10_000)]
    assert [step.first for step in about(steps, 5000)] == [1, 5000, 5001]


def test_they_are_limited() -> None:
    name = ("p", "q", "/t")
    steps = [Step(Kind.DELIVERED, name, at, at, at, at + 1, at + 1) for at in range(10_000)]
    assert len(about(steps, 0)) <= MAX_STEPS_TOLD


def test_steps_of_one_millisecond_follow_each_other() -> None:
    passed = Step(Kind.GROUP, "g", 10, 10, 3, 23, 23)
    back = Step(Kind.SET_BACK, "g", 20, 20, 2, 2, 23)
    gone = Step(Kind.FORGOTTEN, ("g", "OffsetDelete"), 20, 20, 0, 0, 2)
    assert in_order([gone, passed, back]) == [passed, back, gone]
    assert in_order([back, gone]) == [back, gone]
    assert in_order([]) == []
