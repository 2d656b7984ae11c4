"""Apache Kafka itself: fetches it from Maven Central into the cache; formats, starts and stops it.

The bench measures against it, `make conformance` uses its tools, and tests use it if its jars are
in the cache (`KafkaJars.at_hand`; `components.fetch` fetches them).
"""

import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from components import cache, ivy, java
from components.child import Child
from ottla.testing.ports import free_ports

VERSION = "4.4.0"
ZOOKEEPER_VERSION = "3.9.1"
"""The last one with ZooKeeper mode."""
# The flags of Kafka's own start scripts (kafka-server-start.sh, kafka-run-class.sh), with the heap.
JVM_FLAGS = (
    "-Xmx1G -Xms1G -server -XX:+UseG1GC -XX:MaxGCPauseMillis=20"
    " -XX:InitiatingHeapOccupancyPercent=35 -XX:+ExplicitGCInvokesConcurrent"
    " -XX:MaxInlineLevel=15 -Djava.awt.headless=true"
)

# Tools run for a second or two, so these flags make the JVM start fast.
TOOL_JVM_FLAGS = ("-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


class KafkaError(Exception):
    """A tool of Apache Kafka failed; the message contains its output."""


@dataclass(frozen=True)
class KafkaJars:
    """A folder with Apache Kafka's jars, and the Java to run them with."""

    folder: Path
    java: str

    @staticmethod
    def cached_in(version: str = VERSION) -> Path:
        return cache.folder(f"kafka-{version}")

    @classmethod
    def at_hand(cls, version: str = VERSION) -> "KafkaJars | None":
        """The jars in the cache, or None if they or Java are missing. Downloads nothing."""
        if not cache.is_ready(cls.cached_in(version)):
            return None
        try:
            return cls(cls.cached_in(version), java.find())
        except java.NoJavaError:
            return None

    @classmethod
    def fetched(cls, settings: Path | None = None, version: str = VERSION) -> "KafkaJars":
        """The jars in the cache, fetched first if they are missing (about 90 jars, 60 MB).

        `settings` is an Ivy settings file. Raises ivy.FetchError or java.NoJavaError.
        """
        if not cache.is_ready(cls.cached_in(version)):
            wanted = [
                f"org.apache.kafka:{name}:{version}" for name in ("kafka_2.13", "kafka-tools")
            ]
            with cache.making(cls.cached_in(version)) as cached_in:
                ivy.fetch(wanted, cached_in, settings)
        return cls(cls.cached_in(version), java.find())

    def command(self, main: str, *arguments: str, jvm: Sequence[str] = ("-Xmx512m",)) -> list[str]:
        """The command line that runs one of Kafka's classes."""
        return [self.java, *jvm, "-cp", f"{self.folder}/*", main, *arguments]

    def run(self, main: str, *arguments: str, seconds: float = 120) -> str:
        """Run a tool to its end; return its stdout and stderr.

        Raises KafkaError if it exits with a code other than 0, or not in time.
        """
        command = self.command(main, *arguments, jvm=TOOL_JVM_FLAGS)
        try:
            done = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                timeout=seconds,
            )
        except subprocess.TimeoutExpired as fault:
            said = fault.stdout.decode(errors="replace") if isinstance(fault.stdout, bytes) else ""
            raise KafkaError(f"{main} did not end in {seconds:.0f} s:\n{said[-2000:]}") from fault
        said = "\n".join(line for line in done.stdout.splitlines() if not line.startswith("SLF4J"))
        if done.returncode != 0:
            raise KafkaError(f"{main} ended with {done.returncode}:\n{said[-2000:]}")
        return said


def server_properties(folder: Path, port: int, controller_port: int) -> dict[str, str]:
    """The settings of a broker that is its own controller (KRaft), on the loopback interface."""
    return {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": f"1@127.0.0.1:{controller_port}",
        "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}",
        "controller.listener.names": "CONTROLLER",
        "inter.broker.listener.name": "PLAINTEXT",
        "log.dirs": str(folder / "data"),
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "share.coordinator.state.topic.replication.factor": "1",
        "share.coordinator.state.topic.min.isr": "1",
    }


class ApacheKafka:
    """One Apache Kafka broker with its data in `folder`, formatted at the first start."""

    name = "Apache Kafka"

    def __init__(
        self,
        jars: KafkaJars,
        folder: Path,
        settings: Mapping[str, str],
        jvm: str = JVM_FLAGS,
        format_options: Sequence[str] = (),
    ) -> None:
        self.jars = jars
        self.folder = folder
        self.port = free_ports(1)[0]
        self.format_seconds = 0.0
        self.child: Child
        self._jvm = jvm.split()
        self._format_options = format_options
        self._properties = folder / "server.properties"
        self._settings = {"offsets.topic.replication.factor": "1", **settings}

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def _format(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        settings = {**server_properties(self.folder, self.port, free_ports(1)[0]), **self._settings}
        lines = [f"{name}={value}\n" for name, value in settings.items()]
        self._properties.write_text("".join(lines))
        began = time.monotonic()
        # A fixed id keeps the format step to one Java start.
        identity = ["-t", "b3R0bGEtYmVuY2gtMDAwMQ", "-c", str(self._properties)]
        options = (*identity, *self._format_options)
        self.jars.run("kafka.tools.StorageTool", "format", *options)
        self.format_seconds = time.monotonic() - began

    def start(self) -> None:
        """Start the process without waiting for its port. May be called again after `stop`."""
        if not self._properties.is_file():
            self._format()
        command = self.jars.command("kafka.Kafka", str(self._properties), jvm=self._jvm)
        self.child = Child(command, self.folder / "broker.log")

    def stop(self) -> None:
        self.child.stop()
