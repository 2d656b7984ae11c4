"""Three brokers on the loopback interface: Ottla with ZooKeeper, or Apache Kafka with KRaft.

With the protocol SSL, clients and brokers connect with TLS, and so do Apache Kafka's controllers.
"""

import re
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from components.apache_kafka import ApacheKafka, KafkaJars
from components.child import ChildDiedError
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from bench.brokers import SAME_SETTINGS, START_WAIT_MS, Broker, Ottla
from bench.secured import TLS, as_options, certificate
from ottla.testing.ports import free_ports
from ottla.testing.zookeeper_server import ZooKeeperEnsemble

SIZE = 3
PLAINTEXT = "PLAINTEXT"
SSL = "SSL"
# Set for both; everything else, timeouts above all, keeps each one's default.
CLUSTER_SETTINGS = {
    **SAME_SETTINGS,
    "default.replication.factor": str(SIZE),
    "offsets.topic.replication.factor": str(SIZE),
}
ADMIN_WAIT_SECONDS = 120.0
_LEFT: list[tempfile.TemporaryDirectory[str]] = []
"""Kept here so that they are deleted at the end of the process."""


class OttlaMember(Ottla):
    """`ottla serve --id N --zookeeper ...`."""

    def __init__(
        self,
        folder: Path,
        number: int,
        zookeeper: str,
        settings: Mapping[str, str],
        prefix: Sequence[str] = (),
        protocol: str = PLAINTEXT,
    ) -> None:
        super().__init__(folder, {**CLUSTER_SETTINGS, **settings}, prefix, number)
        if protocol != PLAINTEXT:
            at = self._command.index("--listen")
            self._command[at : at + 2] = ["--config", f"listeners={protocol}://{self.address}"]
        self._command += ["--id", str(number), "--zookeeper", zookeeper]


class KafkaMember(ApacheKafka):
    """Broker and controller in one process (KRaft's combined mode)."""

    def __init__(
        self,
        jars: KafkaJars,
        folder: Path,
        settings: Mapping[str, str],
        protocol: str = PLAINTEXT,
    ) -> None:
        super().__init__(jars, folder, {**CLUSTER_SETTINGS, **settings})
        self.controller_port = free_ports(1)[0]
        self._protocol = protocol

    def join(self, number: int, voters: str) -> None:
        """Set its node id and every voter's `N@HOST:PORT`; call before the first start."""
        own = f"{self._protocol}://{self.address}"
        self._settings |= {
            "node.id": str(number),
            "controller.quorum.voters": voters,
            "listeners": f"{own},CONTROLLER://127.0.0.1:{self.controller_port}",
            "advertised.listeners": own,
        }
        if self._protocol != PLAINTEXT:
            self._settings["listener.security.protocol.map"] = (
                f"CONTROLLER:{self._protocol},{self._protocol}:{self._protocol}"
            )


def tls(folder: Path) -> tuple[dict[str, str], dict[str, str]]:
    """The brokers' settings with a certificate that is made in this folder, and librdkafka's."""
    authority, store = certificate(folder)
    brokers = {
        "inter.broker.listener.name": SSL,
        "ssl.enabled.protocols": TLS,
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(store),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(authority),
    }
    return brokers, {"security.protocol": SSL, "ssl.ca.location": str(authority)}


def in_sync(admin: AdminClient, topic: str, replicas: int) -> bool:
    """Whether every partition has a leader and this many replicas in sync."""
    partitions = admin.list_topics(topic, 5).topics[topic].partitions.values()
    return all(each.leader > 0 and len(each.isrs) == replicas for each in partitions)


class RunningCluster:
    """A context manager with a running cluster of three brokers."""

    def __init__(
        self,
        name: str,
        jars: KafkaJars | None,
        settings: Mapping[str, str] | None = None,
        prefix: Sequence[str] = (),
        *,
        leaves_files: bool = False,
        protocol: str = PLAINTEXT,
    ) -> None:
        """`leaves_files`: delete the files only when the process ends. For minutes after many
        deletions, ext4 creates files slowly, which would slow down the next measurement.
        `protocol`: PLAINTEXT or SSL.
        """
        self._leaves_files = leaves_files
        self._scratch = tempfile.TemporaryDirectory(
            prefix="ottla-bench-", ignore_cleanup_errors=True
        )
        folder = Path(self._scratch.name)
        given, self.client = dict(settings or {}), dict[str, str]()
        """librdkafka's settings, without the address."""
        if protocol == SSL:
            secured, self.client = tls(folder)
            given |= secured
        self._ensemble: ZooKeeperEnsemble | None = None
        self._jars: KafkaJars | None = None
        self._is_profiled = bool(prefix)
        self.brokers: dict[int, Broker] = {}
        if name == "Ottla":
            self._ensemble = ZooKeeperEnsemble(folder, 1)
            for number in range(1, SIZE + 1):
                self.brokers[number] = OttlaMember(
                    *(folder / str(number), number, self._ensemble.connect, given, prefix, protocol)
                )
            return
        assert jars is not None
        self._jars = jars
        members = {
            number: KafkaMember(jars, folder / str(number), given, protocol)
            for number in range(1, SIZE + 1)
        }
        voters = ",".join(
            f"{number}@127.0.0.1:{member.controller_port}" for number, member in members.items()
        )
        for number, member in members.items():
            member.join(number, voters)
        self.brokers.update(members)

    @property
    def address(self) -> str:
        """Every broker's address, for clients."""
        return ",".join(broker.address for broker in self.brokers.values())

    @property
    def options(self) -> tuple[str, ...]:
        """The clients' settings as options of rdkafka_performance."""
        return as_options(self.client)

    @property
    def admin(self) -> AdminClient:
        """A new admin client."""
        return AdminClient({"bootstrap.servers": self.address, "log_level": 0, **self.client})

    def create_topic(self, topic: str, partitions: int = 1, replicas: int = SIZE) -> None:
        """Create a topic, by default on every broker; wait until all partitions have leaders."""
        admin = self.admin
        made = admin.create_topics([NewTopic(topic, partitions, replicas)])
        made[topic].result(ADMIN_WAIT_SECONDS)
        self.wait_in_sync([topic], replicas)

    def wait_in_sync(self, topics: Sequence[str], replicas: int = SIZE) -> None:
        """Wait until every partition has a leader and this many replicas in sync."""
        admin = self.admin
        for topic in topics:
            self._until(f"{replicas} replicas of {topic}", partial(in_sync, admin, topic, replicas))

    def controller(self) -> int:
        """The id of the active controller."""
        if self._jars is None:
            admin = self.admin  # must live until the response arrives
            return int(admin.describe_cluster().result(ADMIN_WAIT_SECONDS).controller.id)
        assert not self.client, "Kafka's tool has no settings of TLS here"
        # With KRaft, clients see a random broker as the controller (KIP-590).
        asked = ("--bootstrap-server", self.address, "describe", "--status")
        told = self._jars.run("org.apache.kafka.tools.MetadataQuorumCommand", *asked)
        found = re.search(r"LeaderId:\s+(\d+)", told)
        assert found is not None, told
        return int(found[1])

    def leader(self, topic: str) -> int:
        """The leader of partition 0."""
        return int(self.admin.list_topics(topic, 5).topics[topic].partitions[0].leader)

    def _until(self, what: str, check: Callable[[], bool]) -> None:
        limit = time.monotonic() + ADMIN_WAIT_SECONDS
        while time.monotonic() < limit:
            try:
                if check():
                    return
            except KafkaException:
                pass  # not ready yet
            time.sleep(0.02)
        words = "\n".join(broker.child.last_words(4) for broker in self.brokers.values())
        raise ChildDiedError(f"waited {ADMIN_WAIT_SECONDS:.0f} s for {what}:\n{words}")

    def __enter__(self) -> "RunningCluster":
        try:
            if self._ensemble is not None:
                self._ensemble.start()
            for broker in self.brokers.values():
                broker.start()
            for broker in self.brokers.values():
                broker.child.wait_for_port(broker.port, START_WAIT_MS)
            admin = self.admin
            self._until("three brokers", lambda: len(admin.list_topics(timeout=5).brokers) == SIZE)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for broker in self.brokers.values():
            if hasattr(broker, "child"):
                if self._is_profiled:
                    broker.child.stop()  # the profiler writes its file at a clean exit only
                # The measurement is over; without a quorum the last controllers stop slowly.
                broker.child.kill()
        if self._ensemble is not None:
            self._ensemble.stop()
        if self._leaves_files:
            _LEFT.append(self._scratch)
        else:
            self._scratch.cleanup()
