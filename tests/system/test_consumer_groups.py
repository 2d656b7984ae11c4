"""Groups of the consumer protocol (KIP-848, group.protocol=consumer) as librdkafka sees them."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import (
    Consumer,
    ConsumerGroupState,
    ConsumerGroupType,
    KafkaError,
    KafkaException,
)
from confluent_kafka.admin import AdminClient, NewPartitions
from tests.system.cluster_load import QUICK, create, produce
from tests.system.test_groups import PARTITIONS, WITHIN_S, Reader, fill, until
from tests.system.wire import Wire

from ottla.testing import Cluster

QUICK_GROUPS = {
    "group.consumer.min.session.timeout.ms": 1_000,
    "group.consumer.session.timeout.ms": 3_000,
    "group.consumer.min.heartbeat.interval.ms": 100,
    "group.consumer.heartbeat.interval.ms": 200,
    "group.consumer.assignment.interval.ms": 0,
}
OPTIONS = [text for name, value in QUICK_GROUPS.items() for text in ("--config", f"{name}={value}")]


class NewReader(Reader):
    """A member of the consumer protocol: the broker chooses timeouts and assignor."""

    def __init__(self, bootstrap: str, group: str, **settings: Any) -> None:
        super().__init__(bootstrap, group)
        self.client.close()
        self.client = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": group,
                "group.protocol": "consumer",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "topic.metadata.refresh.interval.ms": 1_000,
                **settings,
            }
        )


@contextmanager
def readers(bootstrap: str, group: str, *each: dict[str, Any]) -> Iterator[list[NewReader]]:
    made = [NewReader(bootstrap, group, **settings) for settings in each]
    try:
        yield made
    finally:
        for reader in made:
            reader.client.close()


@pytest.fixture(scope="module")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """One broker for the module, with quick heartbeats."""
    with Cluster(1, {**QUICK_GROUPS}, data=tmp_path_factory.mktemp("broker")) as cluster:
        yield cluster.bootstrap


def described(bootstrap: str, group: str) -> Any:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    return admin.describe_consumer_groups([group])[group].result(30)


def test_three_members_share_and_the_rest_takes_over(bootstrap: str) -> None:
    fill(bootstrap, "shared", 10)
    with readers(bootstrap, "shared", {}, {}, {}) as (first, second, third):
        first.subscribe("shared")
        until(lambda: first.read == 40, first)
        first.client.commit(asynchronous=False)
        second.subscribe("shared")
        until(lambda: len(first.owns) == len(second.owns) == 2, first, second)
        third.subscribe("shared")
        everybody = (first, second, third)
        until(lambda: sorted(len(each.owns) for each in everybody) == [1, 1, 2], *everybody)
        assert first.owns | second.owns | third.owns == {0, 1, 2, 3}
        assert third.committed("shared") == [10] * 4
        group = described(bootstrap, "shared")
        assert (group.state, group.type) == (ConsumerGroupState.STABLE, ConsumerGroupType.CONSUMER)
        assert len(group.members) == 3
        first.client.unsubscribe()
        until(lambda: len(second.owns) == len(third.owns) == 2, *everybody)
        assert not first.owns
        # Nobody read a record twice, as only what had to move moved.
        assert [each.read for each in everybody] == [40, 0, 0]


def test_what_is_kept_is_read_on_while_the_rest_moves(bootstrap: str) -> None:
    fill(bootstrap, "kept", 5)
    with readers(bootstrap, "kept", {}, {}) as (first, second):
        first.subscribe("kept")
        until(lambda: first.read == 20, first)
        second.subscribe("kept")
        until(lambda: len(first.owns) == len(second.owns) == 2, first, second)
        assert [len(partitions) for partitions in first.taken] == [2]
        assert set(first.taken[0]) == second.owns


MEMBER = """
import sys
from confluent_kafka import Consumer
client = Consumer({"bootstrap.servers": sys.argv[1], "group.id": "missed",
                   "group.protocol": "consumer", "auto.offset.reset": "earliest"})
client.subscribe(["missed"])
while True:
    client.poll(0.1)
    print(len(client.assignment()), flush=True)
"""


def test_a_member_that_is_killed_is_missed(bootstrap: str) -> None:
    fill(bootstrap, "missed", 2)
    command = [sys.executable, "-c", MEMBER, bootstrap]
    with (
        readers(bootstrap, "missed", {}) as (heir,),
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as killed,
    ):
        heir.subscribe("missed")
        until(lambda: len(heir.owns) == 2, heir)
        assert killed.stdout is not None
        while (line := killed.stdout.readline()) != "2\n":
            assert line, "the member has ended by itself"
            heir.poll()
        killed.kill()
        until(lambda: len(heir.owns) == 4, heir)


def test_a_static_member_that_comes_back_disturbs_nobody(bootstrap: str) -> None:
    fill(bootstrap, "static", 5)
    names = [{"group.instance.id": name} for name in ("a", "b")]
    with readers(bootstrap, "static", *names) as (first, second):
        first.subscribe("static")
        second.subscribe("static")
        until(lambda: len(first.owns) == len(second.owns) == 2, first, second)
        had, changes = second.owns, (len(first.given), len(first.taken))
        second.client.close()
        with readers(bootstrap, "static", names[1]) as (again,):
            again.subscribe("static")
            until(lambda: again.owns == had, first, again)
        assert (len(first.given), len(first.taken)) == changes


def test_more_partitions_are_assigned(bootstrap: str) -> None:
    fill(bootstrap, "growing", 1)
    with readers(bootstrap, "growing", {}) as (reader,):
        reader.subscribe("growing")
        until(lambda: len(reader.owns) == PARTITIONS, reader)
        admin = AdminClient({"bootstrap.servers": bootstrap})
        admin.create_partitions([NewPartitions("growing", 6)])["growing"].result(30)
        until(lambda: len(reader.owns) == 6, reader)


def test_a_subscription_by_regular_expression(bootstrap: str) -> None:
    for name in ("regex-1", "regex-2", "other-regex"):
        fill(bootstrap, name, 1)
    with readers(bootstrap, "regex", {}) as (reader,):
        reader.subscribe("^regex-.*")
        until(lambda: reader.read == 8, reader)
        assert {each.topic for each in reader.client.assignment()} == {"regex-1", "regex-2"}


def test_classic_members_cannot_join_where_groups_are_not_converted(new_broker: Any) -> None:
    policy = ("--config", "group.consumer.migration.policy=disabled")
    bootstrap: str = new_broker(*OPTIONS, *policy).bootstrap
    fill(bootstrap, "mixed", 1)
    with readers(bootstrap, "mixed", {}) as (reader,):
        reader.subscribe("mixed")
        until(lambda: len(reader.owns) == 4, reader)
        classic = Reader(bootstrap, "mixed")
        classic.client.subscribe(["mixed"])
        errors: list[int] = []

        def refused() -> bool:
            message = classic.client.poll(0.1)
            if message is not None and message.error() is not None:
                errors.append(message.error().code())
            return bool(errors)

        until(refused, reader)
        classic.client.close()
        assert errors[0] == KafkaError.INCONSISTENT_GROUP_PROTOCOL
        assert len(reader.owns) == 4
    # Its last member has left: an empty group takes members of either protocol.
    classic = Reader(bootstrap, "mixed")
    classic.subscribe("mixed")
    until(lambda: len(classic.owns) == 4, classic)
    classic.client.close()


def test_offsets_and_members_are_there_after_a_kill(new_broker: Any) -> None:
    running = new_broker(*OPTIONS, "--config", "group.consumer.session.timeout.ms=45000")
    fill(running.bootstrap, "outlives", 25)
    with readers(running.bootstrap, "outlives", {}) as (reader,):
        reader.subscribe("outlives")
        until(lambda: reader.read == 100, reader)
        reader.client.commit(asynchronous=False)
        running.kill()
        running.start()
        fill(running.bootstrap, "outlives", 1)
        until(lambda: reader.read == 104, reader)
        # The member went on: nothing was revoked from it or assigned again.
        assert (reader.given, reader.taken) == ([[0, 1, 2, 3]], [])
        reader.client.commit(asynchronous=False)
        assert reader.committed("outlives") == [26] * 4


def test_the_coordinator_dies_and_members_go_on(tmp_path: Path) -> None:
    settings = {**QUICK, **QUICK_GROUPS, "group.consumer.session.timeout.ms": 45_000}
    with Cluster(3, settings, data=tmp_path / "cluster") as cluster:
        create(cluster, "moving", partitions=4)
        with readers(cluster.bootstrap, "moving", {}, {}) as (first, second):
            first.subscribe("moving")
            second.subscribe("moving")
            until(lambda: len(first.owns) == len(second.owns) == 2, first, second)
            epoch = len(first.given), len(second.given)
            for round_, broker in enumerate(cluster.brokers, 1):
                cluster.kill(broker)
                assert produce(cluster, "moving", 10) == ["NO_ERROR"] * 10
                until(lambda: first.read + second.read >= 10 * round_, first, second)  # noqa: B023
                for each in (first, second):
                    commit(each)
                cluster.start(broker)
                cluster.wait_in_sync()
            assert first.owns | second.owns == {0, 1, 2, 3}
            assert (len(first.given), len(second.given)) == epoch
            assert first.read + second.read == 30


def commit(reader: Reader) -> None:
    """Of what it has read; the coordinator may move meanwhile."""

    def done() -> bool:
        try:
            reader.client.commit(asynchronous=False)
        except KafkaException as fault:
            code = fault.args[0].code()
            if code == KafkaError._NO_OFFSET:
                return True
            if fault.args[0].retriable():
                return False
            raise
        return True

    until(done, reader)


def test_a_cluster_at_level_0_of_the_feature_refuses_at_once(new_broker: Any) -> None:
    """librdkafka waits for ever where a broker does not even know the request."""
    running = new_broker()
    with Wire(running.bootstrap) as wire:
        build = wire.request(57, 1)
        update = build.FeatureUpdateKey(
            feature="group.version", max_version_level=0, upgrade_type=2
        )
        wire.ask(build.UpdateFeaturesRequest(timeout=30_000, feature_updates=(update,)))
    client = NewReader(running.bootstrap, "next-generation").client
    try:
        client.subscribe(["anything"])
        end_s = time.monotonic() + WITHIN_S
        while (message := client.poll(0.5)) is None:
            assert time.monotonic() < end_s, "no error"
        assert message.error().code() == KafkaError._FATAL
        assert "version not supported" in message.error().str()
    finally:
        client.close()
