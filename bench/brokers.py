"""Ottla and Apache Kafka behind one interface: one broker on the loopback interface."""

import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from components.apache_kafka import ApacheKafka, KafkaJars
from components.child import Child

from ottla.testing.ports import free_ports

# Set for both, so that no default favours one. Retention and fsync keep Kafka's defaults.
SAME_SETTINGS = {
    "num.partitions": "1",
    "auto.create.topics.enable": "true",
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.replication.factor": "1",
}
START_WAIT_MS = 180_000


class Broker(Protocol):
    """One broker with its own folder."""

    name: str
    folder: Path
    port: int
    format_seconds: float
    child: Child

    @property
    def address(self) -> str: ...
    def start(self) -> None: ...
    def stop(self) -> None: ...


class Ottla:
    """`ottla serve` as a user starts it."""

    name = "Ottla"
    format_seconds = 0.0

    def __init__(
        self,
        folder: Path,
        settings: Mapping[str, str],
        prefix: Sequence[str] = (),
        number: int = 0,
    ) -> None:
        """`prefix` replaces the `ottla` command to run the broker under a profiler."""
        self.folder = folder
        self.port = free_ports(1)[0]
        self.child: Child
        script = Path(sys.executable).with_name("ottla")
        began = [part.replace("{broker}", str(number)) for part in prefix] or [str(script)]
        self._command = [*began, "serve", "--listen", self.address]
        self._command += ["--data", str(folder / "data")]
        for name, value in {**SAME_SETTINGS, **settings}.items():
            self._command += ["--config", f"{name}={value}"]

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start the process without waiting for its port. May be called again after `stop`."""
        self.child = Child(self._command, self.folder / "broker.log")

    def stop(self) -> None:
        self.child.stop()


@contextmanager
def running(
    name: str,
    jars: KafkaJars | None,
    settings: Mapping[str, str] | None = None,
    prefix: Sequence[str] = (),
) -> Iterator[Broker]:
    """A context manager with a listening broker in a temporary folder."""
    with tempfile.TemporaryDirectory(prefix="ottla-bench-", ignore_cleanup_errors=True) as scratch:
        broker: Broker
        if name == "Ottla":
            broker = Ottla(Path(scratch), settings or {}, prefix)
        else:
            assert jars is not None
            broker = ApacheKafka(jars, Path(scratch), {**SAME_SETTINGS, **(settings or {})})
        with started(broker):
            yield broker


@contextmanager
def started(broker: Broker) -> Iterator[None]:
    """Starts the broker, waits until it listens, and stops it at the end."""
    broker.start()
    try:
        broker.child.wait_for_port(broker.port, START_WAIT_MS)
        yield
    finally:
        broker.stop()


def settle(broker: Broker, seconds: float) -> float:
    """Leave the broker idle; return the share of one core that it used meanwhile (0 to 1)."""
    before = broker.child.cpu_seconds()
    began = time.monotonic()
    time.sleep(seconds)
    return (broker.child.cpu_seconds() - before) / (time.monotonic() - began)
