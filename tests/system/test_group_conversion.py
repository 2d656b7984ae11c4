"""Rolling upgrade and downgrade of a group of librdkafka's consumers (KIP-848), while it reads."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import ConsumerGroupType, KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient
from tests.system.test_consumer_groups import QUICK_GROUPS, NewReader
from tests.system.test_groups import PARTITIONS, WITHIN_S, Reader, fill, until

from ottla.testing import Cluster

CLASSIC, CONSUMER = ConsumerGroupType.CLASSIC, ConsumerGroupType.CONSUMER


@pytest.fixture(scope="module")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with Cluster(1, {**QUICK_GROUPS}, data=tmp_path_factory.mktemp("broker")) as cluster:
        yield cluster.bootstrap


def type_of(bootstrap: str, group: str) -> Any:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    listed = admin.list_consumer_groups().result(30)
    return next(each.type for each in listed.valid if each.group_id == group)


class Load:
    """Writes numbered records until it is closed."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self.written = 0
        self._ends = threading.Event()
        self._topic = topic
        self._producer = Producer({"bootstrap.servers": bootstrap})
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._ends.is_set():
            number = self.written
            self._producer.produce(self._topic, str(number), partition=number % PARTITIONS)
            self._producer.poll(0)
            self.written += 1
            time.sleep(0.002)

    def __enter__(self) -> Load:
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.set()
        self._thread.join()
        assert self._producer.flush(30) == 0


class Reading:
    """The members of a group, and what they have read."""

    def __init__(self, bootstrap: str, topic: str, assignor: str) -> None:
        self.members: list[Reader] = []
        self.seen: Counter[bytes] = Counter()
        self._bootstrap, self._topic, self._assignor = bootstrap, topic, assignor

    def join(self, kind: Any) -> Reader:
        if kind is CLASSIC:
            assignor = {"partition.assignment.strategy": self._assignor}
            member = Reader(self._bootstrap, self._topic, **assignor)
        else:
            member = NewReader(self._bootstrap, self._topic)
        member.subscribe(self._topic)
        self.members.append(member)
        return member

    def leave(self, member: Reader) -> None:
        try:
            member.client.commit(asynchronous=False)
        except KafkaException as refused:
            # It may have read nothing yet.
            if refused.args[0].code() != KafkaError._NO_OFFSET:
                raise
        member.client.close()
        self.members.remove(member)

    def poll(self) -> None:
        for member in self.members:
            message = member.client.poll(0.01)
            if message is not None and message.error() is None:
                value = message.value()
                assert value is not None
                self.seen[value] += 1

    def until_shared(self) -> None:
        """Everybody has a part, and together they have everything."""
        end = time.monotonic() + WITHIN_S
        while True:
            self.poll()
            parts = [member.owns for member in self.members]
            if all(parts) and sorted(set().union(*parts)) == list(range(PARTITIONS)):
                assert sum(map(len, parts)) == PARTITIONS
                return
            assert time.monotonic() < end, parts


# Not cooperative-sticky: from the second generation on librdkafka puts user data into assignments,
# and such a group is not converted, as in Apache Kafka.
@pytest.mark.parametrize("assignor", ["range", "roundrobin"])
def test_a_rolling_upgrade_and_downgrade_under_load(bootstrap: str, assignor: str) -> None:
    topic = f"rolling-{assignor}"
    fill(bootstrap, topic, 0)
    reading = Reading(bootstrap, topic, assignor)
    with Load(bootstrap, topic) as load:
        for kinds in ((CLASSIC, CLASSIC), (CONSUMER, CONSUMER), (CLASSIC, CLASSIC)):
            for kind in kinds:
                if len(reading.members) == 2:
                    reading.leave(reading.members[0])
                reading.join(kind)
                reading.until_shared()
            assert type_of(bootstrap, topic) is kinds[0]
    end = time.monotonic() + WITHIN_S
    while len(reading.seen) < load.written:
        reading.poll()
        assert time.monotonic() < end, (len(reading.seen), load.written)
    assert set(reading.seen) == {str(number).encode() for number in range(load.written)}
    for member in list(reading.members):
        reading.leave(member)


def test_members_of_both_protocols_share(bootstrap: str) -> None:
    fill(bootstrap, "both", 10)
    classic, new = Reader(bootstrap, "both"), NewReader(bootstrap, "both")
    classic.subscribe("both")
    until(lambda: classic.read == 40, classic)
    classic.client.commit(asynchronous=False)
    new.subscribe("both")
    until(lambda: len(classic.owns) == len(new.owns) == 2, classic, new)
    assert type_of(bootstrap, "both") is CONSUMER
    assert new.committed("both") == [10] * 4
    classic.client.close()
    until(lambda: len(new.owns) == 4, new)
    again = Reader(bootstrap, "both").subscribe("both")
    until(lambda: len(again.owns) == 2, again, new)
    new.client.close()
    until(lambda: len(again.owns) == 4, again)
    assert type_of(bootstrap, "both") is CLASSIC
    again.client.close()
