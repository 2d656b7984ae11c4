"""`ottla mirror` as a process: killed at random moments, moved groups, other clusters."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from components import fixture
from ottla.client.admin.committed_offsets import commit_offsets
from ottla.client.admin.records import delete_records
from ottla.client.client import Client
from ottla.client.topic_partition import TopicPartition as Partition
from ottla.testing import Broker, Cluster

kafka_jars = fixture.kafka_jars
apache_kafka = fixture.apache_kafka
WITHIN_S = 90.0
FAST = ("--commit-every", "0.1", "--refresh-every", "1")


def command(source: str, target: str, *words: str) -> list[str]:
    return [sys.executable, "-m", "ottla", "mirror", "--source", source, "-b", target, *words]


def finished(source: str, target: str, *words: str, code: int = 0) -> list[dict[str, Any]]:
    """A run with --json to its end: its events."""
    done = subprocess.run(
        command(source, target, *FAST, "--json", *words),
        capture_output=True,
        text=True,
        timeout=WITHIN_S,
        check=False,
    )
    assert done.returncode == code, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def failed(source: str, target: str, *words: str) -> str:
    """What a run that ends with exit code 1 says on standard error."""
    done = subprocess.run(
        command(source, target, *FAST, *words),
        capture_output=True,
        text=True,
        timeout=WITHIN_S,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    return done.stderr


@contextmanager
def producing(bootstrap: str, topic: str, partitions: int) -> Iterator[Callable[[], int]]:
    """Numbers to each partition, until the end; returns how many each partition got."""
    stop = threading.Event()
    sent = 0
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})

    def produce() -> None:
        nonlocal sent
        while not stop.wait(0.005):
            for _ in range(10):
                for partition in range(partitions):
                    producer.produce(topic, str(sent), partition=partition)
                sent += 1
            producer.poll(0)

    thread = threading.Thread(target=produce)
    thread.start()

    def end() -> int:
        stop.set()
        thread.join()
        assert producer.flush(60) == 0
        return sent

    try:
        yield end
    finally:
        end()


def all_values(bootstrap: str, topic: str, partitions: int) -> dict[int, list[bytes]]:
    """The committed records of each partition."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "all-values",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 10,  # how long the end of a partition takes
            "auto.offset.reset": "earliest",
        }
    )
    consumer.assign([TopicPartition(topic, each, 0) for each in range(partitions)])
    found: dict[int, list[bytes]] = {each: [] for each in range(partitions)}
    ended: set[int] = set()
    until = time.monotonic() + WITHIN_S
    while len(ended) < partitions:
        assert time.monotonic() < until
        for message in consumer.consume(1000, 0.5):
            if message.error() is None:
                found[message.partition()].append(message.value())
            else:
                ended.add(message.partition())
    consumer.close()
    return found


def killed_and_restarted(
    source: str,
    target: str,
    topic: str,
    log: Path,
    *,
    kills: int,
    seed: int,
    meanwhile: Callable[[], None] = lambda: None,
) -> None:
    """`meanwhile` is called while each of the killed mirrors runs."""
    chance = random.Random(seed)
    for _ in range(kills):
        with log.open("a") as errors:
            process = subprocess.Popen(
                command(source, target, *FAST, topic),
                stdout=errors,
                stderr=errors,
            )
            time.sleep(chance.uniform(1.0, 4.0))
            meanwhile()
            assert process.poll() is None, log.read_text()
            process.kill()
            process.wait()


@pytest.mark.parametrize("seed", [1])
def test_each_record_once_and_in_order_over_kills(seed: int, tmp_path: Path) -> None:
    with Broker() as source, Broker() as target:
        source.create_topic("numbers", partitions=3)
        with producing(source.bootstrap, "numbers", 3) as end:
            killed_and_restarted(
                source.bootstrap,
                target.bootstrap,
                "numbers",
                tmp_path / "log",
                kills=4,
                seed=seed,
            )
            count = end()
        finished(source.bootstrap, target.bootstrap, "numbers", "--once")
        expected = [str(each).encode() for each in range(count)]
        found = all_values(target.bootstrap, "numbers", 3)
    assert count > 100
    assert found == dict.fromkeys(range(3), expected)


@pytest.mark.full
@pytest.mark.kafka
def test_from_apache_kafka_into_a_cluster(apache_kafka: Any, tmp_path: Path) -> None:
    """Under load, with kills of the mirror, and of the broker of the target that it writes to."""
    with Cluster(3) as target:

        def restart_leader() -> None:
            leader = target.leader("load")
            target.kill(leader)
            target.start(leader)

        finished(apache_kafka.address, target.bootstrap, "--once", "nothing-yet")
        with producing(apache_kafka.address, "load", 1) as end:
            time.sleep(2)
            killed_and_restarted(
                apache_kafka.address,
                target.bootstrap,
                "load",
                tmp_path / "log",
                kills=5,
                seed=5,
                meanwhile=restart_leader,
            )
            count = end()
        finished(apache_kafka.address, target.bootstrap, "load", "--once")
        found = all_values(target.bootstrap, "load", 1)
    assert found == {0: [str(each).encode() for each in range(count)]}


@pytest.mark.kafka
def test_from_apache_kafka_and_back(apache_kafka: Any) -> None:
    with Broker() as ours:
        producer = Producer({"bootstrap.servers": apache_kafka.address})
        for number in range(500):
            producer.produce(
                "theirs", str(number), headers={"n": b"1"}, timestamp=1_700_000_000_000
            )
        assert producer.flush(60) == 0
        with Client(apache_kafka.address) as client:
            assert not commit_offsets(client, "readers", {Partition("theirs", 0): 123})
        events = finished(apache_kafka.address, ours.bootstrap, "theirs", "--switch", "readers")
        assert events[-1]["moved"] == [
            {"topic": "theirs", "partition": 0, "source_offset": 123, "target_offset": 123}
        ]
        found = ours.consume("theirs")
        assert [each.text for each in found] == [str(each) for each in range(500)]
        assert {each.timestamp_ms for each in found} == {1_700_000_000_000}
        # The other way round, under other names.
        ours.create_topic("ours").produce("a", "b", key="k")
        finished(ours.bootstrap, apache_kafka.address, "ours", "--once", "--prefix", "from.")
        assert all_values(apache_kafka.address, "from.ours", 1) == {0: [b"a", b"b"]}
        back = finished(ours.bootstrap, apache_kafka.address, "theirs", "--once", code=1)
        assert [each["event"] for each in back] == ["topic_refused"]
        assert "in a circle" in back[0]["text"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_clean_stop(number: int) -> None:
    with Broker() as source, Broker() as target:
        source.create_topic("t").produce("a", "b", "c")
        process = subprocess.Popen(
            command(source.bootstrap, target.bootstrap, *FAST),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        target.topic("t")
        until = time.monotonic() + WITHIN_S
        while not mirrored(target) and time.monotonic() < until:
            time.sleep(0.2)
        process.send_signal(number)
        out, err = process.communicate(timeout=WITHIN_S)
        assert process.returncode == 0, err
        assert out == "3 records mirrored, lag 0.\n"
        assert [each.text for each in target.consume("t")] == ["a", "b", "c"]


def test_a_mirror_that_has_nothing_to_do_ends() -> None:
    """Also while it still joins its group: an assignment within librdkafka's close() blocks it."""
    with Broker() as source, Broker() as target:
        source.create_topic("t", partitions=2).produce("a")
        for records in (1, 0, 0, 0, 0, 0):
            events = finished(source.bootstrap, target.bootstrap, "t", "--once")
            assert events[-1]["records"] == records


def mirrored(target: Broker) -> bool:
    with Client(target.bootstrap) as client:
        if "t" not in client.metadata(None).topics:
            return False
    return len(target.consume("t")) == 3


def test_an_instance_takes_over_what_another_was_killed_with() -> None:
    """The other's share and its open transaction: after its session, exactly once."""
    with Broker() as source, Broker() as target:
        topic = source.create_topic("t", partitions=2)
        first = subprocess.Popen(
            command(source.bootstrap, target.bootstrap, *FAST, "--instance", "a"),
            stderr=subprocess.DEVNULL,
        )
        for number in range(20):
            topic.produce(str(number), partition=number % 2)
            time.sleep(0.1)
        first.kill()
        first.wait()
        for number in range(20, 30):
            topic.produce(str(number), partition=number % 2)
        finished(source.bootstrap, target.bootstrap, "--once", "--instance", "b")
        expected = {
            each: [str(number).encode() for number in range(each, 30, 2)] for each in (0, 1)
        }
        # What follows a transaction that the killed one left open is seen once it has ended.
        until = time.monotonic() + WITHIN_S
        while (found := all_values(target.bootstrap, "t", 2)) != expected:
            assert time.monotonic() < until, found
            time.sleep(1.0)


def test_progress_as_json() -> None:
    with Broker() as source, Broker() as target:
        source.create_topic("t").produce("abc", key="k")
        events = finished(source.bootstrap, target.bootstrap, "--once")
    assert [each["event"] for each in events] == ["topic_created", "stopped"]
    last = events[-1]
    assert (last["records"], last["bytes"], last["lag"], last["partitions"]) == (1, 4, 0, 1)


def test_a_move_with_losses_fails() -> None:
    with Broker() as source, Broker() as target:
        source.create_topic("t").produce("a", "b", "c")
        finished(source.bootstrap, target.bootstrap, "--once")
        source.topic("t").produce("d", "e")
        with Client(source.bootstrap) as client:
            delete_records(client, {Partition("t", 0): 4})
            assert not commit_offsets(client, "g", {Partition("t", 0): 4})
        events = finished(source.bootstrap, target.bootstrap, "--switch", "g", code=1)
        assert [each["event"] for each in events] == ["records_removed", "stopped"]
        (moved,) = events[-1]["moved"]
        assert moved["source_offset"] == 4


def test_environment_is_not_needed() -> None:
    """The source is no profile's by chance."""
    environment = {**os.environ, "OTTLA_PROFILE": "none"}
    with Broker() as source, Broker() as target:
        source.create_topic("t").produce("a")
        done = subprocess.run(
            command(source.bootstrap, target.bootstrap, "--once"),
            env=environment,
            capture_output=True,
            timeout=WITHIN_S,
            check=False,
        )
        assert done.returncode == 0, done.stderr
