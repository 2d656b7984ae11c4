"""Tests that need several brokers: throttled reassignments and preferred leaders."""

import re
import time
import uuid

from components.apache_kafka import KafkaError

from conformance.tools.base import Tools, contains, equal

MOVE = "reassign.ReassignPartitionsCommand"
COUNT, SIZE = 5000, 1000
MOVED_WITHIN_SECONDS = 60.0
VERIFYING_SECONDS = 20.0
# So slow that five megabytes never arrive before the reassignment is cancelled.
CRAWLING_BYTES_PER_SECOND = 1000


def _brokers(tools: Tools) -> list[str]:
    """The ids of three brokers."""
    found = re.findall(r"\(id: (\d+)", tools.run("BrokerApiVersionsCommand"))
    assert len(set(found)) >= 3, f"there are only the brokers {found}"
    return sorted(set(found))[:3]


def _topic_on(tools: Tools, *brokers: str) -> str:
    """Create a topic with one partition on these brokers; the first one leads it."""
    name = f"tools-{uuid.uuid4().hex[:12]}"
    said = tools.run(
        "TopicCommand", "--create", "--topic", name, "--replica-assignment", ":".join(brokers)
    )
    contains(said, f"Created topic {name}")
    return name


def _state(tools: Tools, topic: str) -> tuple[str, list[str], list[str]]:
    """The leader, the replicas and the ISR (sorted by broker id)."""
    said = tools.run("TopicCommand", "--describe", "--topic", topic)
    found = re.search(r"Leader: (\S+)\s+Replicas: (\S+)\s+Isr: (\S+)", said)
    assert found, said
    return found[1], found[2].split(","), sorted(found[3].split(","))


def _move(tools: Tools, topic: str, brokers: list[str], throttle: int = 100_000_000) -> str:
    """Start to move the replicas; return the tool's reassignment file."""
    move = {"topic": topic, "partition": 0, "replicas": [int(each) for each in brokers]}
    file = tools.write(f"{topic}.json", {"version": 1, "partitions": [move]})
    options = ("--reassignment-json-file", file, "--execute", "--throttle", str(throttle))
    contains(tools.run(MOVE, *options), "started", f"throttle limit was set to {throttle} B/s")
    return file


def _wait_moved(tools: Tools, topic: str, file: str) -> None:
    until = time.monotonic() + MOVED_WITHIN_SECONDS
    while True:
        said = tools.run(MOVE, "--reassignment-json-file", file, "--verify")
        if f"Reassignment of partition {topic}-0 is completed" in said:
            return
        assert time.monotonic() < until, said
        time.sleep(0.5)


def replicas_move_to_another_broker(tools: Tools) -> None:
    a, b, c = _brokers(tools)
    name = _topic_on(tools, a, b)
    equal(_state(tools, name), (a, [a, b], [a, b]))
    tools.fill(name, COUNT, size=SIZE)
    _wait_moved(tools, name, _move(tools, name, [c, b]))
    leader, replicas, in_sync = _state(tools, name)
    equal((replicas, in_sync), ([c, b], [b, c]))
    assert leader in replicas, f"{leader} leads, of {replicas}"
    equal(tools.end_offsets(name), {0: COUNT})
    said = tools.run("ConsumerPerformance", "--topic", name, "--num-records", str(COUNT))
    assert f", {COUNT}, " in said, said
    entity = ("--entity-type", "topics", "--entity-name", name)
    assert "throttled" not in tools.run("ConfigCommand", *entity, "--describe")


def a_throttled_move_is_cancelled(tools: Tools) -> None:
    a, b, _ = _brokers(tools)
    name = _topic_on(tools, a)
    tools.fill(name, COUNT, size=SIZE)
    file = _move(tools, name, [b], CRAWLING_BYTES_PER_SECOND)
    contains(tools.run(MOVE, "--list"), f"{name}-0: replicas: ", f"adding: {b}.", f"removing: {a}.")
    said = tools.run(MOVE, "--reassignment-json-file", file, "--verify")
    contains(said, f"Reassignment of partition {name}-0 is still in progress")
    said = tools.run(MOVE, "--reassignment-json-file", file, "--cancel")
    contains(said, f"Successfully cancelled partition reassignment for: {name}-0")
    equal(_state(tools, name), (a, [a], [a]))
    assert name not in tools.run(MOVE, "--list")


def the_preferred_leader_comes_back(tools: Tools) -> None:
    a, b, _ = _brokers(tools)
    name = _topic_on(tools, a, b)
    _wait_moved(tools, name, _move(tools, name, [b, a]))
    equal(_state(tools, name), (a, [b, a], [a, b]))
    kind = ("--election-type", "preferred", "--topic", name, "--partition", "0")
    said = tools.run("LeaderElectionCommand", *kind)
    contains(said, "Successfully completed leader election (PREFERRED)", f"{name}-0")
    equal(_state(tools, name), (b, [b, a], [a, b]))


def no_replica_is_missing(tools: Tools) -> None:
    name = tools.topic(partitions=3)
    tools.fill(name, COUNT)
    for which in ("under-replicated", "under-min-isr", "unavailable", "at-min-isr"):
        said = tools.run("TopicCommand", "--describe", "--topic", name, f"--{which}-partitions")
        assert name not in said, said


def every_replica_answers_the_same(tools: Tools) -> None:
    """Kafka's own replica check: it reads from the followers, and runs until it is killed."""
    name = tools.topic()
    tools.fill(name, COUNT)
    try:
        said = tools.jars.run(
            "org.apache.kafka.tools.ReplicaVerificationTool",
            *("--broker-list", tools.bootstrap, "--topics-include", name),
            *("--time", "-2", "--report-interval-ms", "500"),
            seconds=VERIFYING_SECONDS,
        )
    except KafkaError as fault:
        said = str(fault)
    contains(said, "did not end in", f"max lag is 0 for partition {name}-0 at offset {COUNT}")
    for difference in ("doesn't match", "unmatched", "ERROR"):
        assert difference not in said, said


TESTS = (
    replicas_move_to_another_broker,
    a_throttled_move_is_cancelled,
    the_preferred_leader_comes_back,
    no_replica_is_missing,
    every_replica_answers_the_same,
)
