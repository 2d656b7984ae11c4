"""Committing a pipeline's place to a group, beside the query."""

import json
import socket
import uuid
from collections.abc import Callable

import pytest

from ottla.pipelines.progress import commits
from ottla.pipelines.progress.commits import Delivered, GroupCommitter, batch_in

WAIT_S = 30


def delivered(topic: str, batch: int, **where: object) -> Delivered:
    offsets = {topic: {0: 10 * batch, 1: 10 * batch + 1}}
    return Delivered("flights", "id-1", batch, offsets, **where)


def test_metadata_says_which_version_holds_the_batch() -> None:
    said = json.loads(delivered("t", 3, table="/lake/flights", version=7).metadata())

    assert said == {
        "ottla.pipeline": 1,
        "query": "flights",
        "id": "id-1",
        "batch": 3,
        "delta": {"table": "/lake/flights", "version": 7},
    }


def test_metadata_leaves_out_what_is_not_known_or_too_long() -> None:
    assert "delta" not in json.loads(delivered("t", 3, table="/x").metadata())
    long = delivered("t", 3, table="/x" * 4_000, version=7).metadata()
    assert "delta" not in json.loads(long)
    assert len(long) <= commits.MAX_METADATA_BYTES


@pytest.mark.parametrize(
    "metadata", [None, "", "{", "[]", "17", '{"id": "other", "batch": 3}', '{"id": "id-1"}']
)
def test_metadata_of_others_names_no_batch(metadata: str | None) -> None:
    assert batch_in(metadata, "id-1") is None


def committed(bootstrap: str, group: str, topic: str) -> list[tuple[int, str | None]]:
    from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition
    from confluent_kafka.admin import AdminClient

    admin = AdminClient({"bootstrap.servers": bootstrap})
    asked = [TopicPartition(topic, partition) for partition in (0, 1)]
    futures = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group, asked)])
    answers = futures[group].result(timeout=WAIT_S).topic_partitions
    return [(answer.offset, answer.metadata) for answer in answers]


def test_a_group_learns_each_batch_in_order(bootstrap: str, new_topic: Callable[..., str]) -> None:
    topic, group = new_topic(), f"group-{uuid.uuid4().hex[:8]}"
    committer = GroupCommitter(bootstrap, group)
    assert committer.last_batch("id-1", topic, [0, 1]) is None

    for batch in range(1, 6):
        committer.put(delivered(topic, batch, table="/lake/flights", version=batch))

    assert committer.drain(WAIT_S)
    offsets, metadata = zip(*committed(bootstrap, group, topic), strict=True)
    assert offsets == (50, 51)
    assert json.loads(metadata[0])["delta"] == {"table": "/lake/flights", "version": 5}
    assert committer.last_batch("id-1", topic, [0, 1]) == 5
    assert committer.last_batch("id-2", topic, [0, 1]) is None
    committer.close()


def test_a_broker_that_is_away_is_said_once_and_what_waits_is_bounded(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(commits, "TIMEOUT_S", 0.1)
    monkeypatch.setattr(commits, "PAUSE_S", 0.01)
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        committer = GroupCommitter(f"127.0.0.1:{unused.getsockname()[1]}", "group")
        for batch in range(3):
            committer.put(delivered("t", batch))
            assert not committer.drain(1.0)
        for batch in range(commits.MAX_WAITING + 7):
            committer.put(delivered("t", batch))
        assert not committer.drain(1.0)
        committer.close()

    assert caplog.text.count("cannot be committed") == 1
    assert len(committer._waiting) == commits.MAX_WAITING


def test_what_waited_is_committed_when_the_broker_is_back(
    bootstrap: str,
    new_topic: Callable[..., str],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    topic, group = new_topic(), f"group-{uuid.uuid4().hex[:8]}"
    monkeypatch.setattr(commits, "PAUSE_S", 0.01)
    committer = GroupCommitter(bootstrap, group)
    answers = iter(["away"] * commits.TRIES)
    real = committer._try_commit
    monkeypatch.setattr(committer, "_try_commit", lambda what: next(answers, "") or real(what))

    committer.put(delivered(topic, 1))
    assert not committer.drain(1.0)
    committer.put(delivered(topic, 2))

    assert committer.drain(WAIT_S)
    assert [offset for offset, _ in committed(bootstrap, group, topic)] == [20, 21]
    assert "cannot be committed" in caplog.text
    assert "is committed again" in caplog.text
    committer.close()
