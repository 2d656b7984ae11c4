"""A running cluster changes from PLAINTEXT to SASL_SSL by the steps of docs/security.md."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
import time
from pathlib import Path
from textwrap import dedent
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from tests.security.authority import Authority

from ottla.testing import BrokerProcess
from ottla.testing.ports import HOST, free_ports
from ottla.testing.zookeeper_server import ZooKeeperEnsemble

PAGE = Path(__file__).parents[2] / "docs" / "security.md"
TITLE = "## From PLAINTEXT to SASL_SSL while the cluster runs"
WAIT_S = 60
SIZE = 3
SECRET = "secret"


def steps() -> tuple[list[list[str]], list[dict[str, str]]]:
    """The commands of the page, and the settings that its steps add, in order."""
    text = PAGE.read_text().partition(TITLE)[2].partition("\n## ")[0]
    blocks = re.findall(r"```(\w*)\n(.*?)\n *```", text, re.DOTALL)
    commands = [line.split() for kind, block in blocks if not kind for line in lines(block)]
    settings = [
        dict(line.split("=", 1) for line in lines(block))
        for kind, block in blocks
        if kind == "properties"
    ]
    return commands, settings


def lines(block: str) -> list[str]:
    return dedent(block).splitlines()


class RollingCluster:
    """Three brokers, whose settings a step changes one broker after the other."""

    def __init__(self, folder: Path, zookeeper: str) -> None:
        self.folder = folder
        self.authority = Authority()
        self.authority.trust(folder / "authority.pem")
        self.authority.issue("CN=broker").store(folder / "broker.pem")
        ports = free_ports(2 * SIZE)
        self.ports = {number: ports[2 * number - 2 : 2 * number] for number in range(1, SIZE + 1)}
        self.settings = {
            "listeners": "PLAINTEXT://:9092",
            "advertised.listeners": "PLAINTEXT://kafka-1.example.org:9092",
            "zookeeper.connect": zookeeper,
            "offsets.topic.replication.factor": str(SIZE),
            "min.insync.replicas": "2",
        }
        self.brokers: dict[int, BrokerProcess] = {}

    def bootstrap(self, listener: int) -> str:
        return ",".join(f"{HOST}:{self.ports[number][listener]}" for number in self.ports)

    def start(self, number: int) -> None:
        plain, secured = map(str, self.ports[number])
        given = self.settings | {"node.id": str(number)}
        told = {"kafka-1.example.org": HOST, "9092": plain, "9093": secured}
        told |= {"://:": f"://{HOST}:", "/etc/ottla": str(self.folder)}
        options = []
        for name, value in given.items():
            for words, instead in told.items():
                value = value.replace(words, instead)
            options += ["-c", f"{name}={value}"]
        listener = "9092" not in self.settings["listeners"]
        address = f"{HOST}:{self.ports[number][listener]}"
        broker = BrokerProcess(self.folder / f"data-{number}", options, bootstrap=address)
        self.brokers[number] = broker
        broker.start()

    def change(self, more: dict[str, str], admin: AdminClient) -> None:
        self.settings |= more
        for number in self.ports:
            self.brokers[number].stop()
            self.start(number)
            wait_in_sync(admin)

    def end(self) -> None:
        for broker in self.brokers.values():
            broker.end()


def wait_in_sync(admin: AdminClient) -> None:
    until = time.monotonic() + WAIT_S
    while True:
        topics = admin.list_topics(timeout=WAIT_S).topics.values()
        partitions = [each for topic in topics for each in topic.partitions.values()]
        if partitions and all(len(each.isrs) == SIZE for each in partitions):
            return
        assert time.monotonic() < until, [(each.id, each.isrs) for each in partitions]
        time.sleep(0.1)


class Application:
    """Writes numbers and reads them in a group, until it is stopped: what it was told is kept."""

    def __init__(self, settings: dict[str, Any], first: int) -> None:
        self.next, self.acknowledged = first, list[int]()
        self.read: list[int] = []
        self.failures: list[str] = []
        self._stopping = threading.Event()
        self._settings = settings
        self._threads = [threading.Thread(target=each) for each in (self._write, self._read)]
        for thread in self._threads:
            thread.start()

    def wait_acknowledged(self, count: int) -> None:
        until = time.monotonic() + WAIT_S
        while len(self.acknowledged) < count:
            assert time.monotonic() < until, self.failures
            time.sleep(0.05)

    def stop(self) -> None:
        self._stopping.set()
        for thread in self._threads:
            thread.join(2 * WAIT_S)
            assert not thread.is_alive()

    def _write(self) -> None:
        producer = Producer(self._settings | {"enable.idempotence": True, "linger.ms": 1})

        def told(error: Any, message: Any) -> None:
            if error is None:
                self.acknowledged.append(int(message.value()))
            else:
                self.failures.append(str(error))

        while not self._stopping.is_set():
            producer.produce("t", str(self.next).encode(), partition=0, on_delivery=told)
            self.next += 1
            producer.poll(0.002)
        assert producer.flush(WAIT_S) == 0

    def _read(self) -> None:
        reset = {"auto.offset.reset": "earliest", "group.id": "readers"}
        consumer = Consumer(self._settings | reset)
        consumer.subscribe(["t"])
        while not self._stopping.is_set():
            message = consumer.poll(0.1)
            if message is not None and message.error() is None:
                self.read.append(int(message.value() or b""))
        consumer.close()  # commits, and leaves the group


def stored(settings: dict[str, Any]) -> list[int]:
    """All values of the partition, in order."""
    consumer = Consumer(settings | {"group.id": "checking", "enable.auto.commit": False})
    consumer.assign([TopicPartition("t", 0, 0)])
    _, end = consumer.get_watermark_offsets(TopicPartition("t", 0), WAIT_S)
    found: list[int] = []
    while True:
        (at,) = consumer.position([TopicPartition("t", 0)])
        if at.offset >= end:
            break
        for message in consumer.consume(10_000, 1):
            assert message.error() is None, message.error()
            value = message.value()
            assert value is not None
            found.append(int(value))
    consumer.close()
    return found


def test_nothing_is_lost_or_doubled_while_a_cluster_changes_its_listener(tmp_path: Path) -> None:
    commands, (second, among_brokers, without_first) = steps()
    ensemble = ZooKeeperEnsemble(tmp_path / "zookeeper")
    cluster = RollingCluster(tmp_path, ensemble.connect)
    running: list[Application] = []
    try:
        ensemble.start()
        for number in cluster.ports:
            cluster.start(number)
        plain: dict[str, Any] = {"bootstrap.servers": cluster.bootstrap(0), "log_level": 0}
        secured = {
            **plain,
            "bootstrap.servers": cluster.bootstrap(1),
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.username": "app",
            "sasl.password": SECRET,
            "ssl.ca.location": str(tmp_path / "authority.pem"),
        }
        admin = AdminClient(plain)
        admin.create_topics([NewTopic("t", 1, SIZE)], request_timeout=WAIT_S)["t"].result(WAIT_S)
        running.append(Application(plain, 0))
        for command in commands:
            add_user(command, cluster)
        cluster.change(second, admin)
        cluster.change(among_brokers, admin)
        # A group has members on both listeners for a moment.
        running.append(Application(secured, 10**9))
        running[1].wait_acknowledged(1000)
        running[0].stop()
        cluster.change(without_first, AdminClient(secured))
        running[1].stop()
        values = stored(secured)
    finally:
        for application in running:
            application.stop()
        cluster.end()
        ensemble.stop()
    assert not any(each.failures for each in running)
    for application, first in zip(running, (0, 10**9), strict=True):
        own = [value for value in values if (value >= 10**9) == (first > 0)]
        assert own == list(range(first, application.next)), "each once, in order"
        assert application.acknowledged == own
        assert application.read
    read = {value for each in running for value in each.read}
    assert read == set(values[: len(read)]), "each member goes on where the one before it was"


def add_user(command: list[str], cluster: RollingCluster) -> None:
    password = cluster.folder / command[-1]
    password.write_text(f"{SECRET}\n")
    words = [*command[1:-1], str(password), "--bootstrap", cluster.bootstrap(0)]
    done = subprocess.run(
        [sys.executable, "-m", *command[:1], *words], capture_output=True, text=True, timeout=WAIT_S
    )
    assert done.returncode == 0, done.stderr
