"""Reading to the end: which records are shown, what counts as read, and when to give up."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from typing import Any

import pytest
from confluent_kafka import KafkaError, TopicPartition
from tests.client.fake_cluster import Answer, FakeCluster, coordinators

from ottla.client.client import Client
from ottla.client.coordinators import FIND_COORDINATOR
from ottla.client.errors import RefusedError
from ottla.client.topic_partition import TopicPartition as Key
from ottla.messaging import reader as reading
from ottla.messaging.librdkafka import LibrdkafkaError, RejectedSettingsError
from ottla.messaging.reader import JOIN_TIMEOUT_S, STALL_TIMEOUT_S, Interruption, Reader
from ottla.messaging.start import Start
from ottla.protocol.errors import ErrorCode


class Event:
    """A record, or an error of librdkafka."""

    def __init__(self, partition: int, offset: int = 0, error: int | None = None) -> None:
        self._position = partition, offset
        self._error = None if error is None else KafkaError(error)

    def topic(self) -> str:
        return "t"

    def partition(self) -> int:
        return self._position[0]

    def offset(self) -> int:
        return self._position[1]

    def error(self) -> KafkaError | None:
        return self._error


class FakeConsumer:
    """Returns the batches it was given, and notes what is stored."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self.settings = settings
        self.batches: list[list[Event]] = []
        self.wanted: list[int] = []
        self.stored: dict[int, int] = {}
        self.held: list[TopicPartition] = []

    def assign(self, partitions: list[TopicPartition]) -> None:
        self.held = partitions

    def assignment(self) -> list[TopicPartition]:
        return self.held

    def consume(self, most: int, _timeout: float) -> list[Event]:
        self.wanted.append(most)
        return self.batches.pop(0)

    def store_offsets(self, offsets: list[TopicPartition]) -> None:
        self.stored.update({each.partition: each.offset for each in offsets})


def cluster(*answers: Answer, **settings: str) -> tuple[Client, dict[str, str]]:
    fake = FakeCluster({FIND_COORDINATOR: answers or [coordinators()]})
    return fake.client(), {"client.id": "tests"} | settings


def new_reader(monkeypatch: pytest.MonkeyPatch, **options: Any) -> Reader:
    monkeypatch.setattr(reading, "Consumer", FakeConsumer)
    given = {"group": None, "start": Start("beginning"), "follow": False} | options
    return Reader(*given.pop("cluster", None) or cluster(), **given)


def records(partition: int, *offsets: int) -> list[Event]:
    return [Event(partition, offset) for offset in offsets]


def ran(reader: Reader, *batches: list[Event], most: int | None = None) -> list[tuple[int, int]]:
    """Partition and offset of what is shown."""
    reader.consumer.batches = list(batches)
    shown: list[tuple[int, int]] = []

    def show(found: Sequence[Any], before: int) -> None:
        assert before == len(shown)
        shown.extend((each.partition(), each.offset()) for each in found)

    reader.run(show, most)
    assert reader.records == len(shown)
    return shown


def test_it_ends_when_every_partition_was_read_to_its_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reader = new_reader(monkeypatch)
    reader.assign(
        {Key("t", 0): 5, Key("t", 1): 0, Key("t", 2): 7},
        {Key("t", 0): 7, Key("t", 1): 1, Key("t", 2): 7},
    )
    shown = ran(reader, records(0, 5), [], [*records(1, 0), *records(0, 6)])
    assert shown == [(0, 5), (1, 0), (0, 6)]
    assert (reader.done_offsets, reader.total_offsets) == (3, 3)


def test_the_end_of_a_partition_may_be_a_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last offsets are markers of transactions, or were compacted away."""
    reader = new_reader(monkeypatch)
    reader.assign({Key("t", 0): 0}, {Key("t", 0): 9})
    end = Event(0, error=KafkaError._PARTITION_EOF)
    assert ran(reader, [*records(0, 0, 4), end]) == [(0, 0), (0, 4)]
    assert (reader.done_offsets, reader.total_offsets) == (5, 9)


def test_nothing_past_a_bound_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    reader = new_reader(monkeypatch)
    reader.assign(
        {Key("t", 0): 0, Key("t", 1): 0},
        {Key("t", 0): 2, Key("t", 1): 2},
        bounded=True,
    )
    shown = ran(reader, records(0, 1, 2, 3), records(1, 0, 5))
    assert shown == [(0, 1), (1, 0)]


def test_a_limit_counts_what_matches(monkeypatch: pytest.MonkeyPatch) -> None:
    reader = new_reader(monkeypatch, matches=lambda record: record.offset() % 2 == 0)
    reader.assign({Key("t", 0): 0}, {Key("t", 0): 100})
    assert ran(reader, records(0, 0, 1, 2, 3, 4), most=2) == [(0, 0), (0, 2)]
    assert reader.consumer.wanted == [reading.BATCH_RECORDS]


def test_a_group_reads_no_more_than_it_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    """What it reads is committed."""
    reader = new_reader(monkeypatch, group="g", matches=lambda record: record.offset() > 0)
    reader.assign({Key("t", 0): 0}, {Key("t", 0): 100})
    assert ran(reader, records(0, 0, 1), records(0, 2), most=2) == [(0, 1), (0, 2)]
    assert reader.consumer.wanted == [2, 1]
    assert reader.consumer.stored == {0: 3}


def test_a_partition_that_moved_away_is_not_committed(monkeypatch: pytest.MonkeyPatch) -> None:
    reader = new_reader(monkeypatch, group="g")
    reader.assign(
        {Key("t", 0): 0, Key("t", 1): 0},
        {Key("t", 0): 1, Key("t", 1): 1},
    )
    reader.consumer.held = [TopicPartition("t", 1)]
    reader.passed([*records(0, 0), *records(1, 0)])
    assert reader.consumer.stored == {1: 1}
    reader.revoked(None, [TopicPartition("t", 1)])
    assert not reader.assigned


def test_only_members_of_a_group_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    for group in (None, "g"):
        settings = new_reader(monkeypatch, group=group).consumer.settings
        assert settings["enable.auto.commit"] is (group is not None)
        assert settings["client.id"] == "tests"


@pytest.mark.parametrize("code", ["UNKNOWN_TOPIC_OR_PART", "_UNKNOWN_PARTITION"])
def test_a_topic_that_is_deleted_meanwhile(monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    reader = new_reader(monkeypatch)
    with pytest.raises(LibrdkafkaError, match="topic 't' was deleted"):
        reader.is_news(Event(0, error=getattr(KafkaError, code)))
    with pytest.raises(LibrdkafkaError, match="cannot continue to read"):
        reader.is_news(Event(0, error=KafkaError._FATAL))


@pytest.mark.parametrize(
    ("code", "lacking"),
    [
        ("TOPIC_AUTHORIZATION_FAILED", ("Read", "topic", "t")),
        ("GROUP_AUTHORIZATION_FAILED", ("Read", "group", "g")),
    ],
)
def test_what_an_acl_refuses_is_named(
    monkeypatch: pytest.MonkeyPatch, code: str, lacking: tuple[str, ...]
) -> None:
    reader = new_reader(monkeypatch, group="g")
    with pytest.raises(RefusedError) as refused:
        reader.is_news(Event(0, error=getattr(KafkaError, code)))
    assert refused.value.lacking == lacking


def test_without_a_group_no_group_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    denied = Event(0, error=KafkaError.GROUP_AUTHORIZATION_FAILED)
    assert new_reader(monkeypatch).is_news(denied)


def test_patience_with_silent_brokers(monkeypatch: pytest.MonkeyPatch) -> None:
    reader = new_reader(monkeypatch)
    key = Key("t", 0)
    reader.assign({key: 0}, {key: 10})
    reader.check_patience(STALL_TIMEOUT_S)
    with pytest.raises(LibrdkafkaError, match="t-0 has records up to offset 9; read 0 so far"):
        reader.check_patience(STALL_TIMEOUT_S + 1)


def test_patience_with_a_group_that_assigns_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    moving = coordinators(ErrorCode.coordinator_not_available, "Too few brokers.")
    said: list[str] = []
    reader = new_reader(monkeypatch, group="g", cluster=cluster(moving), tell=said.append)
    for silent_s in (1, JOIN_TIMEOUT_S, JOIN_TIMEOUT_S):
        reader.check_patience(silent_s)
    assert said == ["Waiting for group g: Too few brokers."]
    with pytest.raises(LibrdkafkaError, match="assigned no partitions") as failure:
        reader.check_patience(JOIN_TIMEOUT_S + 1)
    assert failure.value.hint == "Too few brokers."


def test_the_first_ctrl_c_is_a_flag_and_the_second_interrupts() -> None:
    # Where the tests run in the background, SIGINT is ignored.
    found = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with Interruption() as interruption:
            signal.raise_signal(signal.SIGINT)
            assert interruption.wanted
            with pytest.raises(KeyboardInterrupt):
                signal.raise_signal(signal.SIGINT)
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, found)


@pytest.mark.parametrize("times", [1, 2])
def test_ctrl_c_while_it_closes(monkeypatch: pytest.MonkeyPatch, times: int) -> None:
    reader, left = new_reader(monkeypatch, group="g"), []

    def close() -> None:
        """As librdkafka's, which calls back from C."""
        try:
            for _ in range(times):
                signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            raise SystemError("returned NULL without setting an exception") from None
        left.append("the group")

    reader.consumer.close = close
    found = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            reader.close()
    finally:
        signal.signal(signal.SIGINT, found)
    assert left == (["the group"] if times == 1 else [])


def test_a_setting_that_librdkafka_rejects() -> None:
    wrong = cluster(**{"no.such.setting": "1"})
    with pytest.raises(RejectedSettingsError, match="cannot consume with these settings"):
        Reader(*wrong, group=None, start=Start("end"), follow=False)
