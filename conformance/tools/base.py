"""Runs Apache Kafka's tools against the broker, for the tests of suite C."""

import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from components.apache_kafka import KafkaError, KafkaJars

from conformance.target import replication_factor

TOOLS = "org.apache.kafka.tools"


@dataclass(frozen=True)
class Tools:
    """Apache Kafka's tools, run against the brokers. `scratch` is for their input files."""

    jars: KafkaJars
    bootstrap: str
    scratch: Path
    command_config: Path | None = None
    """How the tools connect to brokers that are secured."""

    @property
    def replicas(self) -> int:
        """The default replication factor."""
        return replication_factor(len(self.bootstrap.split(",")))

    def run(self, main: str, *arguments: str, seconds: float = 120) -> str:
        """Run a tool by its class in org.apache.kafka.tools; return its output."""
        connect = ["--bootstrap-server", self.bootstrap, *self.config()]
        return self.jars.run(f"{TOOLS}.{main}", *arguments, *connect, seconds=seconds)

    def config(self) -> list[str]:
        """The arguments that name `command_config`."""
        return [] if self.command_config is None else ["--command-config", str(self.command_config)]

    def refused(self, main: str, *arguments: str) -> str:
        """Run a tool that must fail; return its output."""
        try:
            said = self.run(main, *arguments)
        except KafkaError as fault:
            return str(fault)
        raise AssertionError(f"{main} {' '.join(arguments)} should have failed, and said: {said}")

    def topic(self, *, partitions: int = 1, settings: tuple[str, ...] = ()) -> str:
        """Create a topic with a unique name."""
        name = f"tools-{uuid.uuid4().hex[:12]}"
        arguments = ["--create", "--topic", name, "--partitions", str(partitions)]
        for setting in settings:
            arguments += ["--config", setting]
        said = self.run("TopicCommand", *arguments)
        contains(said, f"Created topic {name}")
        return name

    def fill(self, topic: str, count: int, *properties: str, size: int = 100) -> str:
        """Write `count` records with ProducerPerformance; return its output."""
        arguments = ["--topic", topic, "--num-records", str(count), "--throughput", "-1"]
        arguments += ["--record-size", str(size), "--command-property", "acks=all", *properties]
        said = self.run("ProducerPerformance", *arguments)
        contains(said, f"{count} records sent")
        return said

    def end_offsets(self, topic: str, time: str = "-1") -> dict[int, int]:
        """Each partition's offset from GetOffsetShell; -1 for the end, -2 for the start."""
        said = self.run("GetOffsetShell", "--topic", topic, "--time", time)
        rows = [line.split(":") for line in said.splitlines() if line.startswith(topic + ":")]
        return {int(row[1]): int(row[2]) for row in rows if row[2]}

    def write(self, name: str, content: Any) -> str:
        """Write a JSON file for a tool; return its path."""
        path = self.scratch / name
        path.write_text(json.dumps(content))
        return str(path)


def properties_of(client: Mapping[str, str]) -> dict[str, str]:
    """librdkafka's settings for SCRAM over TLS, as those of Kafka's Java clients."""
    login = "org.apache.kafka.common.security.scram.ScramLoginModule required"
    user, password = client["sasl.username"], client["sasl.password"]
    return {
        "security.protocol": client["security.protocol"],
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": client["ssl.ca.location"],
        "sasl.mechanism": client["sasl.mechanism"],
        "sasl.jaas.config": f'{login} username="{user}" password="{password}";',
    }


def contains(said: str, *wanted: str) -> None:
    """Assert that a tool's output contains each of the texts."""
    for text in wanted:
        assert text in said, f"{text!r} is not in: {said[-600:]}"


def equal(found: object, wanted: object) -> None:
    assert found == wanted, f"{found!r}, wanted {wanted!r}"
