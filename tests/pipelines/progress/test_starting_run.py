"""The state of a run before its query has started, on a real broker."""

import time
from collections.abc import Callable
from dataclasses import replace

from ottla.pipelines.progress.commits import Delivered, GroupCommitter
from ottla.pipelines.progress.group import Group
from ottla.pipelines.progress.starting_run import StartingRun, new_run, read_starting
from ottla.pipelines.progress.status import read_status

WAIT_S = 30


def wait_for(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.05)


def test_a_run_is_seen_from_its_start_and_handed_over(
    bootstrap: str, new_topic: Callable[..., str], new_group: Callable[[], Group]
) -> None:
    topic, group = new_topic(), new_group()
    settings = {"bootstrap.servers": bootstrap}
    starting = StartingRun(settings, group.name, topic, "flights")
    wait_for(lambda: read_starting(group) is not None)

    status = read_status(settings, group.name)
    # Nothing counts as read.
    assert (status.offsets, status.lag) == ({}, None)
    assert status.metadata is not None
    assert status.metadata.run is not None
    assert (status.metadata.run.id, status.metadata.run.state) == (starting.run.id, "starting")

    committer = GroupCommitter(group, run=replace(starting.run, state="running"))
    committer.put(Delivered("flights", "id-1", 3, {topic: {0: 2}}))
    starting.handed_over(committer)
    starting.end("stopped")  # has no effect any more
    committer.close()

    assert read_starting(group) is None
    metadata = read_status(settings, group.name).metadata
    assert metadata is not None
    assert metadata.run is not None
    assert (metadata.run.id, metadata.run.state, metadata.batch) == (starting.run.id, "running", 3)


def test_a_start_that_fails_is_newer_than_the_last_run(
    bootstrap: str, new_topic: Callable[..., str], new_group: Callable[[], Group]
) -> None:
    topic, group = new_topic(), new_group()
    before = replace(new_run("stopped"), since_ms=1, seen_ms=2)
    group.commit(Delivered("flights", "id-1", 3, {topic: {0: 2}}, "/lake", 4).commits(before))

    starting = StartingRun({"bootstrap.servers": bootstrap}, group.name, topic, "flights")
    starting.end("failed", failure="the table is gone")

    status = read_status({"bootstrap.servers": bootstrap}, group.name)
    assert status.offsets == {(topic, 0): 2}
    metadata = status.metadata
    assert metadata is not None
    assert metadata.run is not None
    assert (metadata.run.state, metadata.run.failure) == ("failed", "the table is gone")
    assert (metadata.batch, metadata.table) == (3, "/lake")

    # The next run that gets further is newer again.
    later = replace(new_run("running"), seen_ms=metadata.run.seen_ms + 1)
    group.commit(Delivered("flights", "id-1", 4, {topic: {0: 3}}).commits(later))
    metadata = read_status({"bootstrap.servers": bootstrap}, group.name).metadata
    assert metadata is not None
    assert metadata.run == later
