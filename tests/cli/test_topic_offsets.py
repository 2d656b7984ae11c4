"""What `ottla topic trim` deletes and what it refuses."""

from __future__ import annotations

import pytest

from ottla.cli.failures import Failed, UsageFailed
from ottla.cli.topic_offsets import check_target, offsets_document, planned

FIRST = {("t", 0): 10, ("t", 1): 0}
END = {("t", 0): 20, ("t", 1): 5}


def test_only_partitions_that_begin_before_the_target_change() -> None:
    assert planned({("t", 0): 10, ("t", 1): 3}, FIRST, END) == {("t", 1): 3}
    assert planned(END, FIRST, END) == END


def test_an_offset_past_the_end_is_refused() -> None:
    with pytest.raises(Failed, match="has no offset 21: allowed are 10 to 20, the end"):
        planned({("t", 0): 21}, FIRST, END)


@pytest.mark.parametrize(
    ("before", "before_offset", "partitions", "words"),
    [
        (None, None, None, "give either --before or --before-offset"),
        ("1h", 3, [0], "give either --before or --before-offset"),
        (None, 3, None, "--before-offset needs --partition"),
        (None, 3, [0, 1], "--before-offset needs --partition"),
        ("soon", None, None, "'soon' is not a time"),
    ],
)
def test_a_target_that_is_not_clear_is_refused(
    before: str | None, before_offset: int | None, partitions: list[int] | None, words: str
) -> None:
    with pytest.raises(UsageFailed, match=words):
        check_target("t", before, before_offset, partitions)


def test_targets() -> None:
    assert check_target("t", "end", None, None) is None
    assert check_target("t", None, 3, [1]) is None
    assert check_target("t", "1700000000000", None, None) == 1_700_000_000_000
    with pytest.raises(UsageFailed, match="internal topic"):
        check_target("__consumer_offsets", "end", None, None)


def test_a_document_counts_offsets() -> None:
    assert offsets_document(("t", 1), 3, 10, None)["offsets"] == 7
