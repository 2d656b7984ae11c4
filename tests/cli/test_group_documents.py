"""What is shown of a group."""

import json

import pytest

from ottla.cli.group_documents import client_name, show_group, shown_metadata


def test_pipeline_metadata_is_shown_in_words() -> None:
    told = {"ottla.pipeline": 1, "query": "q", "batch": 4, "delta": {"table": "t", "version": 9}}
    assert shown_metadata(json.dumps(told)) == "pipeline batch 4, delta version 9"
    del told["delta"]
    assert shown_metadata(json.dumps(told)) == "pipeline batch 4"


@pytest.mark.parametrize(
    "metadata", ["", "mine", '{"ottla.pipeline"', '{"ottla.pipeline": 1}', '["ottla.pipeline"]']
)
def test_other_metadata_is_shown_as_it_is(metadata: str) -> None:
    assert shown_metadata(metadata) == metadata


def test_group_as_text(capsys: pytest.CaptureFixture[str]) -> None:
    members = [
        {"member_id": "m1", "client_id": "c", "host": "/10.0.0.1", "partitions": 1},
        {"member_id": "m2", "client_id": "d", "host": "10.0.0.2", "partitions": 0},
    ]
    partition = {"topic": "t", "partition": 0, "committed_offset": 5, "end_offset": 8, "lag": 3}
    show_group(
        {
            "group": "g",
            "state": "stable",
            "lag": 3,
            "members": members,
            "partitions": [{**partition, "metadata": "", "member_id": "m1", "offsets_error": None}],
        }
    )
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines == [
        ["g:", "stable,", "2", "members,", "lag", "3"],
        ["topic", "partition", "committed", "end", "lag", "client"],
        ["t", "0", "5", "8", "3", "c@10.0.0.1"],
        ["no", "partition", "assigned:", "d@10.0.0.2"],
    ]
    assert client_name(None) == ""


def test_a_silent_leader_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    known = {"topic": "t", "partition": 0, "committed_offset": 5, "end_offset": 8, "lag": 3}
    other = {"topic": "t", "partition": 1, "committed_offset": 5, "end_offset": None, "lag": None}
    partitions = [
        {**known, "metadata": "", "member_id": None, "offsets_error": None},
        {**other, "metadata": "", "member_id": None, "offsets_error": "its leader is silent"},
    ]
    show_group({"group": "g", "state": "empty", "lag": 3, "members": [], "partitions": partitions})
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines == [
        ["g:", "empty,", "0", "members,", "lag", "3", "or", "more"],
        ["topic", "partition", "committed", "end", "lag", "state"],
        ["t", "0", "5", "8", "3"],
        ["t", "1", "5", "-", "-", "its", "leader", "is", "silent"],
    ]
