"""Measures how long a journey takes in a cluster with many groups: `python -m bench.journey_time`.

Three brokers of Ottla hold a topic that 100 groups read. One client asks for the journeys of random
messages, each of which takes the leader to ask every coordinator, and makes the words of each. The
time is that of the client, from the question to the last line; the start of a process is apart.
"""

import argparse
import random
import statistics
import time
from concurrent.futures import wait

from confluent_kafka import ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from bench import machine
from bench.clusters import RunningCluster
from ottla.client.admin.asked_journeys import Journeys
from ottla.journey.words.tell import tell

TOPIC = "flights"
GROUPS = 100
RECORDS = 10_000
PROMISED_MS = 150.0
WAIT_S = 60.0
AT_ONCE = 20
"""Commits that run at the same time."""


def fill(address: str) -> None:
    """Records, and groups that have read some of them."""
    producer = Producer({"bootstrap.servers": address, "acks": "all", "linger.ms": 20})
    for number in range(RECORDS):
        producer.produce(TOPIC, b"v" * 200, f"key {number % 500}".encode(), partition=0)
        producer.poll(0)
    assert producer.flush(WAIT_S) == 0
    admin = AdminClient({"bootstrap.servers": address})
    for first in range(0, GROUPS, AT_ONCE):
        work = []
        for number in range(first, first + AT_ONCE):
            partition = TopicPartition(TOPIC, 0, random.randint(1, RECORDS))
            asked = ConsumerGroupTopicPartitions(f"group-{number}", [partition])
            work += admin.alter_consumer_group_offsets([asked]).values()
        wait(work, WAIT_S)
        for future in work:
            future.result(0)


def times_ms(address: str, count: int) -> list[float]:
    """Of so many journeys, in order of time; the first one is a warm-up and not among them."""
    taken: list[float] = []
    with Journeys(address) as journeys:
        for _ in range(count + 1):
            offset = random.randrange(RECORDS)
            question = {"journey": 1, "topic": TOPIC, "partition": 0, "offset": offset}
            began = time.perf_counter()
            document = journeys.ask(question)
            tell(document)
            taken.append((time.perf_counter() - began) * 1000)
            assert len(document["read"]) == GROUPS, document.get("groups")
    return taken[1:]


def main() -> None:
    """Measure and print the times."""
    parser = argparse.ArgumentParser(prog="python -m bench.journey_time", description=__doc__)
    parser.add_argument("--count", type=int, default=200, help="journeys (default: 200)")
    given = parser.parse_args()
    for name, value in machine.describe().items():
        print(f"{name}: {value}")
    with RunningCluster("Ottla", None) as cluster:
        cluster.create_topic(TOPIC)
        fill(cluster.address)
        taken = times_ms(cluster.address, given.count)
    ordered = sorted(taken)
    print(
        f"{GROUPS} groups, {len(taken)} journeys: median {statistics.median(taken):.1f} ms, "
        f"99 % within {ordered[int(len(ordered) * 0.99)]:.1f} ms, longest {ordered[-1]:.1f} ms "
        f"(promised: {PROMISED_MS:g} ms)"
    )


if __name__ == "__main__":
    main()
