"""Tests of groups of the consumer protocol (KIP-848) with Apache Kafka's own tools."""

import subprocess
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager

from components.apache_kafka import TOOL_JVM_FLAGS

from conformance.tools.base import TOOLS, Tools, contains, equal
from conformance.tools.clients import GROUPS, consumed, produced

COUNT = 2000
CONSUMER = ("--group-protocol", "consumer")
WAIT_SECONDS = 60


def _rows(said: str, group: str) -> list[list[str]]:
    return [line.split() for line in said.splitlines() if line.startswith(group)]


def verifiable_consumer_of_the_consumer_protocol(tools: Tools) -> None:
    topic = tools.topic(partitions=3)
    sent = produced(tools, topic, COUNT)
    for assignor in ("uniform", "range"):
        group = f"group-{uuid.uuid4().hex[:8]}"
        said = consumed(tools, topic, group, COUNT, *CONSUMER, "--group-remote-assignor", assignor)
        got = [event for event in said if event["name"] == "record_data"]
        wanted = sorted((event["partition"], event["offset"], event["value"]) for event in sent)
        equal(
            sorted((event["partition"], event["offset"], event["value"]) for event in got), wanted
        )
        commits = [event for event in said if event["name"] == "offsets_committed"]
        equal({event["success"] for event in commits}, {True})
        listed = tools.run("GroupsCommand", "--list")
        (row,) = _rows(listed, group)
        equal(row[1:], ["Consumer", "consumer"])
        described = tools.run(GROUPS, "--describe", "--group", group)
        equal(sum(int(each[3]) for each in _rows(described, group)), COUNT)


@contextmanager
def _member(tools: Tools, topic: str, group: str) -> Iterator[None]:
    """A consumer of the group that is there for a while."""
    command = tools.jars.command(
        f"{TOOLS}.VerifiableConsumer",
        *("--bootstrap-server", tools.bootstrap, *tools.config(), *CONSUMER),
        *("--topic", topic, "--group-id", group),
        jvm=TOOL_JVM_FLAGS,
    )
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield
    finally:
        process.terminate()
        process.wait(WAIT_SECONDS)


def _wait_for_members(tools: Tools, group: str, count: int) -> list[list[str]]:
    """Their rows, once so many have partitions."""
    until = time.monotonic() + WAIT_SECONDS
    while True:
        said = tools.run(GROUPS, "--describe", "--group", group, "--members", "--verbose")
        rows = _rows(said, group)
        if len(rows) == count and all(row[4] != "0" for row in rows):
            return rows
        assert time.monotonic() < until, said


def members_of_the_consumer_protocol(tools: Tools) -> None:
    """Described with their partitions and epochs while they are there."""
    topic = tools.topic(partitions=4)
    group = f"group-{uuid.uuid4().hex[:8]}"
    with _member(tools, topic, group), _member(tools, topic, group):
        rows = _wait_for_members(tools, group, 2)
        equal(sorted(int(row[4]) for row in rows), [2, 2])
        state = tools.run(GROUPS, "--describe", "--group", group, "--state", "--verbose")
        contains(state, "Stable", "uniform")
        contains(tools.run(GROUPS, "--delete", "--group", group), "The group is not empty")
    until = time.monotonic() + WAIT_SECONDS
    while "Empty" not in (said := tools.run(GROUPS, "--describe", "--group", group, "--state")):
        assert time.monotonic() < until, said
    contains(tools.run(GROUPS, "--delete", "--group", group), "successful")


TESTS = (
    verifiable_consumer_of_the_consumer_protocol,
    members_of_the_consumer_protocol,
)
