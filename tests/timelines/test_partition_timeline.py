"""Steps as they are noted: exact when quiet, coalesced under load, bounded always."""

import json
from typing import Any

import pytest

from ottla.timelines.file_format import HEAD, decode, encode
from ottla.timelines.group_timeline import MAX_GROUP_CHARS
from ottla.timelines.partition_timeline import PartitionTimeline
from ottla.timelines.pending_steps import BACKLOG_STEPS, MAX_STEPS, MAX_TRACKS, WINDOW_MS, Gathering
from ottla.timelines.step import Before, Kind, Step, Versions
from ottla.timelines.thinning import thin


@pytest.fixture
def dirty() -> dict[Gathering, None]:
    return {}


@pytest.fixture
def timeline(dirty: dict[Gathering, None]) -> PartitionTimeline:
    return fresh(dirty)


@pytest.fixture
def filled(dirty: dict[Gathering, None]) -> PartitionTimeline:
    """One whose log has 5000 records, for groups to read."""
    return fresh(dirty, end=5000)


def fresh(dirty: dict[Gathering, None], end: int = 0) -> PartitionTimeline:
    return PartitionTimeline(
        start_offset=0, end_offset=end, high_watermark=end, now_ms=1000, dirty=dirty
    )


def all_steps(timeline: PartitionTimeline) -> list[Step]:
    return timeline.take(10**9, all_of_them=True)


def test_an_idle_partition_is_not_dirty_and_has_nothing(
    timeline: PartitionTimeline, dirty: dict[Gathering, None]
) -> None:
    assert not dirty
    assert timeline.take(5000) == []


def test_quiet_appends_each_have_an_exact_step(
    timeline: PartitionTimeline, dirty: dict[Gathering, None]
) -> None:
    timeline.appended(0, 9, 2000, "a", -1)
    timeline.high_watermark(10, 2000)
    timeline.appended(10, 10, 2000 + WINDOW_MS, "a", -1)
    timeline.high_watermark(11, 2000 + WINDOW_MS)
    assert list(dirty) == [timeline]
    assert all_steps(timeline) == [
        Step(Kind.END_AND_HIGH, ((-1, "a"),), 2000, 2000, 0, 10, 10),
        Step(Kind.END_AND_HIGH, ((-1, "a"),), 2100, 2100, 10, 11, 11),
    ]
    assert not dirty


def test_appends_under_load_share_a_step_whose_first_is_exact(timeline: PartitionTimeline) -> None:
    for at in range(100):
        timeline.appended(at * 10, at * 10 + 9, 2000 + at, "a", 7)
        timeline.high_watermark(at * 10 + 10, 2000 + at)
    assert all_steps(timeline) == [Step(Kind.END_AND_HIGH, ((7, "a"),), 2000, 2099, 0, 10, 1000)]


def test_a_high_watermark_that_lags_has_steps_of_its_own(timeline: PartitionTimeline) -> None:
    timeline.appended(0, 9, 2000, "a", -1)
    timeline.high_watermark(10, 2007)
    timeline.high_watermark(10, 2050)
    assert all_steps(timeline) == [
        Step(Kind.END, ((-1, "a"),), 2000, 2000, 0, 10, 10),
        Step(Kind.HIGH, None, 2007, 2007, 0, 10, 10),
    ]


def test_few_changes_of_client_stay_exact_and_many_are_bounded(timeline: PartitionTimeline) -> None:
    for at in range(60):
        timeline.appended(at, at, 2000 + at, f"client-{at % 12}", -1)
    steps = all_steps(timeline)
    assert [step.name for step in steps[:4]] == [((-1, f"client-{at}"),) for at in range(4)]
    assert len(steps) == 5
    several = steps[-1].name
    assert isinstance(several, tuple)
    assert len(several) == 8
    assert several[-1] == (-1, "")
    assert (steps[-1].before, steps[-1].last) == (4, 60)


def test_take_leaves_the_open_step_until_its_window_is_over(
    timeline: PartitionTimeline, dirty: dict[Gathering, None]
) -> None:
    timeline.appended(0, 9, 2000, "a", -1)
    assert timeline.take(2050) == []
    assert list(dirty) == [timeline]
    timeline.appended(10, 19, 2060, "a", -1)
    assert [step.last for step in timeline.take(2100)] == [20]
    assert not dirty


def test_a_clock_that_goes_back_starts_a_new_step(timeline: PartitionTimeline) -> None:
    timeline.appended(0, 0, 2050, "a", -1)
    timeline.appended(1, 1, 2040, "a", -1)
    clock, *ends = all_steps(timeline)
    assert clock == Step(Kind.CLOCK, None, 2040, 2050, 0, 0, 0)
    assert [(step.since_ms, step.last) for step in ends] == [(2050, 1), (2040, 2)]


def test_the_first_append_after_a_start_records_the_log_end(
    dirty: dict[Gathering, None],
) -> None:
    timeline = fresh(dirty, end=50)
    timeline.appended(50, 50, 2000, "a", -1)
    timeline.appended(51, 51, 3000, "a", -1)
    opened, *others = all_steps(timeline)
    assert opened == Step(Kind.OPENED, None, 1000, 1000, 50, 50, 50)
    assert [step.kind for step in others] == [Kind.END, Kind.END]


def test_a_groups_commits(filled: PartitionTimeline) -> None:
    filled.committed("g", 5, "", 2000)
    filled.committed("g", 5, "", 2500)
    filled.committed("g", 8, None, 3000)
    filled.committed("g", 9, None, 3001)
    filled.committed("g", 2, None, 4000)
    assert all_steps(filled) == [
        Step(Kind.GROUP, "g", 2000, 2000, 5, 5, 5, True),
        Step(Kind.GROUP, "g", 3000, 3001, 5, 8, 9),
        Step(Kind.SET_BACK, "g", 4000, 4000, 2, 2, 9),
    ]


def test_what_was_committed_before_makes_a_groups_first_step_whole(
    filled: PartitionTimeline,
) -> None:
    filled.committed("g", 8, None, 3000, Before(5, ""))
    assert all_steps(filled) == [Step(Kind.GROUP, "g", 3000, 3000, 5, 8, 8)]


def test_a_pipelines_commit_is_a_groups_and_a_delivery(filled: PartitionTimeline) -> None:
    told = '{"ottla.pipeline":1,"query":"q","batch":3,"from":2,"delta":{"table":"t","version":7}}'
    filled.committed("g", 10, told, 2000)
    filled.committed("g", 12, told.replace("7", "8").replace("3", "4"), 2010)
    pipeline = ("g", "q", "t")
    assert all_steps(filled) == [
        Step(Kind.DELIVERED, pipeline, 2000, 2000, 2, 10, 10, False, Versions(3, 3, 7, 7)),
        Step(Kind.DELIVERED, pipeline, 2010, 2010, 10, 12, 12, False, Versions(4, 4, 8, 8)),
        Step(Kind.GROUP, "g", 2000, 2010, 10, 10, 12, True),
    ]


WHY = "key is not a JSON object of the schema"
PIPELINE = ("g", "q", "t")


def told(batch: int, *ranges: list[Any], **more: Any) -> str:
    document: dict[str, Any] = {"ottla.pipeline": 1, "query": "q", "batch": batch}
    document["delta"] = {"table": "t", "version": batch}
    if ranges or more:
        document["rejects"] = {"kept": "t_rejected", "reasons": [WHY], "ranges": ranges} | more
    return json.dumps(document)


def rejected(steps: list[Step]) -> list[tuple[Any, ...]]:
    return [
        (tuple(step.name or ())[4:], step.since_ms, step.before, step.first, step.last)
        for step in steps
        if step.kind is Kind.REJECTED
    ]


def test_what_a_pipeline_rejected_is_recorded_with_its_delivery(filled: PartitionTimeline) -> None:
    filled.committed("g", 10, told(3, [2, 5, 0], [7, 10, None]), 2000)
    filled.committed("g", 20, told(4), 3000)
    filled.committed("g", 30, told(5, [12, 13, 0], again=[12, 20]), 4000)
    steps = all_steps(filled)
    assert rejected(steps) == [
        ((WHY,), 2000, 2, 5, 5),
        (("",), 2000, 7, 7, 10),
        ((), 4000, 12, 20, 20),
        ((WHY,), 4000, 12, 13, 13),
    ]
    deliveries = [step.has_rejects for step in steps if step.kind is Kind.DELIVERED]
    assert deliveries == [True, False, False]


def test_a_commit_that_is_repeated_tells_its_rejects_once(filled: PartitionTimeline) -> None:
    filled.committed("g", 10, told(3, [2, 5, 0]), 2000)
    filled.committed("g", 10, told(3, [2, 5, 0]), 12_000)
    assert len(rejected(all_steps(filled))) == 1
    filled.committed("g", 10, told(4, [2, 4, 0], again=[2, 5]), 13_000)
    assert rejected(all_steps(filled)) == [((), 13_000, 2, 5, 5), ((WHY,), 13_000, 2, 4, 4)]


def test_a_commit_that_was_loaded_is_not_told_again(filled: PartitionTimeline) -> None:
    filled.committed("g", 10, told(3, [2, 5, 0]), 12_000, Before(10, told(3, [2, 5, 0])))
    assert rejected(all_steps(filled)) == []


def test_a_group_that_was_set_back_may_reject_the_same_again(filled: PartitionTimeline) -> None:
    filled.committed("g", 10, told(0, [2, 5, 0]), 2000)
    filled.committed("g", 0, None, 3000)
    filled.committed("g", 10, told(0, [2, 5, 0]), 4000)
    assert rejected(all_steps(filled)) == [((WHY,), 2000, 2, 5, 5), ((WHY,), 4000, 2, 5, 5)]


def test_deliveries_that_are_not_taken_share_steps_eventually(filled: PartitionTimeline) -> None:
    told = '{{"ottla.pipeline":1,"query":"q","batch":{0},"delta":{{"table":"t","version":{0}}}}}'
    for at in range(3000):
        filled.committed("g", at + 1, told.format(at), 2000 + at // 100)
    steps = [step for step in all_steps(filled) if step.kind is Kind.DELIVERED]
    assert len(steps) == MAX_STEPS // 4 + 1
    assert steps[-1].versions == Versions(MAX_STEPS // 4, 2999, MAX_STEPS // 4, 2999)


def test_a_pipelines_loaded_position_makes_its_first_step_whole(filled: PartitionTimeline) -> None:
    told = '{"ottla.pipeline":1,"query":"q","batch":3,"delta":{"table":"t","version":7}}'
    filled.committed("g", 8, told, 3000, Before(5, told.replace("3", "2").replace("7", "6")))
    assert sorted((step.kind, step.before, step.unknown_before) for step in all_steps(filled)) == [
        (Kind.GROUP, 5, False),
        (Kind.DELIVERED, 5, False),
    ]


def test_a_commit_past_the_log_end_is_not_read_yet(timeline: PartitionTimeline) -> None:
    timeline.appended(0, 9, 2000, "a", -1)
    timeline.committed("g", 2**62, None, 3000)
    timeline.committed("g", -1, None, 4000)
    assert [step.last for step in all_steps(timeline)] == [10, 10]


def test_names_of_any_length_fit_into_a_file(filled: PartitionTimeline) -> None:
    filled.appended(5000, 5000, 2000, "\udcff" * 32_767, -1)
    filled.committed("g" * 32_767, 5, None, 2000)
    told = {"ottla.pipeline": 1, "query": "ü" * 9999, "batch": 3}
    told["delta"] = {"table": "\n" * 9999, "version": 1}
    filled.committed("ü" * MAX_GROUP_CHARS, 5, json.dumps(told), 2000)
    steps = all_steps(filled)
    assert [step.kind for step in steps[1:]] == [Kind.DELIVERED, Kind.END, Kind.GROUP]
    assert decode(HEAD + encode(steps)) == steps


def test_the_log_start_moves(timeline: PartitionTimeline) -> None:
    timeline.started_at(0, 1500, "retention.ms")
    timeline.started_at(40, 2000, "DeleteRecords")
    assert all_steps(timeline) == [Step(Kind.START, "DeleteRecords", 2000, 2000, 0, 40, 40)]


def test_a_truncation_ends_the_steps_and_is_recorded(timeline: PartitionTimeline) -> None:
    timeline.appended(0, 9, 2000, "a", -1)
    timeline.high_watermark(10, 2000)
    timeline.truncated(4, 2010)
    timeline.appended(4, 4, 2020, "a", -1)
    timeline.high_watermark(5, 2020)
    assert [(step.kind, step.before, step.last) for step in all_steps(timeline)] == [
        (Kind.END_AND_HIGH, 0, 10),
        (Kind.CUT, 4, 10),
        (Kind.OPENED, 4, 4),
        (Kind.END_AND_HIGH, 4, 5),
    ]


def test_groups_beyond_the_limit_are_forgotten_oldest_first_and_their_next_step_says_so(
    filled: PartitionTimeline,
) -> None:
    for number in range(MAX_TRACKS + 1):
        filled.committed(f"g{number}", 5, None, 2000)
    filled.committed("g0", 6, None, 3000)
    filled.committed(f"g{MAX_TRACKS}", 6, None, 3000)
    steps = [step for step in all_steps(filled) if step.since_ms == 3000]
    assert sorted((step.name, step.unknown_before) for step in steps) == [
        ("g0", True),
        (f"g{MAX_TRACKS}", False),
    ]


def test_steps_that_are_not_taken_become_wider_first(timeline: PartitionTimeline) -> None:
    for at in range(2 * BACKLOG_STEPS):
        timeline.appended(at, at, 2000 + at * WINDOW_MS, "a", -1)
    steps = all_steps(timeline)
    assert len(steps) == BACKLOG_STEPS + BACKLOG_STEPS // 2
    assert all(step.is_exact for step in steps[:BACKLOG_STEPS])
    assert {step.until_ms - step.since_ms for step in steps[BACKLOG_STEPS:]} == {WINDOW_MS}


def test_steps_that_are_not_taken_are_limited(timeline: PartitionTimeline) -> None:
    for at in range(MAX_STEPS + 100):
        timeline.started_at(at + 1, 2000, "DeleteRecords")
    assert timeline.unnoted == 100
    assert len(all_steps(timeline)) == MAX_STEPS


def test_what_was_truncated_is_not_what_the_broker_opened(
    dirty: dict[Gathering, None],
) -> None:
    timeline = fresh(dirty, end=30)
    timeline.truncated(40, 1900)
    assert (timeline.end_at_open, timeline.high_at_open) == (30, 30)
    timeline.truncated(10, 2000)
    assert (timeline.end_at_open, timeline.high_at_open) == (10, 10)
    opened = [step for step in all_steps(timeline) if step.kind is Kind.OPENED]
    assert Step(Kind.OPENED, None, 1000, 1000, 30, 30, 30) in opened, "as it was then"


def test_a_clock_that_was_set_back_since_the_start_is_noted(
    dirty: dict[Gathering, None],
) -> None:
    timeline = fresh(dirty)
    timeline.appended(0, 0, 900, "a", -1)
    assert all_steps(timeline)[0] == Step(Kind.CLOCK, None, 900, 1000, 0, 0, 0)


def test_a_commit_that_is_replicated_after_an_append_is_not_a_clock_that_was_set_back(
    timeline: PartitionTimeline,
) -> None:
    timeline.appended(0, 9, 2000, "a", -1)
    timeline.committed("g", 5, None, 1998, Before(-1, ""), noted_ms=2003)
    timeline.forgotten("h", 1999, "OffsetDelete", Before(3, ""), noted_ms=2004)
    timeline.appended(10, 19, 2200, "a", -1)
    assert Kind.CLOCK not in {step.kind for step in all_steps(timeline)}


def test_a_commit_that_a_clock_set_back_separates_from_its_replication(
    timeline: PartitionTimeline,
) -> None:
    timeline.committed("g", 5, None, 2000, Before(-1, ""), noted_ms=1500)
    assert all_steps(timeline)[0] == Step(Kind.CLOCK, None, 1500, 2000, 0, 0, 0)


def test_a_broker_that_hears_late_that_it_does_not_lead_bounds_no_group(
    dirty: dict[Gathering, None],
) -> None:
    timeline = fresh(dirty, end=5)
    timeline.in_sync(1, 0, (1, 2), 5, 1000)
    timeline.committed("g", 20, None, 2000, Before(-1, ""))
    assert all_steps(timeline)[-1].last == 5
    timeline.in_sync(2, 1, (1, 2), 5, 2500, leads=False)
    timeline.committed("g", 20, None, 3000, Before(20, ""))
    timeline.committed("g", 30, None, 3000, Before(20, ""))
    step = all_steps(timeline)[-1]
    assert (step.before, step.last) == (20, 30), "what another leader had was passed before"


def test_a_pipeline_goes_on_from_its_checkpoint_after_a_truncation(
    dirty: dict[Gathering, None],
) -> None:
    timeline = fresh(dirty, end=15)
    told = json.dumps({"ottla.pipeline": 1, "query": "q", "batch": 0})
    timeline.committed("p", 15, told, 2000, Before(-1, ""))
    timeline.truncated(5, 2500)
    timeline.appended(5, 20, 3000, "a", -1)
    again = told.replace('"batch": 0', '"batch": 1')
    timeline.committed("p", 21, again, 4000, Before(15, told))
    delivered = [step for step in all_steps(timeline) if step.kind is Kind.DELIVERED]
    assert [(step.before, step.last) for step in delivered][-1] == (15, 21)


def test_a_truncation_below_the_log_start_takes_it_along(timeline: PartitionTimeline) -> None:
    timeline.appended(0, 29, 1000, "a", -1)
    timeline.started_at(20, 1100, "DeleteRecords")
    timeline.truncated(5, 1200)
    timeline.started_at(10, 1300, "DeleteRecords")
    starts = [step for step in timeline.take(2000, all_of_them=True) if step.kind is Kind.START]
    assert [(step.before, step.last) for step in starts] == [(0, 20), (5, 10)]


def test_a_delivery_tells_which_records_it_has(filled: PartitionTimeline) -> None:
    batch = '{{"ottla.pipeline":1,"query":"q","batch":{},"isolation":"{}"}}'
    for number, isolation in enumerate(("read_committed", "read_uncommitted", "read_committed")):
        filled.committed("g", 10 + number, batch.format(number, isolation), 2000)
    steps = [step for step in all_steps(filled) if step.kind is Kind.DELIVERED]
    assert [step.reads_committed for step in steps] == [True, False, True]
    assert [step.reads_committed for step in decode(HEAD + encode(steps))] == [True, False, True]
    assert [step.reads_committed for step in thin(steps, 2)] == [False, True]


def test_a_step_says_whether_all_of_its_batches_were_of_no_transaction(
    timeline: PartitionTimeline,
) -> None:
    timeline.appended(0, 4, 2000, "a", 7, True)
    timeline.appended(5, 9, 2050, "a", 7, True)
    timeline.appended(10, 14, 3000, "a", 7, True)
    timeline.appended(15, 19, 3050, "a", 7, False)
    timeline.appended(20, 24, 4000, "a", 7, False)
    timeline.appended(25, 29, 4050, "a", 7, True)
    assert [step.is_plain for step in all_steps(timeline)] == [True, False, False]
