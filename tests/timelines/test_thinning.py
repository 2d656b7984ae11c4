"""Coalescing keeps what is recent, and makes bounds of what is old, never something false."""

from hypothesis import given
from hypothesis import strategies as st

from ottla.journey.group_reads import group_reads
from ottla.journey.offset_history import appended, deliveries
from ottla.timelines.step import Kind, Name, Step, Versions
from ottla.timelines.thinning import thin


def end(at: int, client: str = "a") -> Step:
    return Step(Kind.END, ((-1, client),), at * 100, at * 100 + 9, at, at + 1, at + 1)


def test_few_steps_stay_as_they_are() -> None:
    steps = [end(at) for at in range(8)]
    assert thin(steps, 8) == steps


def test_old_steps_are_joined_and_recent_ones_stay() -> None:
    steps = [end(at) for at in range(16)]
    left = thin(steps, 10)
    assert len(left) == 10
    assert left[-4:] == steps[-4:]
    assert left[0] == Step(Kind.END, ((-1, "a"),), 0, 109, 0, 1, 2)


@given(st.integers(1, 60), st.integers(1, 60))
def test_no_offset_gets_a_wrong_time(count: int, most: int) -> None:
    steps = [end(at) for at in range(count)]
    left = thin(steps, most)
    assert len(left) <= most
    for offset in range(count):
        when = appended(left, offset, None).when
        assert when.since_ms is None or when.since_ms <= offset * 100
        assert when.until_ms is None or when.until_ms >= offset * 100


def test_clients_are_joined() -> None:
    assert thin([end(0, "a"), end(1, "b"), end(2), end(3)], 3)[0].name == ((-1, "a"), (-1, "b"))


def test_steps_are_not_joined_across_a_gap() -> None:
    steps = [end(0), end(5), end(6), end(7)]
    left = thin(steps, 3)
    assert appended(left, 3, None).clients == ()


def test_a_way_back_stays_apart() -> None:
    back = Step(Kind.SET_BACK, "g", 500, 500, 0, 0, 4)
    steps = [Step(Kind.GROUP, "g", at * 100, at * 100, at, at + 1, at + 1) for at in range(4)]
    left = thin([*steps, back, *steps, *steps], 8)
    assert back in left
    assert group_reads(left, 3, {})


def test_versions_become_a_range() -> None:
    steps = [
        Step(
            Kind.DELIVERED, ("g", "q", "t"), at, at, at, at + 1, at + 1, False, Versions(*[at] * 4)
        )
        for at in range(8)
    ]
    first = thin(steps, 6)[0]
    assert first.versions == Versions(0, 1, 0, 1)
    assert [one[2:4] for one in deliveries([first], 1)] == [(0, 1)]
    assert [one[2:4] for one in deliveries([first], 0)] == [(0, 0)]


WHY = ("g", "q", "t", "t_rejected", "why")


def rejected(first: int, end: int, name: Name = WHY, at: int = 5) -> Step:
    return Step(Kind.REJECTED, name, at, at, first, end, end)


def test_rejected_offsets_that_meet_stay_whole() -> None:
    one = thin([rejected(0, 5), rejected(5, 9, at=7), end(1), end(2)], 3)[0]
    assert one == Step(Kind.REJECTED, WHY, 5, 7, 0, 9, 9)


def test_of_other_rejected_offsets_it_is_known_that_there_are_some() -> None:
    some = Step(Kind.REJECTED, (*WHY[:4], ""), 5, 7, 0, 0, 20)
    for other in (
        rejected(10, 20, at=7),
        rejected(5, 20, (*WHY[:4], "another"), at=7),
        rejected(2, 20, WHY[:3], at=7),
        Step(Kind.REJECTED, (*WHY[:4], ""), 7, 7, 3, 3, 20),
    ):
        assert thin([rejected(0, 5), other, end(1), end(2)], 3)[0] == some


def test_rejected_offsets_of_two_pipelines_stay_apart() -> None:
    one, other = rejected(0, 5), rejected(5, 9, ("h", *WHY[1:]))
    left = thin([one, other, *(end(at) for at in range(10))], 8)
    assert {one, other} <= set(left)


def test_deliveries_that_are_joined_keep_that_some_were_rejected() -> None:
    steps = [
        Step(
            Kind.DELIVERED, WHY[:3], at, at, at, at + 1, at + 1, False, Versions(*[at] * 4), at < 1
        )
        for at in range(8)
    ]
    assert [step.has_rejects for step in thin(steps, 6)[:2]] == [True, False]


def test_reasons_that_differ_are_several() -> None:
    steps = [
        Step(Kind.START, reason, at, at, at, at + 1, at + 1)
        for at, reason in enumerate(["retention.ms", "DeleteRecords", "retention.ms"])
    ]
    assert thin(steps, 2)[0].name == "several reasons"


def test_if_nothing_can_be_joined_the_oldest_steps_go() -> None:
    steps = [Step(Kind.GROUP, f"g{at}", at, at, 0, 1, 1) for at in range(10)]
    assert thin(steps, 4) == steps[-4:]


def test_that_the_clock_was_set_back_is_not_dropped() -> None:
    clocks = [Step(Kind.CLOCK, None, at, at + 50, 0, 0, 0) for at in (900, 920)]
    groups = [Step(Kind.GROUP, f"g{at}", at, at, at, at + 1, at + 1) for at in range(20)]
    assert thin([*clocks, *groups], 8) == [clocks[1]._replace(since_ms=900), *groups[-7:]]
    assert thin(groups, 8) == groups[-8:]


def test_nothing_is_lost_where_a_few_joined_are_few_enough() -> None:
    lone = [Step(Kind.CLOCK, None, at, at + 9, 0, 0, 0) for at in range(8)]
    steps = [end(0), end(1), *lone]
    left = thin(steps, 9)
    assert left == [Step(Kind.END, ((-1, "a"),), 0, 109, 0, 1, 2), *lone]
