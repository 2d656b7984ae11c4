"""What a timeline keeps of replicas: fetch offsets, who leads, who is in sync, what was cut."""

from pathlib import Path
from typing import Any

from ottla.timelines.file_format import HEAD, decode, encode
from ottla.timelines.folder import TimelineFolder
from ottla.timelines.partition_timeline import PartitionTimeline
from ottla.timelines.pending_steps import MAX_TRACKS, WINDOW_MS
from ottla.timelines.step import Kind, Step
from ottla.timelines.thinning import thin


def fresh(end: int = 0) -> PartitionTimeline:
    return PartitionTimeline(
        start_offset=0, end_offset=end, high_watermark=end, now_ms=1000, dirty={}
    )


def all_steps(timeline: PartitionTimeline) -> list[Step]:
    return timeline.take(10**9, all_of_them=True)


def test_the_first_fetch_is_a_first_sight_and_the_next_ones_are_exact() -> None:
    timeline = fresh(10)
    timeline.replicated(2, 10, 2000)
    timeline.replicated(2, 10, 2001)
    timeline.replicated(2, 15, 2000 + WINDOW_MS)
    assert all_steps(timeline) == [
        Step(Kind.REPLICA, "2", 2000, 2000, 10, 10, 10, True),
        Step(Kind.REPLICA, "2", 2100, 2100, 10, 15, 15),
    ]


def test_fetches_under_load_share_a_step() -> None:
    timeline = fresh()
    timeline.replicated(2, 0, 1500)
    for at in range(1, 100):
        timeline.replicated(2, at, 2000 + at)
    assert all_steps(timeline)[-1] == Step(Kind.REPLICA, "2", 2001, 2099, 0, 1, 99)


def test_a_fetch_that_goes_back_starts_a_new_step() -> None:
    timeline = fresh(10)
    timeline.replicated(3, 10, 2000)
    timeline.replicated(3, 4, 2001)
    assert all_steps(timeline)[-1] == Step(Kind.REPLICA, "3", 2001, 2001, 4, 4, 4, True)


def test_replicas_remembered_are_limited() -> None:
    timeline = fresh(10)
    for broker in range(MAX_TRACKS + 1):
        timeline.replicated(broker, 5, 2000)
    timeline.replicated(0, 6, 3000)
    assert all_steps(timeline)[-1].unknown_before


def test_an_open_step_of_a_follower_keeps_the_timeline_dirty() -> None:
    timeline = fresh(10)
    timeline.replicated(2, 5, 2000)
    assert timeline.take(2050) == []
    assert timeline.take(2000 + WINDOW_MS) != []


def test_what_is_found_at_a_start_waits_until_something_happens() -> None:
    dirty: dict[Any, None] = {}
    timeline = PartitionTimeline(
        start_offset=0, end_offset=0, high_watermark=0, now_ms=1000, dirty=dirty
    )
    timeline.in_sync(1, 4, (1, 2), 0, 1000, 9)
    assert not dirty
    assert timeline.take(2000) == []
    timeline.appended(0, 4, 2000, "a", -1)
    assert all_steps(timeline) == [
        Step(Kind.IN_SYNC, (1, 4, (1, 2), 9), 1000, 1000, 0, 0, 0, True),
        Step(Kind.END, ((-1, "a"),), 2000, 2000, 0, 5, 5),
    ]


def test_the_initial_state_is_returned_on_request() -> None:
    timeline = fresh(7)
    timeline.in_sync(1, 4, (1, 2), 7, 1000)
    assert [step.kind for step in all_steps(timeline)] == [Kind.IN_SYNC]
    assert all_steps(timeline) == []


def test_an_equal_state_is_no_step() -> None:
    timeline = fresh(7)
    timeline.in_sync(1, 4, (1, 2), 7, 1000)
    timeline.in_sync(1, 4, [1, 2], 9, 2000)
    assert len(all_steps(timeline)) == 1


def test_an_election_ends_the_steps_that_are_open_and_forgets_the_followers() -> None:
    timeline = fresh()
    timeline.in_sync(1, 4, (1, 2), 0, 1000, 1)
    timeline.appended(0, 4, 2000, "a", -1)
    timeline.replicated(2, 5, 2001)
    timeline.in_sync(2, 5, (2,), 5, 2002, 2)
    timeline.appended(5, 5, 2003, "a", -1)
    timeline.replicated(2, 6, 2004)
    assert all_steps(timeline) == [
        Step(Kind.IN_SYNC, (1, 4, (1, 2), 1), 1000, 1000, 0, 0, 0, True),
        Step(Kind.END, ((-1, "a"),), 2000, 2000, 0, 5, 5),
        Step(Kind.REPLICA, "2", 2001, 2001, 5, 5, 5, True),
        Step(Kind.IN_SYNC, (2, 5, (2,), 2), 2002, 2002, 5, 5, 5),
        Step(Kind.END, ((-1, "a"),), 2003, 2003, 5, 6, 6),
        Step(Kind.REPLICA, "2", 2004, 2004, 6, 6, 6, True),
    ]


def test_a_change_of_the_in_sync_set_alone_forgets_nobody() -> None:
    timeline = fresh(5)
    timeline.in_sync(1, 4, (1, 2), 5, 1000, 1)
    timeline.replicated(2, 5, 2000)
    timeline.in_sync(1, 4, (1,), 5, 3000, 2)
    timeline.replicated(2, 6, 4000)
    assert not all_steps(timeline)[-1].unknown_before


def test_a_cut_says_what_was_dropped_and_how_much_of_it_had_been_committed() -> None:
    timeline = fresh(100)
    timeline.in_sync(1, 4, (1, 2), 100, 1000)
    timeline.appended(100, 149, 2000, "", -1)
    timeline.high_watermark(120, 2001)
    timeline.in_sync(2, 5, (2,), 150, 3000)
    timeline.truncated(110, 3001)
    cut, opened = all_steps(timeline)[-2:]
    assert cut == Step(Kind.CUT, (2, 5, (2,), -1), 3001, 3001, 110, 120, 150)
    assert opened == Step(Kind.OPENED, None, 3001, 3001, 110, 110, 110)


def test_a_cut_above_the_high_watermark_drops_nothing_committed() -> None:
    timeline = fresh(100)
    timeline.appended(100, 149, 2000, "", -1)
    timeline.truncated(130, 3001)
    cut = next(step for step in all_steps(timeline) if step.kind is Kind.CUT)
    assert (cut.before, cut.first, cut.last) == (130, 130, 150)


def test_a_cut_of_nothing_drops_nothing() -> None:
    timeline = fresh(100)
    timeline.truncated(100, 3001)
    assert [step.kind for step in all_steps(timeline)] == [Kind.OPENED]


def test_what_a_follower_holds_beyond_the_leader_is_kept() -> None:
    timeline = fresh(100)
    timeline.diverged(3, 100, 140, 2000)
    timeline.diverged(3, 100, 100, 2001)
    assert all_steps(timeline) == [Step(Kind.DIVERGED, "3", 2000, 2000, 100, 100, 140)]


def test_all_of_it_comes_back_from_a_file() -> None:
    timeline = fresh(100)
    timeline.in_sync(1, 4, (1, 2), 100, 1000, 8)
    timeline.replicated(2, 90, 1500)
    timeline.in_sync(-1, 5, (1,), 100, 2000, 9)
    timeline.diverged(3, 100, 140, 2000)
    timeline.truncated(50, 3000)
    steps = all_steps(timeline)
    assert decode(HEAD + encode(steps)) == steps


def test_a_kind_of_a_later_version_is_ignored() -> None:
    steps = [Step(Kind.HIGH, None, 1, 1, 0, 1, 1), Step(Kind.HIGH, None, 2, 2, 1, 2, 2)]
    later: Any = 200
    unknown = steps[0]._replace(kind=later)
    assert decode(HEAD + encode([unknown, *steps])) == steps


def test_thinning_joins_fetches_and_keeps_elections_apart() -> None:
    fetches = [Step(Kind.REPLICA, "2", at, at, at, at + 1, at + 1) for at in range(40)]
    election = Step(Kind.IN_SYNC, (2, 5, (2,), -1), 3, 3, 3, 3, 3)
    left = thin([*fetches[:4], election, *fetches[4:]], 30)
    assert election in left
    assert len(left) <= 30
    replica = [step for step in left if step.kind is Kind.REPLICA]
    assert (replica[0].before, replica[-1].last) == (0, 40)


def test_each_new_segment_begins_with_the_role_as_it_was(tmp_path: Path) -> None:
    folder = TimelineFolder(tmp_path)
    role = Step(Kind.IN_SYNC, (1, 4, (1, 2), -1), 1000, 1000, 0, 0, 0)
    folder.write([role], [0])
    append = Step(Kind.END, ((-1, "a"),), 2000, 2000, 100, 110, 110)
    folder.write([append], [0, 50, 100])
    assert decode((tmp_path / f"{100:020}.timeline").read_bytes()) == [role, append]
    assert decode((tmp_path / f"{50:020}.timeline").read_bytes()) == [role]


def test_a_cut_takes_groups_back_to_what_is_left() -> None:
    """A commit of the same offset passes other records."""
    timeline = fresh(60)
    timeline.committed("g", 60, None, 2000)
    timeline.truncated(30, 3000)
    timeline.appended(30, 79, 3500, "", -1)
    timeline.committed("g", 60, None, 4000)
    groups = [step for step in all_steps(timeline) if step.kind is Kind.GROUP]
    assert groups[-1] == Step(Kind.GROUP, "g", 4000, 4000, 30, 60, 60)


def test_a_follower_may_be_behind_what_a_group_has_read() -> None:
    timeline = fresh(10)
    timeline.in_sync(2, 4, (2,), 10, 1000, 1, leads=False)
    timeline.committed("g", 15, None, 2000)
    timeline.appended(10, 11, 2500, "", -1)
    timeline.in_sync(1, 5, (1,), 12, 3000, 2, leads=True)
    timeline.committed("g", 20, None, 4000)
    groups = [step for step in all_steps(timeline) if step.kind is Kind.GROUP]
    assert [step[4:7] for step in groups] == [(15, 15, 15)]
    timeline.appended(12, 20, 5000, "a", -1)
    timeline.committed("g", 20, None, 6000)
    assert all_steps(timeline)[-1][2:7] == (6000, 6000, 12, 20, 20)
