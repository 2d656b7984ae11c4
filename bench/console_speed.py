"""How fast the console is: `python -m bench.console_speed [start key scan partitions groups]`.

    start       from the start of the process to the first page, its CPU and memory
    key         the first record with a key among many, as *Search it all* shows it
    scan        a text that no record has: every record is looked at
    partitions  the first pages of a cluster with 10,000 partitions
    groups      the pages of a cluster with 5,000 groups

Each part starts a broker and a console. Seconds depend on what else the machine does, CPU seconds
hardly; both are printed, with the goal.
"""

import argparse
import json
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.request import urlopen

from components.apache_kafka import KafkaJars
from components.child import Child
from confluent_kafka import ConsumerGroupTopicPartitions, Producer
from confluent_kafka import TopicPartition as PartitionAt
from confluent_kafka.admin import AdminClient

from bench import machine
from bench.brokers import Broker, running, settle
from bench.measure import KAFKA, OTTLA
from bench.topics import create_topic

RUNS = 5
PAGE_S = 60.0
VALUE_BYTES = 1000
PARTITIONS = 4
MB = 1_000_000
MILLION = 1_000_000
BUSY = {"linger.ms": 20, "batch.num.messages": 10_000, "queue.buffering.max.messages": 200_000}


class Given(NamedTuple):
    """What was asked for."""

    contestant: str
    jars: KafkaJars | None
    records: int
    groups: int


class Served:
    """A console that runs."""

    def __init__(self, broker: Broker, child: Child, address: str) -> None:
        self.broker, self.child, self.address = broker, child, address

    def ask(self, path: str) -> tuple[float, int]:
        """Seconds and bytes of a page."""
        began_s = time.monotonic()
        with urlopen(f"http://{self.address}{path}", timeout=PAGE_S) as response:
            size = len(response.read())
        return time.monotonic() - began_s, size


@contextmanager
def served(broker: Broker) -> Iterator[Served]:
    """A console of this broker, as a user starts it, once it has said where it is."""
    script = str(Path(sys.executable).with_name("ottla"))
    command = [script, "console", "--bootstrap", broker.address, "--listen", "127.0.0.1:0"]
    with tempfile.TemporaryDirectory() as scratch:
        log = Path(scratch) / "console.log"
        child = Child(command, log)
        try:
            until_s = time.monotonic() + PAGE_S
            while "http://" not in (said := log.read_text()) and time.monotonic() < until_s:
                time.sleep(0.002)
            yield Served(broker, child, said.partition("http://")[2].partition("/")[0])
        finally:
            child.stop()


def start(given: Given) -> None:
    """The first page of a small cluster."""
    took: list[float] = []
    cpu: list[float] = []
    memory: list[float] = []
    with running(given.contestant, given.jars) as broker:
        create_topic(broker.address, "one", PARTITIONS)
        for _ in range(RUNS):
            with served(broker) as console:
                console.ask("/")
                took.append(time.monotonic() - console.child.started)
                cpu.append(console.child.cpu_seconds())
                for path in ("/topics", "/groups", "/topics/one/messages"):
                    console.ask(path)
                memory.append(console.child.rss_bytes() / MB)
    print(f"start to first page  {middle(took):8.2f} s    goal 0.7; all: {said(took)}")
    print(f"CPU to first page    {middle(cpu):8.2f} s    all: {said(cpu)}")
    print(f"memory, four pages   {middle(memory):8.1f} MB   goal 80")


def key(given: Given) -> None:
    """Keys at the beginning, in the middle and at the end, from both ends; and one that is not."""
    with running(given.contestant, given.jars) as broker:
        fill(broker, given.records)
        with served(broker) as console:
            took = [
                found_within(console, f"key=customer-{number}{start}")
                for number in (5, given.records // 7, given.records // 2, given.records - 7)
                for start in ("", "&start=oldest")
            ]
            none = found_within(console, "key=nobody")
    print(f"first of a key in {given.records:,}: {said(took)} s    goal 1 in 10 million")
    print(f"a key that no record has: {none:.2f} s")


def found_within(console: Served, query: str) -> float:
    """Seconds until the first row, or the end."""
    began_s = time.monotonic()
    url = f"http://{console.address}/topics/many/search?{query}"
    with urlopen(url, timeout=PAGE_S) as response:
        for line in response:
            if line.startswith((b"event: rows", b"event: done")):
                return time.monotonic() - began_s
    raise RuntimeError("the search has no end")


def scan(given: Given) -> None:
    """Records a second, and CPU of console and broker."""
    with running(given.contestant, given.jars) as broker:
        fill(broker, given.records)
        with served(broker) as console:
            for name, query in (("key", "key=nobody"), ("text", "text=nobody")):
                before = console.child.cpu_seconds(), broker.child.cpu_seconds()
                began_s = time.monotonic()
                with urlopen(
                    f"http://{console.address}/topics/many/search?start=oldest&{query}", timeout=600
                ) as response:
                    lines = response.read().decode().splitlines()
                took_s = time.monotonic() - began_s
                state = [line for line in lines if '"looked"' in line][-1]
                looked = json.loads(state.partition(": ")[2])["looked"]
                used = (
                    (console.child.cpu_seconds() - before[0]) / looked * MILLION,
                    (broker.child.cpu_seconds() - before[1]) / looked * MILLION,
                )
                print(
                    f"scan by {name:5}{looked / took_s:12,.0f} records/s    goal 300,000; CPU of a "
                    f"million: console {used[0]:.2f} s, broker {used[1]:.2f} s"
                )


def partitions(given: Given) -> None:
    """Ten topics of a thousand."""
    with running(given.contestant, given.jars) as broker:
        for number in range(10):
            create_topic(broker.address, f"many-{number}", 1000)
        settle(broker, 3)
        with served(broker) as console:
            asked(console, ("/", "/topics", "/topics/many-3/partitions"), 0.5)


def groups(given: Given) -> None:
    """Groups that have committed; a few of them are behind."""
    with running(given.contestant, given.jars) as broker:
        create_topic(broker.address, "many", PARTITIONS)
        fill(broker, 1000, made=True)
        commit(broker, given.groups)
        settle(broker, 3)
        with served(broker) as console:
            pages = ("/", "/groups", "/groups?sort=lag", "/topics", "/topics/many/groups")
            asked(console, (*pages, "/group?name=group-7"), 0.5)
            print(f"memory {console.child.rss_bytes() / MB:.1f} MB")


def asked(console: Served, pages: tuple[str, ...], goal_s: float) -> None:
    """Each page as the first one that is asked for, and again, with its CPU."""
    for path in pages:
        before = console.child.cpu_seconds()
        first_s, size = console.ask(path)
        cpu = console.child.cpu_seconds() - before
        again = [console.ask(path)[0] for _ in range(RUNS)]
        print(
            f"{path:28}{first_s:7.2f} s, CPU {cpu:5.2f} s, again {middle(again):5.2f} s "
            f"{size:10,} bytes    goal {goal_s:g}"
        )


def fill(broker: Broker, records: int, *, made: bool = False) -> None:
    """Records with the keys customer-0, customer-1 and so on."""
    if not made:
        create_topic(broker.address, "many", PARTITIONS)
    producer = Producer({"bootstrap.servers": broker.address, **BUSY})
    values = [random.Random(number).randbytes(VALUE_BYTES) for number in range(500)]
    for number in range(records):
        while True:
            try:
                producer.produce("many", values[number % 500], b"customer-%d" % number)
                break
            except BufferError:
                producer.poll(0.05)
        if number % 5000 == 0:
            producer.poll(0)
    if producer.flush(PAGE_S):
        raise RuntimeError("not all records were delivered")


def commit(broker: Broker, count: int) -> None:
    """An offset of each group, in each partition. Raises RuntimeError if one is not taken."""
    admin = AdminClient({"bootstrap.servers": broker.address, "log_level": 0})
    limit_s = time.monotonic() + PAGE_S
    waiting = list(range(count))
    while waiting:
        some, waiting = waiting[:500], waiting[500:]
        asked = {number: _alter(admin, number) for number in some}
        refused = {}
        for number, answer in asked.items():
            for each in answer.result(PAGE_S).topic_partitions:
                if each.error is not None:
                    refused[number] = each.error
        if refused and time.monotonic() > limit_s:
            raise RuntimeError(f"commits of {len(refused)} groups failed: {refused.popitem()}")
        if refused:  # their coordinator may not have loaded yet
            waiting = [*refused, *waiting]
            time.sleep(0.2)


def _alter(admin: AdminClient, number: int) -> Future[ConsumerGroupTopicPartitions]:
    offsets = [PartitionAt("many", each, 1 + number % 3) for each in range(PARTITIONS)]
    asked = ConsumerGroupTopicPartitions(f"group-{number}", offsets)
    answers: dict[str, Future[ConsumerGroupTopicPartitions]]
    answers = admin.alter_consumer_group_offsets([asked])
    return answers[f"group-{number}"]


def middle(values: list[float]) -> float:
    return statistics.median(values)


def said(values: list[float]) -> str:
    return ", ".join(f"{each:.2f}" for each in values)


PARTS: dict[str, Callable[[Given], None]] = {
    "start": start,
    "key": key,
    "scan": scan,
    "partitions": partitions,
    "groups": groups,
}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.console_speed", description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help="default: all")
    parser.add_argument("--records", type=int, default=MILLION)
    parser.add_argument("--groups", type=int, default=5000)
    parser.add_argument("--kafka", action="store_true", help="of Apache Kafka's broker")
    asked = parser.parse_args()
    jars = KafkaJars.fetched(None) if asked.kafka else None
    given = Given(KAFKA if asked.kafka else OTTLA, jars, asked.records, asked.groups)
    for name, value in machine.describe().items():
        print(f"{name}: {value}")
    for part in asked.parts or PARTS:
        PARTS[part](given)


if __name__ == "__main__":
    main()
