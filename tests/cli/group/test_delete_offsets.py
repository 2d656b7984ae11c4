"""`ottla group delete-offsets`: what is asked of the coordinator, and its refusals."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest
from tests.client.answers import groups
from tests.client.fake_cluster import FakeCluster

from ottla.cli import confirmation
from ottla.cli.app import carry_out
from ottla.client.admin.committed_offsets import OFFSET_DELETE
from ottla.client.admin.groups import Group
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages import messages_of

EMPTY = Group("g", "empty", "classic", None, 2, False, ())


class Coordinator:
    """Of the group g, which has committed t-0 and t-1: broker 2."""

    def __init__(self) -> None:
        self.code = self.partition_code = ErrorCode.none
        known = groups({"g": EMPTY}, {"g": {("t", 0): 5, ("t", 1): 7}})
        self.cluster = FakeCluster({OFFSET_DELETE: [self.answer], **known})
        self.cluster.leaders |= {("t", 9): 1}

    @property
    def asked(self) -> list[Any]:
        return self.cluster.requests(OFFSET_DELETE)

    def answer(self, address: str, request: Any) -> Any:
        assert address == "b2:9092"
        build = messages_of(OFFSET_DELETE, 0)
        partition = build.OffsetDeleteResponsePartition(
            partition_index=0, error_code=self.partition_code
        )
        topic = build.OffsetDeleteResponseTopic(name="t", partitions=(partition,))
        return build.OffsetDeleteResponse(error_code=self.code, topics=(topic,))


@pytest.fixture
def coordinator() -> Coordinator:
    return Coordinator()


def run(coordinator: Coordinator, *words: str) -> int:
    cluster = SimpleNamespace(client=coordinator.cluster.client())
    return carry_out(["group", "delete-offsets", "g", *words], cluster)


def test_what_was_committed_is_deleted(
    coordinator: Coordinator, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(coordinator, "-t", "t:0", "-t", "t:9", "--yes", "--json") == 0
    assert json.loads(capsys.readouterr().out) == {
        "group": "g",
        "deleted": True,
        "partitions": [{"topic": "t", "partition": 0, "committed_offset": 5}],
    }
    (request,) = coordinator.asked
    (topic,) = request.topics
    assert (request.group_id, topic.name) == ("g", "t")
    assert [each.partition_index for each in topic.partitions] == [0]


def test_a_no_and_a_dry_run_delete_nothing(
    coordinator: Coordinator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(confirmation, "ask", lambda *_, **__: False)
    assert run(coordinator, "-t", "t:0") == 1
    assert run(coordinator, "-t", "t:0", "--dry-run") == 0
    assert coordinator.asked == []


def test_without_a_topic_or_an_offset_nothing_is_asked(
    coordinator: Coordinator, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(coordinator, "--yes") == 2
    assert "no topic given" in capsys.readouterr().err
    assert run(coordinator, "-t", "t:9", "--yes") == 1
    assert "has no committed offsets there" in capsys.readouterr().err
    assert coordinator.asked == []


@pytest.mark.parametrize(
    ("code", "of_partition", "reason"),
    [
        (ErrorCode.none, ErrorCode.group_subscribed_to_topic, "members are subscribed to t"),
        (ErrorCode.none, ErrorCode.topic_authorization_failed, "for t-0: topic authorization"),
        (ErrorCode.not_coordinator, ErrorCode.none, "group 'g': not coordinator"),
    ],
)
def test_a_refusal_is_one_line(
    coordinator: Coordinator,
    code: ErrorCode,
    of_partition: ErrorCode,
    reason: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    coordinator.code, coordinator.partition_code = code, of_partition
    assert run(coordinator, "-t", "t:0", "--yes") == 1
    assert reason in capsys.readouterr().err
