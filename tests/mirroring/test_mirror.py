"""Records, settings, groups and losses, from one broker to another."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any
from uuid import uuid4

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from tests.mirroring.conftest import Run

from ottla.client.admin.acls import acls, create_acls
from ottla.client.admin.committed_offsets import commit_offsets, commits_of
from ottla.client.admin.configs import alter_settings
from ottla.client.admin.offsets import end_offsets
from ottla.client.admin.quotas import alter_quotas
from ottla.client.admin.records import delete_records
from ottla.client.admin.topics import add_partitions, delete_topic
from ottla.client.client import Client
from ottla.client.errors import ClientError
from ottla.client.topic_partition import TopicPartition as Partition
from ottla.mirroring import events, map_reader, open_entries, target_producer, transaction_size
from ottla.mirroring.mirror import MirrorError
from ottla.mirroring.open_entries import MAX_JOINED
from ottla.mirroring.topics import own_settings
from ottla.quotas.entity import Entity, Kind
from ottla.security.acl_words import parse_acls
from ottla.testing import Broker

Brokers = tuple[Broker, Broker]


def name_of(text: str) -> str:
    return f"{text}-{uuid4().hex[:8]}"


def committed(broker: Broker, group: str, topic: str) -> dict[int, int]:
    with Client(broker.bootstrap) as client:
        found = commits_of(client, group)
    return {each.partition: at.offset for each, at in found.items() if each.topic == topic}


def commit(broker: Broker, group: str, topic: str, offsets: dict[int, int]) -> None:
    with Client(broker.bootstrap) as client:
        wanted = {Partition(topic, index): at for index, at in offsets.items()}
        assert not commit_offsets(client, group, wanted)


def read_on(broker: Broker, group: str, topic: str, partitions: Sequence[int]) -> list[bytes]:
    """What the group's next reader gets, from its committed offsets to the end."""
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": group,
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 10,  # how long the end of a partition takes
            "auto.offset.reset": "error",
        }
    )
    positions = consumer.committed([TopicPartition(topic, each) for each in partitions], timeout=30)
    consumer.assign(positions)
    found, ended = [], 0
    while ended < len(partitions):
        message = consumer.poll(10)
        assert message is not None
        if message.error() is None:
            found.append(message.value())
        else:
            ended += 1
    consumer.close()
    return found


def produce(broker: Broker, topic: str, value: bytes, partition: int = 0) -> None:
    """With a client that knows of no older metadata, and takes large records."""
    producer = Producer({"bootstrap.servers": broker.bootstrap, "message.max.bytes": 10_000_000})
    producer.produce(topic, value, partition=partition)
    assert producer.flush(30) == 0


def values_of(broker: Broker, topic: str) -> dict[int, list[bytes | None]]:
    """By partition, in order."""
    found: dict[int, list[bytes | None]] = {}
    for each in broker.consume(topic):
        found.setdefault(each.partition, []).append(each.value)
    return found


def without_offsets(broker: Broker, topic: str) -> list[Any]:
    """All of each record but its offset: the mirror's transactions have markers."""
    return [replace(each, offset=0) for each in broker.consume(topic)]


def write_in_transactions(broker: Broker, topic: str, count: int) -> None:
    """Each value in a transaction, with an aborted one between each two."""
    producer = Producer(
        {"bootstrap.servers": broker.bootstrap, "transactional.id": name_of("x"), "linger.ms": 0}
    )
    producer.init_transactions(30)
    for number in range(count):
        for ending in (producer.abort_transaction, producer.commit_transaction):
            producer.begin_transaction()
            text = "aborted" if ending == producer.abort_transaction else f"value {number}"
            producer.produce(topic, text, partition=0)
            producer.flush(30)
            ending(30)


def test_records_are_kept_whole(brokers: Brokers) -> None:
    source, target = brokers
    name = name_of("whole")
    topic = source.create_topic(name, partitions=3, config={"retention.ms": -1})
    for partition in range(3):
        topic.produce(
            "a",
            b"",
            None,
            b"\xff\x00",
            key=f"k{partition}",
            partition=partition,
            timestamp_ms=1_600_000_000_000 + partition,
            headers={"text": "x", "bytes": b"\xff", "none": None},
        )
        topic.produce("without a key", partition=partition)
        topic.produce((b"", "an empty key"), partition=partition)
    with Run(source, target, topics=(name,), name=name) as run:
        run.to_the_end()
        assert run.mirror.progress.records == 18
    assert without_offsets(target, name) == without_offsets(source, name)
    with Run(source, target, topics=(name,), name=name) as run:
        topic.produce("later", partition=1)
        run.to_the_end()
        assert run.mirror.progress.records == 1
        assert not run.mirror.losses
    assert [each.value for each in target.consume(name)] == [
        each.value for each in source.consume(name)
    ]
    with Client(target.bootstrap) as client:
        assert own_settings(client, [name])[name] == {"retention.ms": "-1"}


def test_a_moved_group_reads_exactly_the_unread(brokers: Brokers) -> None:
    """Through markers, aborted records, and the mirror's own markers."""
    source, target = brokers
    name = name_of("moved")
    source.create_topic(name)
    write_in_transactions(source, name, 3)
    with Run(source, target, topics=(name,), name=name, commit_every_s=0.05) as run:
        run.to_the_end()
    write_in_transactions(source, name, 1)
    with Client(source.bootstrap) as client:
        end = end_offsets(client, [Partition(name, 0)])[Partition(name, 0)]
    groups = {at: name_of(f"at-{at}") for at in range(end + 1)}
    for at, group in groups.items():
        commit(source, group, name, {0: at})
    unread = {at: read_on(source, group, name, [0]) for at, group in groups.items()}
    assert len({len(each) for each in unread.values()}) == 5
    with Run(source, target, topics=(name,), name=name, groups=("at-.*",)) as run:
        run.to_the_end()
        run.mirror.settle_groups()
    for at, group in groups.items():
        assert read_on(target, group, name, [0]) == unread[at], at


def test_transactions_of_a_mirror_that_has_caught_up(brokers: Brokers) -> None:
    """Each record gets its own; together they have few entries in the map, and it is exact."""
    source, target = brokers
    name = name_of("small")
    topic = source.create_topic(name)
    spec: dict[str, Any] = {"topics": (name,), "name": name, "commit_every_s": None}
    with Run(source, target, **spec, groups=("none",)) as run:
        for number in range(MAX_JOINED + 2):
            topic.produce(str(number))
            run.until(partial(has_mirrored, run, number + 1))
    entries = [each.key for each in target.consume(f"ottla-mirror-{name}") if each.key]
    begins = {json.loads(key)["from"] for key in entries}
    assert begins == {"start", 0, MAX_JOINED}
    groups = {at: name_of(f"at-{at}") for at in (0, 1, 7, MAX_JOINED - 1, MAX_JOINED)}
    for at, group in groups.items():
        commit(source, group, name, {0: at})
    with Run(source, target, **spec, groups=("at-.*",)) as run:
        run.to_the_end()
        run.mirror.settle_groups()
    for at, group in groups.items():
        expected = [str(each).encode() for each in range(at, MAX_JOINED + 2)]
        assert read_on(target, group, name, [0]) == expected


def test_a_group_that_reads_at_the_target_is_left_alone(brokers: Brokers) -> None:
    source, target = brokers
    name = name_of("home")
    source.create_topic(name).produce("a", "b", "c", "d")
    group = name_of("g")
    commit(source, group, name, {0: 2})
    with Run(source, target, topics=(name,), name=name, groups=(group,)) as run:
        run.to_the_end()
        run.mirror.settle_groups()
        assert committed(target, group, name) == {0: 2}
        commit(source, group, name, {0: 1})
        run.mirror.settle_groups()
        assert committed(target, group, name) == {0: 1}, "a reset is followed"
        commit(target, group, name, {0: 3})
        commit(source, group, name, {0: 4})
        run.mirror.settle_groups()
        assert committed(target, group, name) == {0: 3}


def test_switching_a_group(brokers: Brokers) -> None:
    source, target = brokers
    name = name_of("switch")
    source.create_topic(name, partitions=2).produce("a", "b", "c", partition=1)
    group = name_of("g")
    commit(source, group, name, {0: 0, 1: 1})
    with Run(source, target, topics=(name,), name=name) as run:
        run.to_the_end()
        moved = run.mirror.switch(group) or []
    assert [(each.partition.partition, each.source, each.target) for each in moved] == [
        (0, 0, 0),
        (1, 1, 1),
    ]
    assert read_on(target, group, name, [0, 1]) == [b"b", b"c"]


def test_new_topics_partitions_and_settings_are_followed(brokers: Brokers) -> None:
    source, target = brokers
    begin = name_of("follow")
    one, two = f"{begin}-1", f"{begin}-2"
    source.create_topic(one, config={"retention.ms": 1_000_000_000}).produce("a")
    with Run(source, target, topics=(f"{begin}.*",), name=begin, prefix="new.") as run:
        run.to_the_end()
        source.create_topic(two).produce("b")
        with Client(source.bootstrap) as client:
            add_partitions(client, one, 3)
            change = {"segment.ms": "9000000"}
            alter_settings(client, "topic", one, change, ["retention.ms"])
        produce(source, one, b"c", partition=2)
        run.until(lambda: run.mirror.progress.records == 3)
    assert [each.value for each in target.consume(f"new.{one}")] == [b"a", b"c"]
    assert [each.value for each in target.consume(f"new.{two}")] == [b"b"]
    with Client(target.bootstrap) as client:
        assert own_settings(client, [f"new.{one}"])[f"new.{one}"] == change
    assert {events.CREATED, events.EXTENDED, events.ALTERED} <= set(run.kinds())


def test_a_topic_that_is_made_again_is_not_mirrored_in_silence(brokers: Brokers) -> None:
    source, target = brokers
    name = name_of("again")
    source.create_topic(name).produce("a", "b")
    with Run(source, target, topics=(name,), name=name) as run:
        run.to_the_end()
        with Client(source.bootstrap) as client:
            delete_topic(client, name)
        source.create_topic(name).produce("of the new topic", "x", "y", "z")
        run.until(lambda: run.mirror.losses > 0)
    assert {events.RECREATED, events.REFUSED} & set(run.kinds())
    assert [each.value for each in target.consume(name)] == [b"a", b"b"]
    with pytest.raises(MirrorError, match="deleted and created again"):
        Run(source, target, topics=(name,), name=name).__enter__()
    with Client(target.bootstrap) as client:
        delete_topic(client, name)
    with Run(source, target, topics=(name,), name=name) as run:
        run.to_the_end()
    assert [each.text for each in target.consume(name)] == ["of the new topic", "x", "y", "z"]


def test_a_copy_that_is_deleted_is_mirrored_again_whole(brokers: Brokers) -> None:
    """While the mirror runs, too: the new copy does not begin in the middle, nor twice."""
    source, target = brokers
    name = name_of("copy")
    topic = source.create_topic(name, partitions=2)
    topic.produce("a", "b", "c", partition=0)
    with Run(source, target, topics=(name,), name=name) as run:
        run.to_the_end()
        with Client(target.bootstrap) as client:
            delete_topic(client, name)
        topic.produce("d", partition=0)
        topic.produce("e", partition=1)
        run.until(lambda: run.mirror.progress.records == 8)
    assert run.kinds().count(events.CREATED) == 2
    assert not run.mirror.losses
    with Run(source, target, topics=(name,), name=name) as run:
        topic.produce("f", partition=1)
        run.to_the_end()
        assert run.mirror.progress.records == 1
    # The offsets may be others: a transaction was aborted.
    assert values_of(target, name) == values_of(source, name)
    group = name_of("g")
    commit(source, group, name, {0: 2, 1: 0})
    with Run(source, target, topics=(name,), name=name) as run:
        run.to_the_end()
        run.mirror.switch(group)
    assert sorted(read_on(target, group, name, [0, 1])) == [b"c", b"d", b"e", b"f"]


def test_a_group_is_not_moved_by_a_map_that_was_deleted(brokers: Brokers) -> None:
    source, target = brokers
    name = name_of("lost")
    topic = source.create_topic(name)
    topic.produce("a", "b", "c")
    with Run(source, target, topics=(name,), name=name) as run:
        run.to_the_end()
    with Client(target.bootstrap) as client:
        delete_topic(client, f"ottla-mirror-{name}")
    group = name_of("g")
    commit(source, group, name, {0: 1})
    topic.produce("d")
    with Run(source, target, topics=(name,), name=name, groups=(group,)) as run:
        run.to_the_end()
        run.mirror.settle_groups()
        assert committed(target, group, name) == {}
        assert [each.kind for each in run.events if "does not reach back" in each.text] == [
            events.GROUP
        ]
        with pytest.raises(ClientError, match="does not reach back"):
            run.mirror.switch(group)
        commit(source, group, name, {0: 3})
        run.mirror.settle_groups()
    assert read_on(target, group, name, [0]) == [b"d"]


def test_a_deleted_topic_is_reported_and_stays(brokers: Brokers) -> None:
    source, target = brokers
    begin = name_of("gone")
    for each in ("1", "2"):
        source.create_topic(f"{begin}-{each}").produce("a")
    with Run(source, target, topics=(f"{begin}.*",), name=begin) as run:
        run.to_the_end()
        with Client(source.bootstrap) as client:
            delete_topic(client, f"{begin}-1")
        run.until(lambda: events.DELETED in run.kinds())
        source.topic(f"{begin}-2").produce("b")
        run.until(lambda: run.mirror.progress.records == 3)
    assert [each.value for each in target.consume(f"{begin}-1")] == [b"a"]


def test_records_that_were_removed_before_they_were_read_are_said(brokers: Brokers) -> None:
    source, target = brokers
    name = name_of("removed")
    topic = source.create_topic(name)
    topic.produce("a", "b")
    with Run(source, target, topics=(name,), name=name) as run:
        run.to_the_end()
    topic.produce("c", "d", "e")
    with Client(source.bootstrap) as client:
        delete_records(client, {Partition(name, 0): 4})
    with Run(source, target, topics=(name,), name=name) as run:
        run.to_the_end()
    (said,) = [each for each in run.events if each.kind == events.REMOVED]
    assert said.facts == {"topic": name, "partition": 0, "first": 2, "last": 3}
    assert [each.value for each in target.consume(name)] == [b"a", b"b", b"e"]


def test_loops_and_records_of_others_are_refused(brokers: Brokers) -> None:
    source, target = brokers
    name = name_of("loop")
    source.create_topic(name).produce("a")
    with Run(source, target, topics=(name,), name=name) as run:
        run.to_the_end()
    with pytest.raises(MirrorError, match="mirrored from the target"):
        Run(target, source, topics=(name,), name=f"{name}-back").__enter__()
    with pytest.raises(MirrorError, match="did not write"):
        Run(source, target, topics=(name,), name=f"{name}-other").__enter__()
    with pytest.raises(MirrorError, match="same cluster"):
        Run(source, source, topics=(name,), name=f"{name}-same").__enter__()
    assert len(source.consume(name)) == 1


def test_two_instances_share_the_partitions(brokers: Brokers) -> None:
    source, target = brokers
    name = name_of("shared")
    topic = source.create_topic(name, partitions=4)
    options: dict[str, Any] = {"topics": (name,), "name": name}
    with Run(source, target, **options, instance="a") as one:
        one.to_the_end()
        with Run(source, target, **options, instance="b") as two:
            two.until(lambda: one.mirror.run(turns(3)) is False and held(two) > 0)
            for partition in range(4):
                topic.produce("a", "b", partition=partition)
            two.until(
                lambda: one.mirror.run(turns(3)) is False and records(one) + records(two) == 8
            )
            assert held(one) > 0
            assert records(two) > 0
    assert without_offsets(target, name) == without_offsets(source, name)


def turns(count: int) -> Any:
    left = iter([False] * count)
    return lambda: next(left, True)


def held(run: Run) -> int:
    return len(run.mirror._share.committed)


def has_mirrored(run: Run, count: int) -> bool:
    return records(run) >= count


def records(run: Run) -> int:
    return run.mirror.progress.records


def test_a_large_record_and_small_batches(brokers: Brokers) -> None:
    source, target = brokers
    name = name_of("large")
    source.create_topic(name, config={"max.message.bytes": 3_000_000})
    produce(source, name, b"x" * 2_500_000)
    small = name_of("large")
    limited = source.create_topic(small, config={"max.message.bytes": 2_000})
    for _ in range(50):
        limited.produce(os.urandom(1_000))
    with Run(source, target, topics=("large-.*",), name=name) as run:
        run.to_the_end()
    for each in (name, small):
        values = [record.value for record in source.consume(each)]
        assert [record.value for record in target.consume(each)] == values


def test_a_slow_link(brokers: Brokers, monkeypatch: pytest.MonkeyPatch) -> None:
    """The target takes 1 MB/s, and a transaction has two seconds."""
    monkeypatch.setattr(target_producer, "DELIVERED_WITHIN_S", 2.0)
    monkeypatch.setattr(transaction_size, "QUICK_S", 0.2)
    source, _ = brokers
    name = name_of("slow")
    topic = source.create_topic(name)
    for _ in range(600):
        topic.produce(os.urandom(10_000))
    with Broker({"quota.window.num": 2}) as target:
        with Client(target.bootstrap) as client:
            slow = {Kind.PRODUCE: 1_000_000.0}
            alter_quotas(client, Entity(client_id=""), slow)
        with Run(source, target, topics=(name,), name=name) as run:
            run.to_the_end()
            assert run.mirror.progress.records == 600
        said = [each.text for each in run.events if "not acknowledged" in each.text]
        assert said
        assert all(each.endswith("The next ones are smaller.") for each in said)
        assert [each.value for each in target.consume(name)] == [
            each.value for each in source.consume(name)
        ]


def test_a_record_that_is_too_large_for_the_target(brokers: Brokers) -> None:
    """It is said, though it is neither the first nor the last of those that were read."""
    source, target = brokers
    name = name_of("huge")
    source.create_topic(name, config={"max.message.bytes": 3_000_000})
    for value in (b"small", os.urandom(2_500_000), *[b"small"] * 20):
        produce(source, name, value)
    spec: dict[str, Any] = {"exclude_settings": frozenset({"max.message.bytes"})}
    with Run(source, target, topics=(name,), name=name, **spec) as run:
        with pytest.raises(MirrorError, match="a record is larger than the target takes"):
            run.to_the_end()
        assert values_of(target, name) == {}


@pytest.mark.parametrize("is_expected", [True, False])
def test_another_program_writes_between(brokers: Brokers, is_expected: bool) -> None:
    """Each offset is translated exactly, though the target's do not follow each other."""
    source, target = brokers
    name = name_of("between")
    topic = source.create_topic(name)
    spec: dict[str, Any] = {"topics": (name,), "name": name, "commit_every_s": 0.3}
    topic.produce("0")
    with Run(source, target, **spec, into_existing=is_expected) as run:
        run.to_the_end()
    topic.produce("1", "2", "3", "4")
    with Run(source, target, **spec, into_existing=is_expected) as run:
        writer: Any = run.mirror._writer
        add = writer.add

        def added(partition: Partition, records: Sequence[Any]) -> None:
            """The first of them, a record of another program, and the others."""
            if len(records) < 3 or values_of(target, name)[0].count(b"other"):
                add(partition, records)
                return
            producer: Any = run.mirror._producer
            produced = producer.produce

            def produce_in_between(to: str, value: Any, key: Any, **options: Any) -> None:
                produced(to, value, key, **options)
                if value == records[0].value():
                    assert producer._producer.flush(30) == 0
                    produce(target, name, b"other")

            producer.produce = produce_in_between
            add(partition, records)
            producer.produce = produced

        writer.add = added
        run.to_the_end()
        written = [each for each in values_of(target, name)[0] if each != b"other"]
        assert written == [b"0", b"1", b"2", b"3", b"4"]
        assert (events.WAITING in run.kinds()) is not is_expected
        for at in range(5):
            commit(source, f"{name}-{at}", name, {0: at})
    with Run(source, target, **spec, into_existing=True, groups=(f"{name}-.*",)) as run:
        run.to_the_end()
        run.mirror.settle_groups()
    for at in range(5):
        found = read_on(target, f"{name}-{at}", name, [0])
        assert [each for each in found if each != b"other"] == [
            str(each).encode() for each in range(at, 5)
        ]


def test_the_map_is_as_large_as_the_log_of_the_source(
    brokers: Brokers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(map_reader, "MIN_TIDIED", 1)
    monkeypatch.setattr(open_entries, "MAX_JOINED", 1)
    source, target = brokers
    name = name_of("tidy")
    topic = source.create_topic(name)
    with Run(source, target, topics=(name,), name=name, groups=("none",)) as run:
        for text in ("a", "b", "c", "d"):
            topic.produce(text)
            run.to_the_end()
        with Client(source.bootstrap) as client:
            delete_records(client, {Partition(name, 0): 2})
        run.mirror.keeper.stop()
        assert run.mirror.keeper.tidy_map() == 2
        assert run.mirror.keeper.tidy_map() == 0
    left = {each.key: each.value for each in target.consume(f"ottla-mirror-{name}")}
    assert [json.loads(key or b"")["from"] for key, value in left.items() if value] == [
        "start",
        2,
        3,
    ]
    group = name_of("g")
    commit(source, group, name, {0: 3})
    with Run(source, target, topics=(name,), name=name) as run:
        run.to_the_end()
        run.mirror.switch(group)
    assert read_on(target, group, name, [0]) == [b"d"]


def test_topic_acls(brokers: Brokers) -> None:
    authorized = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
    }
    with Broker(authorized) as source, Broker(authorized) as target:
        source.create_topic("t").produce("a")
        with Client(source.bootstrap) as client:
            create_acls(client, parse_acls("ann Read topic t"))
            create_acls(client, parse_acls("ann Read topic other"))
        with Run(source, target, prefix="new.", with_acls=True) as run:
            run.to_the_end()
        with Client(target.bootstrap) as client:
            assert acls(client) == sorted(parse_acls("ann Read topic new.t"))


def test_admin_client_sees_the_positions(brokers: Brokers) -> None:
    """They are the offsets of a group, which any tool shows."""
    source, target = brokers
    name = name_of("seen")
    source.create_topic(name).produce("a", "b")
    with Run(source, target, topics=(name,), name=name) as run:
        run.to_the_end()
    assert committed(target, f"ottla-mirror-{name}", name) == {0: 2}
    admin = AdminClient({"bootstrap.servers": target.bootstrap})
    groups = admin.list_consumer_groups().result().valid
    assert f"ottla-mirror-{name}" in {each.group_id for each in groups}
