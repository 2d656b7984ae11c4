"""Where a clock was set back, only what is certain is told."""

from dataclasses import replace

from tests.journey.test_explain import facts

from ottla.journey.clock_jumps import Jumps, jumps_of, told
from ottla.journey.explain import explain
from ottla.journey.offset_history import When
from ottla.timelines.step import By, Kind, Opening, Step, Versions

CLOCK = Step(Kind.CLOCK, None, 1000, 2500, 0, 0, 0)


def test_bounds_around_a_jump_are_not_told() -> None:
    jumps = jumps_of([CLOCK], 9000)
    assert jumps == Jumps(1000, 2500)
    unknown = When(None, None)
    assert told(jumps, When(2000, 2000)) == When(2000, 2000)
    assert told(jumps, When(2000, 2100)) == unknown
    assert told(jumps, When(None, 999)) == When(None, 999)
    assert told(jumps, When(None, 2600)) == unknown
    assert told(jumps, When(2600, None)) == When(2600, None)
    assert told(None, When(1, 2)) == When(1, 2)


def test_steps_later_than_now_show_that_the_clock_was_set_back() -> None:
    step = Step(Kind.GROUP, "g", 5000, 5000, 0, 1, 1)
    assert jumps_of([step], 9000) is None
    assert jumps_of([step], 4000) == Jumps(4000, 5000)
    assert jumps_of([step._replace(broker=2)], 4000) is None, "by another clock"


def test_no_range_ends_before_it_begins() -> None:
    end = Step(Kind.END, ((7, "airport"),), 2000, 2000, 0, 50, 50)
    high = Step(Kind.HIGH, None, 1100, 1100, 0, 50, 50)
    known = replace(facts(), steps=[end, CLOCK, high])
    said = explain(known)
    assert said["appended"]["when"]["since_ms"] == 2000
    assert said["replicated"]["when"] == {"since_ms": None, "until_ms": None, "exact": False}


def test_a_removal_after_the_clock_was_set_back_bounds_no_commit() -> None:
    end = Step(Kind.END, ((7, "airport"),), 2000, 2000, 0, 50, 50)
    start = Step(Kind.START, "DeleteRecords", 1500, 1500, 0, 45, 45)
    said = explain(replace(facts(), steps=[end, CLOCK, start], start_offset=45, location=None))
    assert said["removed"]["when"]["until_ms"] == 1500
    assert said["replicated"]["when"] == {"since_ms": None, "until_ms": None, "exact": False}


def test_a_delivery_of_a_lost_record_is_in_doubt_also_where_its_append_is_not_recorded() -> None:
    batch = Step(
        *(Kind.DELIVERED, ("p", "q", "/t"), 2000, 2000, 0, 50, 50), versions=Versions(0, 0, 1, 1)
    )
    opened = Step(Kind.OPENED, None, 2200, 2200, 40, 40, 40)
    known = replace(facts(), steps=[CLOCK, batch, opened], opening=Opening(2400, 50, 50))
    assert [one["in_doubt"] for one in explain(known)["delivered"]] == [True]
    kept = replace(known, steps=[CLOCK, batch])
    assert [one["in_doubt"] for one in explain(kept)["delivered"]] == [False]


def test_it_is_not_known_which_of_two_records_of_then_a_step_is_about() -> None:
    old = Step(Kind.END_AND_HIGH, ((7, "old"),), 2000, 2000, 0, 50, 50)
    opened = Step(Kind.OPENED, None, 1200, 1200, 0, 0, 0)
    new = Step(Kind.END_AND_HIGH, ((7, "new"),), 1500, 1500, 0, 50, 50)
    for steps in ([old, CLOCK, opened], [old, CLOCK, opened, new], [old, CLOCK, new]):
        said = explain(replace(facts(), steps=steps))
        assert said["published"]["client_ids"] == []
        for part in ("appended", "replicated"):
            when = said[part]["when"]
            assert (when["since_ms"], when["until_ms"]) == (None, None)
    assert explain(replace(facts(), steps=[CLOCK, new]))["appended"]["when"]["exact"]


def test_what_ended_before_all_times_that_there_were_twice_was_ahead() -> None:
    end = Step(Kind.END, ((7, "airport"),), 2400, 2450, 0, 10, 50)
    group = Step(Kind.GROUP, "readers", 900, 900, 0, 60, 60, by=By.MEMBER)
    said = explain(replace(facts(), steps=[group, end, CLOCK], replicas=(1, 2)))
    doubts = {one["group"]: one.get("doubt") for one in said["read"]}
    assert doubts["readers"] == "ahead"


def test_an_append_before_the_clock_was_set_back_does_not_undo_a_later_one() -> None:
    before = Step(Kind.END, ((7, "a"),), 2500, 2500, 0, 20, 20)
    record = Step(Kind.END, ((7, "b"),), 1000, 1000, 20, 45, 45)
    later = Step(Kind.END, ((7, "c"),), 2500, 2500, 45, 50, 50)
    said = explain(replace(facts(), steps=[before, CLOCK, record, later]))
    assert said["published"]["client_ids"] == ["b"]
    assert said["appended"]["when"] == {"since_ms": 1000, "until_ms": 1000, "exact": True}
