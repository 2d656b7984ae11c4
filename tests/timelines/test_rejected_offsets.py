"""What a commit says of rejected offsets, and the steps that keep it."""

from typing import Any

import pytest

from ottla.timelines.rejected_offsets import (
    MAX_RANGES,
    MAX_SPAN,
    RejectedOffsets,
    RejectedRange,
    read_rejected,
    rejected_steps,
)
from ottla.timelines.step import Kind, Step

WHY = "key is not a JSON object of the schema"
SAID = {
    "kept": "orders_rejected",
    "reasons": [WHY],
    "ranges": [[4200, 4210, 0], [4300, 4900, None]],
    "again": [4000, 4900],
}
READ = RejectedOffsets(
    (RejectedRange(4200, 4210, WHY), RejectedRange(4300, 4900, None)),
    "orders_rejected",
    (4000, 4900),
)
PIPELINE = ("g", "q", "/t")


def test_ranges_with_their_reasons() -> None:
    assert read_rejected(SAID) == READ


def test_a_reason_that_is_not_there_is_unknown() -> None:
    for reasons in (None, [], [7], "text"):
        read = read_rejected(SAID | {"reasons": reasons})
        assert read is not None
        (first, *_) = read.ranges
        assert first == RejectedRange(4200, 4210, "")


@pytest.mark.parametrize(
    "said",
    [
        None,
        [],
        {},
        {"ranges": []},
        {"ranges": [[5, 5, 0]]},
        {"ranges": [[-1, 5, 0]]},
        {"ranges": [[1, 2]]},
        {"ranges": [[1, 2**63, 0]]},
        {"ranges": [[True, 5, 0]]},
        {"ranges": [["1", 5, 0]]},
        {"ranges": [{}]},
    ],
)
def test_what_is_not_understood_is_nothing(said: Any) -> None:
    assert read_rejected(said) is None


def test_of_too_many_ranges_only_the_whole_is_known() -> None:
    said = {"ranges": [[at * 10, at * 10 + 1, None] for at in range(MAX_RANGES + 1)]}
    assert read_rejected(said) == RejectedOffsets((RejectedRange(0, MAX_RANGES * 10 + 1, None),))
    most = read_rejected({"ranges": said["ranges"][1:]})
    assert most is not None
    assert len(most.ranges) == MAX_RANGES


def test_a_step_has_all_its_offsets_or_some() -> None:
    assert rejected_steps(PIPELINE, READ, 5000, 7) == [
        Step(Kind.REJECTED, PIPELINE, 7, 7, 4000, 4900, 4900),
        Step(Kind.REJECTED, (*PIPELINE, "orders_rejected", WHY), 7, 7, 4200, 4210, 4210),
        Step(Kind.REJECTED, (*PIPELINE, "orders_rejected", ""), 7, 7, 4300, 4300, 4900),
    ]


def test_steps_end_with_the_log_and_fit_into_a_file() -> None:
    assert [step[4:7] for step in rejected_steps(PIPELINE, READ, 4205, 7)] == [
        (4000, 4205, 4205),
        (4200, 4205, 4205),
    ]
    (step,) = rejected_steps(PIPELINE, RejectedOffsets((RejectedRange(0, 2**40, "why"),)), 2**41, 7)
    assert (step.before, step.last) == (2**40 - MAX_SPAN, 2**40)


def test_what_it_reaches() -> None:
    assert READ.reaches(4899)
    assert not READ.reaches(4900)
