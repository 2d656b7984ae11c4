"""What `ottla topic trim` deletes and what it refuses."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest
from tests.client.answers import deleted_records, offsets
from tests.client.fake_cluster import FakeCluster

from ottla.cli.app import carry_out
from ottla.cli.failures import Failed, UsageFailed
from ottla.cli.topic.trim import check_target, planned
from ottla.client.admin.offsets import LIST_OFFSETS
from ottla.client.admin.records import DELETE_RECORDS
from ottla.client.topic_partition import TopicPartition

FIRST = {TopicPartition("t", 0): 10, TopicPartition("t", 1): 0}
END = {TopicPartition("t", 0): 20, TopicPartition("t", 1): 5}


def test_only_partitions_that_begin_before_the_target_change() -> None:
    assert planned({TopicPartition("t", 0): 10, TopicPartition("t", 1): 3}, FIRST, END) == {
        TopicPartition("t", 1): 3
    }
    assert planned(END, FIRST, END) == END


def test_an_offset_past_the_end_is_refused() -> None:
    with pytest.raises(Failed, match="has no offset 21: allowed are 10 to 20, the end"):
        planned({TopicPartition("t", 0): 21}, FIRST, END)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ([], "give either --before or --before-offset"),
        (["--before", "1h", "--before-offset", "3", "-p0"], "give either --before or"),
        (["--before-offset", "3"], "--before-offset needs --partition"),
        (["--before-offset", "3", "-p", "0", "-p", "1"], "--before-offset needs --partition"),
        (["--before", "soon"], "--before: 'soon' is not a time"),
    ],
)
def test_a_target_that_is_not_clear_is_refused(
    options: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert carry_out(["topic", "trim", "t", *options]) == 2
    assert words in capsys.readouterr().err


def test_an_internal_topic_is_left_to_its_coordinators() -> None:
    check_target("t", -1, None, [])
    check_target("t", None, 3, [1])
    with pytest.raises(UsageFailed, match="internal topic"):
        check_target("__consumer_offsets", -1, None, [])


@pytest.fixture
def cluster() -> Any:
    """A topic t with partitions 0 (10 to 20) and 1 (0 to 5)."""
    at = {TopicPartition("t", 0): 12, TopicPartition("t", 1): 0}
    fake = FakeCluster(
        {LIST_OFFSETS: [offsets(FIRST, END, at)], DELETE_RECORDS: [deleted_records()]}
    )
    fake.leaders = dict.fromkeys(FIRST, 1)
    return SimpleNamespace(client=fake.client())


@pytest.mark.parametrize(
    ("options", "starts"),
    [
        (["--before", "end"], {0: 20, 1: 5}),
        (["--before", "2h"], {0: 12}),
        (["--before-offset", "3", "-p", "1"], {1: 3}),
    ],
)
def test_the_new_starts_are_printed(
    cluster: Any, options: list[str], starts: dict[int, int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert carry_out(["topic", "trim", "t", *options, "--yes", "--json"], cluster) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["applied"]
    assert {each["partition"]: each["after"] for each in told["partitions"]} == starts
    assert carry_out(["topic", "trim", "t", *options, "--dry-run"], cluster) == 0
    assert "new start offset" in capsys.readouterr().out
