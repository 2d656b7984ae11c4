"""What is shown of a group."""

import json
from typing import Any

import pytest
from tests.client.answers import groups, offsets
from tests.client.fake_cluster import FakeCluster

from ottla.cli.group.description import (
    GroupDescription,
    GroupPartition,
    group_description,
    shown_metadata,
)
from ottla.client.admin import losses
from ottla.client.admin.group_states import MemberState
from ottla.client.admin.groups import Group, Member
from ottla.client.admin.offsets import LIST_OFFSETS
from ottla.client.errors import ClientError
from ottla.client.topic_partition import TopicPartition


def test_pipeline_metadata_is_shown_in_words() -> None:
    told = {"ottla.pipeline": 1, "query": "q", "batch": 4, "delta": {"table": "t", "version": 9}}
    assert shown_metadata(json.dumps(told)) == "pipeline batch 4, delta version 9"
    del told["delta"]
    assert shown_metadata(json.dumps(told)) == "pipeline batch 4"


@pytest.mark.parametrize(
    "metadata",
    [
        "",
        "mine",
        '{"ottla.pipeline"',
        '{"ottla.pipeline": 1}',
        '["ottla.pipeline"]',
        # Anybody may commit it.
        pytest.param('["ottla.pipeline",' + "[" * 4000, id="deep"),
    ],
)
def test_other_metadata_is_shown_as_it_is(metadata: str) -> None:
    assert shown_metadata(metadata) == metadata


def partition(number: int, **given: Any) -> GroupPartition:
    usual = {"committed_offset": 5, "end_offset": 8, "lag": 3, "behind_ms": None, "client": ""}
    usual |= {"metadata": "", "offsets_error": None, "member_id": None}
    return GroupPartition("t", number, **{**usual, **given})


def shown(capsys: pytest.CaptureFixture[str], *what: Any, **more: Any) -> list[list[str]]:
    usual: dict[str, Any] = {
        "type": "classic",
        "assignor": None,
        "coordinator": 1,
        "lag": 3,
        "behind_ms": None,
    }
    usual["losses"] = []
    state, members, partitions = what
    found = GroupDescription("g", state, members=members, partitions=partitions, **usual | more)
    found.show()
    return [line.split() for line in capsys.readouterr().out.splitlines()]


def test_group_as_text(capsys: pytest.CaptureFixture[str]) -> None:
    members = [
        MemberState("m1", None, "c", "/10.0.0.1", 1),
        MemberState("m2", None, "d", "10.0.0.2", 0),
    ]
    partitions = [partition(0, client="c@10.0.0.1", member_id="m1")]
    assert shown(capsys, "stable", members, partitions) == [
        ["g:", "stable,", "2", "members,", "lag", "3"],
        ["topic", "partition", "committed", "end", "lag", "client"],
        ["t", "0", "5", "8", "3", "c@10.0.0.1"],
        ["no", "partition", "assigned:", "d@10.0.0.2"],
    ]


def test_a_group_without_partitions_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert shown(capsys, "empty", [], [], lag=0) == [
        ["g:", "empty,", "0", "members,", "no", "partitions"]
    ]


def test_what_retention_removes_unread_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    found = [losses.Loss("t", 0, 0, 2, 60_000), losses.Loss("t", 1, 1, 0, None)]
    lines = shown(capsys, "empty", [], [partition(0)], losses=found)
    assert [" ".join(line) for line in lines[-2:]] == [
        "2 unread records of t-0 go in 1 min 0 s at the earliest.",
        "1 unread record of t-1 was removed.",
    ]


def test_a_silent_leader_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    silent = partition(1, end_offset=None, lag=None, offsets_error="its leader is silent")
    assert shown(capsys, "empty", [], [partition(0), silent]) == [
        ["g:", "empty,", "0", "members,", "lag", "3", "or", "more"],
        ["topic", "partition", "committed", "end", "lag", "state"],
        ["t", "0", "5", "8", "3"],
        ["t", "1", "5", "-", "-", "its", "leader", "is", "silent"],
    ]


def test_lag_in_time_has_a_column(capsys: pytest.CaptureFixture[str]) -> None:
    partitions = [partition(0, behind_ms=0, lag=0), partition(1, behind_ms=90_000)]
    title, heading, caught_up, late = shown(capsys, "empty", [], partitions, behind_ms=90_000)
    assert title[-1] == "behind"
    assert heading[-1] == "behind"
    assert (len(caught_up), late[:5]) == (5, ["t", "1", "5", "8", "3"])
    assert len(late) > 5


def test_a_group_is_described_with_its_lag(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: Any) -> Any:
        raise ClientError("the settings are none of its business.")

    monkeypatch.setattr(losses, "losses_of", refused)
    partition = TopicPartition("t", 0)
    group = Group("g", "stable", "classic", "range", 2, False, (Member("m", None, "c", "/h", ()),))
    known = groups({"g": group}, {"g": {partition: 5, ("gone", 0): 1}})
    cluster = FakeCluster({LIST_OFFSETS: [offsets({partition: 0}, {partition: 8})], **known})
    told = group_description(cluster.client(), group)
    gone, own = told.partitions
    assert (own.committed_offset, own.end_offset, own.lag) == (5, 8, 3)
    assert (gone.topic, gone.end_offset, gone.lag) == ("gone", None, None)
    assert (told.lag, told.members[0].partitions) == (3, 0)
    assert told.losses is None


def test_what_was_never_committed_is_counted(capsys: pytest.CaptureFixture[str]) -> None:
    never = partition(1, committed_offset=None, lag=None)
    (title, *_) = shown(capsys, "stable", [], [partition(0), never])
    assert " ".join(title) == "g: stable, 0 members, lag 3, 1 partition without a commit"
