"""What a journey says of a message that a pipeline rejected, or may have."""

import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.journey.offset_history import Delivered, When, deliveries
from ottla.journey.rejection import Rejection, rejection_of
from ottla.timelines.folder import TimelineFolder
from ottla.timelines.partition_timeline import PartitionTimeline
from ottla.timelines.step import Before, Kind, Step, Versions
from ottla.timelines.thinning import thin

PIPELINE = ("g", "q", "/t")
WHY = "key is not a JSON object of the schema"
KEPT = "t_rejected"


def delivered(before: int, end: int, at: int, *, rejects: bool = False) -> Step:
    numbers = (at, at, before, end, end)
    return Step(Kind.DELIVERED, PIPELINE, *numbers, False, Versions(*[at] * 4), rejects)


def rejected(first: int, end: int, at: int, reason: str = WHY) -> Step:
    return Step(Kind.REJECTED, (*PIPELINE, KEPT, reason), at, at, first, end, end)


def some_of(first: int, end: int, at: int) -> Step:
    return Step(Kind.REJECTED, (*PIPELINE, KEPT, ""), at, at, first, first, end)


def withdrawn(first: int, end: int, at: int) -> Step:
    return Step(Kind.REJECTED, PIPELINE, at, at, first, end, end)


def ask(steps: list[Step], offset: int, position: int = 0) -> Rejection | None:
    (one,) = deliveries(steps, offset)
    return rejection_of(steps, one, offset, position)


def test_a_rejected_message_and_its_neighbours() -> None:
    steps = [delivered(0, 20, 1, rejects=True), rejected(5, 7, 1), delivered(20, 30, 2)]
    assert [ask(steps, offset) is None for offset in (4, 5, 6, 7, 25)] == [
        *(True, False, False, True, True)
    ]
    found = ask(steps, 5)
    assert found == Rejection(5, 7, True, KEPT, WHY)
    assert found.document() == {
        "certain": True,
        "reason": WHY,
        "kept": KEPT,
        "first_offset": 5,
        "last_offset": 6,
    }


def test_of_a_range_with_some_it_is_not_known() -> None:
    steps = [delivered(0, 20, 1, rejects=True), some_of(5, 9, 1), rejected(6, 7, 1)]
    assert ask(steps, 5) == Rejection(5, 9, False, KEPT)
    assert ask(steps, 6) == Rejection(6, 7, True, KEPT, WHY)
    assert ask(steps, 9) is None


def test_what_is_said_last_counts() -> None:
    steps = [
        delivered(0, 20, 1, rejects=True),
        some_of(0, 20, 1),
        delivered(20, 40, 2, rejects=True),
        withdrawn(0, 40, 2),
        rejected(3, 4, 2),
    ]
    assert ask(steps, 3) == Rejection(3, 4, True, KEPT, WHY)
    assert ask(steps, 4) is None
    # Whichever file a step is in.
    assert ask(list(reversed(steps)), 3) == Rejection(3, 4, True, KEPT, WHY)


def test_another_pipeline_has_rejected_it() -> None:
    other = Step(Kind.REJECTED, ("h", *PIPELINE[1:], KEPT, WHY), 1, 1, 0, 20, 20)
    assert ask([delivered(0, 20, 1), other], 3) is None


def test_if_the_steps_are_lost_the_whole_delivery_is_in_doubt() -> None:
    assert ask([delivered(4, 20, 1, rejects=True)], 4) == Rejection(4, 20, False)
    assert ask([delivered(4, 20, 1)], 4) is None


def test_deliveries_between_which_steps_are_lost_are_in_doubt_if_the_pipeline_rejects() -> None:
    lost = [delivered(0, 5, 1, rejects=True), rejected(1, 2, 1), delivered(9, 12, 3)]
    assert ask(lost, 7) == Rejection(5, 12, False)
    assert ask(lost, 10) is None
    assert ask([delivered(0, 5, 1), delivered(9, 12, 3)], 7) is None


def test_a_group_that_read_it_again_has_rejected_it_only_if_it_said_so_again() -> None:
    back = Step(Kind.SET_BACK, "g", 5, 5, 0, 0, 20)
    steps = [delivered(0, 20, 1, rejects=True), rejected(5, 7, 1), back]
    assert ask(steps, 5, position=0) == Rejection(5, 7, True, KEPT, WHY)  # not yet
    assert ask(steps, 5, position=20) is None
    again = Step(Kind.GROUP, "g", 6, 6, 0, 20, 20)
    assert ask([*steps, again], 5) is None
    assert ask([*steps, again, rejected(5, 6, 6, "another")], 5, position=20) == Rejection(
        5, 6, True, KEPT, "another"
    )


@pytest.mark.parametrize("most", [1, 3, 5, 10, 40])
@given(st.lists(st.tuples(st.integers(1, 6), st.integers(0, 3)), min_size=1, max_size=12))
def test_thinning_never_tells_a_rejected_message_to_be_a_row(
    most: int, batches: list[tuple[int, int]]
) -> None:
    steps: list[Step] = []
    wrong: dict[int, bool] = {}
    end = 0
    for at, (size, rejects) in enumerate(batches):
        for offset in range(end, end + size):
            wrong[offset] = offset - end < rejects
        steps.append(delivered(end, end + size, at, rejects=rejects > 0))
        if rejects:
            steps.append(rejected(end, end + min(size, rejects), at))
        end += size
    left = thin(steps, most)
    for offset, is_wrong in wrong.items():
        for one in deliveries(left, offset):
            said = rejection_of(left, one, offset, end)
            if said is None:
                assert not is_wrong
            elif said.is_certain:
                assert is_wrong


def test_a_commit_is_found_again_in_the_files() -> None:
    timeline = PartitionTimeline(start_offset=0, end_offset=0, high_watermark=0, now_ms=1, dirty={})
    timeline.appended(0, 99, 2, "a", -1)
    said = {"ottla.pipeline": 1, "query": "q", "batch": 0, "delta": {"table": "/t", "version": 0}}
    said["rejects"] = {"kept": KEPT, "reasons": [WHY], "ranges": [[10, 12, 0], [60, 90, None]]}
    timeline.committed("g", 100, json.dumps(said), 3, Before(0, ""))
    with tempfile.TemporaryDirectory() as folder:
        files = TimelineFolder(Path(folder))
        files.write(timeline.take(10, all_of_them=True), (0, 50))
        found = {offset: ask(files.read(offset), offset, 100) for offset in (9, 10, 11, 12, 60)}
    assert found == {
        9: None,
        10: Rejection(10, 12, True, KEPT, WHY),
        11: Rejection(10, 12, True, KEPT, WHY),
        12: None,
        60: Rejection(60, 90, False, KEPT),
    }


def test_a_delivery_of_which_only_the_last_commit_is_known() -> None:
    one = Delivered(PIPELINE, When(None, None), 0, 9, 0, 9, True, (0, 50), True, True)
    assert rejection_of([rejected(40, 42, 1)], one, 41, 50) == Rejection(40, 42, True, KEPT, WHY)
    assert rejection_of([rejected(40, 42, 1)], one, 7, 50) == Rejection(0, 50, False)
