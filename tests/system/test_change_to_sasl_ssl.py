"""A running cluster changes from PLAINTEXT to SASL_SSL by the steps of docs/security.md."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from pathlib import Path
from textwrap import dedent

from confluent_kafka.admin import AdminClient, NewTopic
from faults.anomaly import Policy
from faults.checker import check
from faults.clients import Rate
from faults.history import Recorder, Refused, Unknown
from faults.load import Load
from faults.watch import ElectionWatch
from tests.security.authority import Authority
from tests.system.cluster_load import PARTITIONS, TOPIC, Loaded, wait_for

from ottla.testing import BrokerProcess
from ottla.testing.ports import HOST, free_ports
from ottla.testing.zookeeper_server import ZooKeeperEnsemble

PAGE = Path(__file__).parents[2] / "docs" / "security.md"
TITLE = "## From PLAINTEXT to SASL_SSL while the cluster runs"
WAIT_S = 60
SIZE = 3
SECRET = "secret"
RATE = Rate(producers=2, consumers=2, records_per_s=200)


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
    def whole() -> bool:
        topics = admin.list_topics(timeout=WAIT_S).topics.values()
        partitions = [each for topic in topics for each in topic.partitions.values()]
        return bool(partitions) and all(len(each.isrs) == SIZE for each in partitions)

    wait_for("all replicas to be in sync", whole, WAIT_S)


def test_nothing_is_lost_or_doubled_while_a_cluster_changes_its_listener(tmp_path: Path) -> None:
    commands, (second, among_brokers, without_first) = steps()
    ensemble = ZooKeeperEnsemble(tmp_path / "zookeeper")
    cluster = RollingCluster(tmp_path, ensemble.connect)
    recorder = Recorder(tmp_path / "history.jsonl", lambda: time.monotonic_ns() // 1_000_000)
    loaded = Loaded(recorder)
    security = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "app",
        "sasl.password": SECRET,
        "ssl.ca.location": str(tmp_path / "authority.pem"),
    }
    first, last = cluster.bootstrap(0), cluster.bootstrap(1)
    at = (TOPIC, PARTITIONS, recorder, Policy.strict, RATE)
    before = Load(first, *at)
    after = Load(last, *at, security=security, first_number=RATE.producers)
    watch = ElectionWatch(ensemble.connect, TOPIC, PARTITIONS, recorder)
    try:
        ensemble.start()
        for number in cluster.ports:
            cluster.start(number)
        admin = AdminClient({"bootstrap.servers": first})
        topic = NewTopic(TOPIC, PARTITIONS, SIZE)
        admin.create_topics([topic], request_timeout=WAIT_S)[TOPIC].result(WAIT_S)
        watch.start()
        before.start()
        loaded.wait_progress(timeout_s=WAIT_S)
        for command in commands:
            add_user(command, cluster)
        cluster.change(second, admin)
        cluster.change(among_brokers, admin)
        # A group has members on both listeners for a moment.
        after.start()
        loaded.wait_progress(timeout_s=WAIT_S)
        before.stop()
        loaded.wait_progress(timeout_s=WAIT_S)
        cluster.change(without_first, AdminClient({"bootstrap.servers": last, **security}))
        loaded.wait_progress(timeout_s=WAIT_S)
        after.stop()
        after.read_all()
    finally:
        watch.stop()
        cluster.end()
        ensemble.stop()
    recorder.close()
    assert check(recorder.events, Policy.strict).anomalies == ()
    assert loaded.events(Refused, Unknown) == [], "and every record is acknowledged"


def add_user(command: list[str], cluster: RollingCluster) -> None:
    password = cluster.folder / command[-1]
    password.write_text(f"{SECRET}\n")
    words = [*command[1:-1], str(password), "--bootstrap", cluster.bootstrap(0)]
    done = subprocess.run(
        [sys.executable, "-m", *command[:1], *words], capture_output=True, text=True, timeout=WAIT_S
    )
    assert done.returncode == 0, done.stderr
