"""Brokers of Apache Kafka 3.9 in ZooKeeper mode, which no later version has.

Ottla takes their clusters over. Tests use them if their jars are in the cache, where
`components.fetch --all` puts them.
"""

from collections.abc import Mapping
from pathlib import Path

from components.apache_kafka import KafkaJars
from components.child import Child
from ottla.testing.ports import HOST

# Small heaps and a fast start: a test's brokers run for seconds.
JVM_FLAGS = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
START_WAIT_MS = 60_000


class KafkaWithZooKeeper:
    """Brokers 1, 2 ... on `ports`, with their data in `folder`/broker-N."""

    def __init__(
        self,
        folder: Path,
        zookeeper: str,
        ports: list[int],
        settings: Mapping[str, object],
        jars: KafkaJars,
    ) -> None:
        self.folder = folder
        self.zookeeper = zookeeper
        self.ports = ports
        self._settings = settings
        self._jars = jars
        self._brokers: dict[int, Child] = {}

    @property
    def bootstrap(self) -> str:
        return ",".join(f"{HOST}:{port}" for port in self.ports)

    def start(self, *numbers: int) -> None:
        """Start these brokers, or all; wait for their ports. Raises ChildDiedError."""
        started = numbers or tuple(range(1, len(self.ports) + 1))
        for number in started:
            settings = {
                "broker.id": number,
                "zookeeper.connect": self.zookeeper,
                "listeners": f"PLAINTEXT://{HOST}:{self.ports[number - 1]}",
                "log.dirs": self.folder / f"broker-{number}",
                **self._settings,
            }
            properties = self.folder / f"kafka-{number}.properties"
            properties.write_text("".join(f"{name}={each}\n" for name, each in settings.items()))
            command = self._jars.command("kafka.Kafka", str(properties), jvm=JVM_FLAGS)
            self._brokers[number] = Child(command, self.folder / f"kafka-{number}.log")
        for number in started:
            self._brokers[number].wait_for_port(self.ports[number - 1], START_WAIT_MS)

    def configure(self, entity_type: str, *arguments: str) -> None:
        """Change settings with Kafka's tool. Raises KafkaError."""
        given = ["--bootstrap-server", self.bootstrap, "--alter", "--entity-type", entity_type]
        self._jars.run("kafka.admin.ConfigCommand", *given, *arguments)

    def stop(self, *numbers: int) -> None:
        """Stop these brokers, or all, one after another."""
        for number in numbers or tuple(self._brokers):
            self._brokers.pop(number).stop()

    def kill(self, *numbers: int) -> None:
        """SIGKILL for these brokers, or all."""
        for number in numbers or tuple(self._brokers):
            self._brokers.pop(number).kill()
