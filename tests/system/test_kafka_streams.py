"""A Kafka Streams application with `group.protocol=streams`, killed and scaled while it runs: what
it counts is what a batch computation counts, each word once.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from components.apache_kafka import KafkaJars
from components.child import Child
from components.kafka_streams import RUNNING, WordCounts, stop
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from tests.system.cluster_load import QUICK

from components import fixture
from conformance import log_dump
from ottla.client.client import Client
from ottla.client.coordinators import Coordinated
from ottla.client.question import Question
from ottla.testing import Cluster

kafka_jars = fixture.kafka_jars
streams_jars = fixture.streams_jars
pytestmark = [pytest.mark.kafka, pytest.mark.timeout(600)]

TOOL = "org.apache.kafka.tools.streams.StreamsGroupCommand"
PARTITIONS = 4
WITHIN_S = 120
SETTINGS = {
    "group.streams.initial.rebalance.delay.ms": 0,
    "group.streams.min.heartbeat.interval.ms": 100,
    "group.streams.heartbeat.interval.ms": 300,
    "group.streams.min.session.timeout.ms": 1_000,
    "group.streams.session.timeout.ms": 5_000,
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": 500,
}
OPTIONS = [part for name, value in SETTINGS.items() for part in ("--config", f"{name}={value}")]
SHORT_TRANSACTIONS = "transaction.timeout.ms=5000"
"""Of an instance that is killed: others wait for the end of its transaction."""


class Application:
    """The instances, the words that were written, and the counts that were read."""

    def __init__(self, jars: KafkaJars, bootstrap: str, folder: Path, replicas: int) -> None:
        self.bootstrap = bootstrap
        self.counts = WordCounts(
            jars, bootstrap, "app", "lines", "counted", folder, (SHORT_TRANSACTIONS,)
        )
        self.instances: dict[int, Child] = {}
        self.written: Counter[str] = Counter()
        self.read: dict[str, list[int]] = {}
        self._random = Random(1)
        admin = AdminClient({"bootstrap.servers": bootstrap})
        topics = [NewTopic(name, PARTITIONS, replicas) for name in ("lines", "counted")]
        for made in admin.create_topics(topics).values():
            made.result()
        self._producer = Producer({"bootstrap.servers": bootstrap, "acks": "all"})
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "none",
                # Its end would wait 45 s to commit to a coordinator that is gone by then.
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                "auto.offset.reset": "earliest",
            }
        )
        self._consumer.assign([TopicPartition("counted", n, 0) for n in range(PARTITIONS)])

    def write(self, lines: int) -> None:
        """As many into each partition. librdkafka's partitioner would send all lines of 10 ms into
        one as soon as it is connected to the leader, and what is never read has no offset.
        """
        for number in range(lines):
            words = [f"w{self._random.randrange(40)}" for _ in range(5)]
            self.written.update(words)
            self._producer.produce("lines", " ".join(words), partition=number % PARTITIONS)
        assert self._producer.flush(60) == 0

    def start(self, number: int, *, is_static: bool = False) -> None:
        settings = [f"group.instance.id=i{number}"] if is_static else []
        self.instances[number] = self.counts.start(number, *settings)

    def kill(self, number: int) -> None:
        self.instances.pop(number).process.kill()

    def said(self) -> str:
        return "\n".join(each.last_words() for each in self.instances.values())

    def is_running(self, number: int) -> bool:
        instance = self.instances[number]
        assert instance.process.poll() is None, instance.last_words()
        return RUNNING in instance.log.read_text()

    def read_counts(self) -> None:
        message = self._consumer.poll(0.1)
        while message is not None:
            if message.error() is None:
                count = int.from_bytes(message.value(), "big")
                self.read.setdefault(message.key().decode(), []).append(count)
            message = self._consumer.poll(0)

    def has_counted_all(self) -> bool:
        self.read_counts()
        return {word: counts[-1] for word, counts in self.read.items()} == self.written

    def wait(self, is_done: Callable[[], bool]) -> None:
        until_s = time.monotonic() + WITHIN_S
        while not is_done():
            assert time.monotonic() < until_s, self.said()
            time.sleep(0.1)

    def check(self) -> None:
        """The last counts are those of a batch, and none was counted twice on the way."""
        self.wait(self.has_counted_all)
        for word, counts in self.read.items():
            assert counts == sorted(set(counts)), f"{word} was counted twice"

    def described(self) -> Any:
        def build(messages: Any) -> Any:
            return messages.StreamsGroupDescribeRequest(
                group_ids=("app",), include_topology_description=True
            )

        with Client(self.bootstrap) as client:
            asked = client.ask_coordinators(
                Coordinated.GROUP,
                ["app"],
                lambda _: Question(89, 1, build),
                lambda response: [("app", response.groups[0])],
            )
        return asked["app"][1]

    def is_balanced(self, instances: int) -> bool:
        """All members of so many instances have tasks, and none waits for any."""
        group = self.described()
        processes = {member.process_id for member in group.members}
        return (
            group.group_state == "Stable"
            and len(processes) == instances
            and all(member.assignment.active_tasks for member in group.members)
        )

    def close(self) -> None:
        for instance in self.instances.values():
            instance.process.kill()
            instance.process.wait()
        self._consumer.close()


@pytest.fixture
def application(
    new_broker: Any, streams_jars: KafkaJars, tmp_path: Path
) -> Iterator[Callable[..., Application]]:
    made: list[Application] = []

    def make(bootstrap: str, replicas: int = 1) -> Application:
        made.append(Application(streams_jars, bootstrap, tmp_path, replicas))
        return made[0]

    yield make
    for each in made:
        each.close()


def test_killed_and_scaled(new_broker: Any, application: Any) -> None:
    broker = new_broker(*OPTIONS, "--config", "group.streams.num.standby.replicas=1")
    app = application(broker.bootstrap)
    app.write(500)
    app.start(1)
    app.wait(lambda: app.is_running(1))
    app.start(2)
    app.write(500)
    app.wait(lambda: app.is_balanced(2))
    app.write(500)
    app.kill(1)
    app.write(500)
    app.start(3)
    app.wait(lambda: app.is_balanced(2))
    app.start(4)
    app.write(500)
    app.wait(lambda: app.is_balanced(3))
    stop(app.instances.pop(2))
    app.write(500)
    app.wait(lambda: app.is_balanced(2))
    app.check()


def test_static_members_come_back(new_broker: Any, application: Any) -> None:
    """An instance is restarted: its threads have the tasks that they had, and nobody else's move
    (KIP-345, KIP-1071). The application has described itself (KIP-1331).
    """
    broker = new_broker(*OPTIONS, "--config", "group.streams.session.timeout.ms=60000")
    app = application(broker.bootstrap)

    def tasks() -> dict[str, Any]:
        return {each.instance_id: each.assignment.active_tasks for each in app.described().members}

    def ids() -> dict[str, str]:
        return {each.instance_id: each.member_id for each in app.described().members}

    app.write(300)
    app.start(1, is_static=True)
    app.start(2, is_static=True)
    app.wait(lambda: app.is_balanced(2))
    before, had = tasks(), ids()
    assert len(before) == 4
    app.write(300)
    stop(app.instances.pop(2))
    assert tasks() == before, "an instance that is away keeps its place"
    app.write(300)
    app.start(2, is_static=True)
    app.wait(lambda: app.is_balanced(2))
    assert tasks() == before
    own = {name for name, member_id in ids().items() if had[name] != member_id}
    assert {name[:2] for name in own} == {"i2"}
    app.check()
    group = app.described()
    assert group.topology_description_status == 3
    nodes = [node for each in group.topology_description.subtopologies for node in each.nodes]
    assert {each.node_type for each in nodes} == {1, 2, 3}
    assert [each.source_topics for each in nodes if "lines" in each.source_topics] == [("lines",)]


def test_a_coordinator_that_fails_over(application: Any, tmp_path: Path) -> None:
    with Cluster(
        3, {**QUICK, **SETTINGS, "min.insync.replicas": 2}, data=tmp_path / "c"
    ) as cluster:
        app = application(cluster.bootstrap, 3)
        app.write(300)
        app.start(1)
        app.start(2)
        app.wait(lambda: app.is_balanced(2))
        app.write(300)
        for broker_id in (1, 2, 3):
            cluster.kill(broker_id)
            app.write(300)
            cluster.start(broker_id)
        app.wait(lambda: app.is_balanced(2))
        app.write(300)
        app.check()


def test_kafkas_tools_and_records(
    new_broker: Any, application: Any, streams_jars: KafkaJars, tmp_path: Path
) -> None:
    broker = new_broker(*OPTIONS, data=tmp_path / "data")

    def tool(*arguments: str) -> str:
        said: str = streams_jars.run(TOOL, "--bootstrap-server", broker.bootstrap, *arguments)
        return said

    app = application(broker.bootstrap)
    app.write(50)
    app.start(1)
    app.wait(lambda: app.is_balanced(1))
    app.check()
    assert re.search(r"^app +Stable", tool("--list", "--state"), re.MULTILINE)
    shown = tool("--describe", "--group", "app")
    assert len(re.findall(r"^app +lines +[0-3] +\d+", shown, re.MULTILINE)) == 4, shown
    members = tool("--describe", "--group", "app", "--members", "--verbose")
    assert len(re.findall(r"ACTIVE: 0:\[\d,\d\]; 1:\[\d,\d\]; TARGET", members)) == 2, members
    state = tool("--describe", "--group", "app", "--state", "--verbose")
    assert re.search(r" Stable +(\d+) +\1 +2$", state, re.MULTILINE), state
    stop(app.instances.pop(1))
    # The tool resets a topic only if the group has an offset in each of its partitions.
    reset = tool(
        "--reset-offsets", "--group", "app", "--input-topic", "lines", "--to-earliest", "--execute"
    )
    assert len(re.findall(r"^app +lines +[0-3] +0", reset, re.MULTILINE)) == 4, reset
    assert "successful" in tool("--delete", "--group", "app")
    assert not re.search(r"^app\b", tool("--list"), re.MULTILINE)
    assert broker.stop() == 0
    assert log_dump.faults(streams_jars, tmp_path / "data") == []
    logs = sorted((tmp_path / "data").glob("__consumer_offsets-*/*.log"))
    files = ",".join(str(path) for path in logs if path.stat().st_size)
    shown = streams_jars.run(log_dump.TOOL, "--files", files, "--offsets-decoder")
    kinds = set(map(int, re.findall(r'key: \{"type":"?(\d+)', shown)))
    assert kinds >= {17, 19, 20, 21, 22, 23}, shown[:3000]
    assert "Exception" not in shown
