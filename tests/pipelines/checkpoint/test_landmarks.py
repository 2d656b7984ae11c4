"""Whether a record shows that a log has others than it had."""

import pytest

from ottla.pipelines.checkpoint.landmarks import LANDMARKS, Known, replaced_from
from ottla.pipelines.errors import PipelineError


@pytest.mark.parametrize(
    ("now", "first"),
    [
        ({0: (7, 1_000)}, {}),  # the same record
        ({}, {}),  # retention deleted it, or the topic ends before: its end says so
        ({0: (9, 1_000)}, {}),  # compaction removed it, and a later one has its time
        ({0: (9, 5_000)}, {}),
        ({0: (3, 1_000)}, {}),  # an index of another broker names an earlier one of its time
        ({0: (7, 1_001)}, {0: 7}),
        ({0: (3, 5_000)}, {0: 3}),
        ({1: (3, 5_000)}, {}),
    ],
)
def test_a_later_record_where_there_was_none_is_another_one(
    now: dict[int, tuple[int, int]], first: dict[int, int]
) -> None:
    assert replaced_from({0: (7, 1_000)}, now) == first


def test_a_file_that_is_damaged_may_be_deleted() -> None:
    topics = {"t": Known("id", {0: (7, 1_000)})}
    assert LANDMARKS.value(LANDMARKS.text(topics), "cp/x") == topics
    with pytest.raises(PipelineError, match=r"cp/x is damaged\. Delete it"):
        LANDMARKS.value("{", "cp/x")
