"""Committing a pipeline's offsets to a group, beside the query."""

import json
import socket
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from ottla.pipelines.progress import commits
from ottla.pipelines.progress import group as group_module
from ottla.pipelines.progress.commits import Delivered, GroupCommitter, last_batch
from ottla.pipelines.progress.group import Commit, Group
from ottla.pipelines.progress.offset_metadata import Run, read_offset_metadata
from ottla.pipelines.progress.requests import StopRequest, put_request
from ottla.pipelines.progress.starting_run import new_run
from ottla.pipelines.rejected_offsets import RejectedOffsets, RejectedRange

WAIT_S = 30


def delivered(topic: str, batch: int | None, **where: Any) -> Delivered:
    ends = {topic: {0: 10 * (batch or 0), 1: 10 * (batch or 0) + 1}}
    return Delivered("flights", "id-1", batch, ends, **where)


def state_in(group: Group, topic: str) -> Run:
    """The run that the group has, on the lowest partition alone."""
    found = group.read_all()
    other = read_offset_metadata(found[topic, 1].metadata)
    assert other is None or other.run is None
    metadata = read_offset_metadata(found[topic, 0].metadata)
    assert metadata is not None
    assert metadata.run is not None
    return metadata.run


def test_a_group_gets_each_batch_in_order(
    new_topic: Callable[..., str], new_group: Callable[[], Group]
) -> None:
    topic, group = new_topic(), new_group()
    partitions = [(topic, 0), (topic, 1)]
    assert last_batch(group, "id-1", partitions) is None
    committer = GroupCommitter(group)

    for batch in range(1, 6):
        committer.put(delivered(topic, batch, table="/lake/flights", version=batch))

    assert committer.drain(WAIT_S)
    found = group.read_all()
    assert [found[partition].offset for partition in partitions] == [50, 51]
    metadata = json.loads(found[topic, 0].metadata)
    assert metadata == {
        "ottla.pipeline": 1,
        "query": "flights",
        "id": "id-1",
        "batch": 5,
        "delta": {"table": "/lake/flights", "version": 5},
    }
    assert last_batch(group, "id-1", partitions) == 5
    assert last_batch(group, "id-2", partitions) is None
    committer.close()


def test_a_run_keeps_its_state_beside_its_offsets(
    new_topic: Callable[..., str], new_group: Callable[[], Group]
) -> None:
    topic, group = new_topic(), new_group()
    committer = GroupCommitter(group, run=new_run("running"))

    committer.put(delivered(topic, None))
    assert committer.drain(WAIT_S)
    assert state_in(group, topic).state == "running"

    committer.update(rows=100, rejected=2, rows_per_s=12.5)
    committer.put(delivered(topic, 1))
    assert committer.drain(WAIT_S)
    assert (state_in(group, topic).rows, state_in(group, topic).rejected) == (100, 2)

    committer.update(state="failed", failure="The disk is full")
    assert committer.drain(WAIT_S)
    run = state_in(group, topic)
    assert (run.state, run.failure, run.rows) == ("failed", "The disk is full", 100)
    assert group.read_all()[topic, 0].offset == 10
    committer.close()


def test_state_is_renewed_while_no_batch_ends(
    new_topic: Callable[..., str],
    new_group: Callable[[], Group],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(commits, "RENEW_S", 0.05)
    topic, group = new_topic(), new_group()
    renewed = threading.Event()
    real = group.commit
    seen: list[dict[tuple[str, int], Commit]] = []

    def commit(some: dict[tuple[str, int], Commit]) -> None:
        seen.append(some)
        real(some)
        if len(seen) == 4:
            renewed.set()

    monkeypatch.setattr(group, "commit", commit)
    committer = GroupCommitter(group, run=new_run("running"))
    committer.put(delivered(topic, 1))

    assert renewed.wait(WAIT_S)
    committer.close()
    # One partition alone, its offset unchanged.
    assert all(list(one) == [(topic, 0)] for one in seen[1:])
    assert {one[topic, 0].offset for one in seen} == {10}


def test_a_request_stops_the_run_that_it_names(
    new_topic: Callable[..., str],
    new_group: Callable[[], Group],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(commits, "LOOK_S", 0.05)
    topic, group = new_topic(), new_group()
    stopped: list[StopRequest] = []
    asked = threading.Event()

    def stop(request: StopRequest) -> None:
        stopped.append(request)
        asked.set()

    run = new_run("running")
    companion = group.companion("stop")
    put_request(group, [(topic, 0)], StopRequest("an earlier run", "ben", 1))
    committer = GroupCommitter(group, run=run, on_stop=stop)
    committer.put(Delivered("flights", "id-1", None, {topic: {0: 0}}))
    until = threading.Event()
    for _ in range(int(WAIT_S / 0.05)):
        if not companion.read_all():
            break
        until.wait(0.05)
    assert companion.read_all() == {}
    put_request(group, [(topic, 0)], StopRequest(run.id, "anna", 2))

    assert asked.wait(WAIT_S)
    committer.close()
    assert [request.by for request in stopped] == ["anna"]
    assert companion.read_all() == {}


def test_a_broker_that_is_away_is_logged_once_and_what_waits_is_bounded(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(group_module, "TIMEOUT_S", 0.1)
    monkeypatch.setattr(commits, "PAUSE_S", 0.01)
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{unused.getsockname()[1]}"
        committer = GroupCommitter(Group({"bootstrap.servers": address}, "group"))
        for batch in range(3):
            committer.put(delivered("t", batch))
            assert not committer.drain(1.0)
        for batch in range(commits.MAX_WAITING + 7):
            said = RejectedOffsets((RejectedRange(batch, batch + 1),))
            committer.put(delivered("t", batch, rejected={("t", 0): said}))
        assert not committer.drain(1.0)
        committer.close()

    assert caplog.text.count("cannot be committed") == 1
    assert len(committer._waiting) == commits.MAX_WAITING
    # What the commits that were dropped would have said of rejected offsets is not lost.
    numbers = [len(one.rejected["t", 0].ranges) for one in list(committer._waiting)[:2]]
    assert numbers == [8, 1]


def test_each_partition_says_what_it_rejected() -> None:
    said = RejectedOffsets((RejectedRange(1, 2, "why"),), "kept")
    batch = Delivered("q", "id-1", 7, {"t": {0: 5, 1: 6, 2: 7}}, rejected={("t", 1): said})
    for run in (None, new_run("running")):
        found = {
            partition: json.loads(one.metadata) for partition, one in batch.commits(run).items()
        }
        assert [partition for partition, one in found.items() if "rejects" in one] == [("t", 1)]
        assert found["t", 1]["rejects"] == said.document()
        assert ("run" in found["t", 0]) is (run is not None)
        assert "run" not in found["t", 1]
    home = replace(batch, rejected={("t", 0): said})
    assert {"run", "rejects"} <= set(
        json.loads(home.state_commit(new_run("running"))["t", 0].metadata)
    )


def test_the_first_batch_says_where_each_partition_began() -> None:
    said = RejectedOffsets((RejectedRange(1, 2, "why"),), "kept")
    ends = {"t": {0: 5, 1: 6, 2: 7}}
    first = Delivered("q", "id-1", 0, ends, rejected={("t", 1): said}, begins={"t": {0: 0, 1: 4}})
    found = {partition: json.loads(one.metadata) for partition, one in first.commits(None).items()}
    assert {partition: one.get("from") for partition, one in found.items()} == {
        ("t", 0): 0,
        ("t", 1): 4,
        ("t", 2): None,
    }
    assert [partition for partition, one in found.items() if "rejects" in one] == [("t", 1)]


def test_what_waited_is_committed_when_the_broker_is_back(
    new_topic: Callable[..., str],
    new_group: Callable[[], Group],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    topic, group = new_topic(), new_group()
    monkeypatch.setattr(commits, "PAUSE_S", 0.01)
    committer = GroupCommitter(group)
    answers = iter(["away"] * commits.MAX_TRIES)
    real = committer._try_commit
    monkeypatch.setattr(committer, "_try_commit", lambda what: next(answers, "") or real(what))

    committer.put(delivered(topic, 1))
    assert not committer.drain(1.0)
    committer.put(delivered(topic, 2))

    assert committer.drain(WAIT_S)
    assert [commit.offset for commit in group.read_all().values()] == [20, 21]
    assert "cannot be committed" in caplog.text
    assert "is committed again" in caplog.text
    committer.close()
