"""Orders for the engines around Kafka: sends them, counts them, and reads what an engine wrote.

Each engine runs a program of docs/engines on one broker, where the engine is killed in the middle,
and on three, where a broker is.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any, Final, Protocol

from components.child import Child
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from tests.system.cluster_load import QUICK

from ottla.testing import BrokerProcess, Cluster

PARTITIONS: Final = 4
CUSTOMERS: Final = 20
LARGE: Final = 50
WITHIN_S: Final = 150.0
SECONDS_OF_LOAD: Final = 3.0


class Load(Protocol):
    """What an engine is given to work on."""

    def send(self, count: int, /) -> None: ...


def send_for(load: Load, seconds: float = SECONDS_OF_LOAD) -> None:
    """A steady load, so that something is under way when something is killed."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        load.send(20)
        time.sleep(0.05)


class Orders:
    """The orders that were sent, and the outcome that an engine must come to."""

    def __init__(self, bootstrap: str, replicas: int, *written: str) -> None:
        """Creates the topic `orders` and those that the engine writes."""
        self.bootstrap = bootstrap
        self.sent: list[dict[str, Any]] = []
        self._random = Random(1)
        topics = [NewTopic(name, PARTITIONS, replicas) for name in ("orders", *written)]
        admin = AdminClient({"bootstrap.servers": bootstrap})
        for made in admin.create_topics(topics).values():
            made.result()
        self._producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})

    def send(self, count: int) -> None:
        for _ in range(count):
            customer = f"c{self._random.randrange(CUSTOMERS)}"
            amount = self._random.randrange(100)
            order = {"id": len(self.sent), "customer": customer, "amount": amount}
            self.sent.append(order)
            self._producer.produce("orders", json.dumps(order), key=customer)
        assert self._producer.flush(60) == 0

    @property
    def large(self) -> list[dict[str, Any]]:
        return [order for order in self.sent if order["amount"] >= LARGE]

    @property
    def totals(self) -> dict[str, int]:
        totals: Counter[str] = Counter()
        for order in self.sent:
            totals[order["customer"]] += order["amount"]
        return dict(totals)


class Written:
    """The committed records of a topic, as far as they were read."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self.values: list[Any] = []
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "none",
                "isolation.level": "read_committed",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
            }
        )
        self._consumer.assign([TopicPartition(topic, each, 0) for each in range(PARTITIONS)])

    def read(self) -> list[Any]:
        """All records so far, those of a partition in order."""
        message = self._consumer.poll(0.2)
        while message is not None:
            if message.error() is None:
                self.values.append(json.loads(message.value()))
            message = self._consumer.poll(0)
        return self.values

    def close(self) -> None:
        self._consumer.close()


class Engine:
    """The process of an engine, with the processes that it starts."""

    def __init__(
        self, command: Sequence[str], log: Path, environment: Mapping[str, str] | None = None
    ) -> None:
        self._command, self._log, self._environment = command, log, environment
        self.child: Child

    def start(self) -> None:
        self.child = Child(self._command, self._log, self._environment)

    def kill(self) -> None:
        """SIGKILL to all of its processes, as in a crash."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.child.pid, signal.SIGKILL)
        self.child.process.wait()

    def wait(self, what: str, is_done: Callable[[], bool], timeout_s: float = WITHIN_S) -> None:
        """Wait while the engine runs; what it said last is in the failure."""
        until = time.monotonic() + timeout_s
        while not is_done():
            said = self.child.last_words(30)
            assert self.child.process.poll() is None, f"the engine ended: {said}"
            assert time.monotonic() < until, f"waited {timeout_s:g} s for {what}: {said}"
            time.sleep(0.1)


class Brokers:
    """One broker, or three; and what is killed in the middle."""

    def __init__(self, brokers: BrokerProcess | Cluster) -> None:
        self._brokers = brokers
        self.replicas = 3 if isinstance(brokers, Cluster) else 1

    @property
    def bootstrap(self) -> str:
        return self._brokers.bootstrap

    def kill_one_of(self, engine: Engine, load: Load) -> None:
        """With one broker kills the engine and starts it again, else a broker; under load."""
        send_for(load)
        if isinstance(self._brokers, Cluster):
            self._brokers.kill(1)
            send_for(load)
            self._brokers.start(1)
        else:
            engine.kill()
            send_for(load)
            engine.start()
        send_for(load)

    @contextlib.contextmanager
    def one_away(self) -> Iterator[None]:
        """Of three brokers, one is killed meanwhile."""
        assert isinstance(self._brokers, Cluster)
        self._brokers.kill(1)
        try:
            yield
        finally:
            self._brokers.start(1)


@contextlib.contextmanager
def running(count: int, folder: Path) -> Iterator[Brokers]:
    """So many brokers, with their data in a folder."""
    if count == 1:
        broker = BrokerProcess(folder / "broker", [])
        try:
            yield Brokers(broker.start())
        finally:
            broker.kill()
    else:
        with Cluster(count, QUICK, data=folder / "cluster") as cluster:
            yield Brokers(cluster)
