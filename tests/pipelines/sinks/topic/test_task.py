"""One task in one transaction, on a broker and without Spark."""

import io
import itertools
import json
import struct
import time
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
)

from ottla.pipelines.sinks.topic.task import (
    ByteArrays,
    NotWrittenError,
    RefusedError,
    SetBackError,
    TaskOfBatch,
    mark_of,
    read_mark,
)


class Output:
    """A topic to write to; `read` returns what a read_committed consumer sees."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self.client = {"bootstrap.servers": bootstrap}
        self.topic = topic
        self.group = f"ottla-{topic}"

    def batch(self, number: int, ends: str = "", begins: str = "", **producer: str) -> TaskOfBatch:
        return TaskOfBatch(self.topic, self.group, number, self.client, producer, ends, begins)

    def write(
        self, number: int, task: int, *values: str, ends: str = "", begins: str = ""
    ) -> list[int]:
        rows = [(b"k", value.encode(), None) for value in values]
        return list(self.batch(number, ends, begins).write(task, rows))

    def read(self) -> list[tuple[str | None, str | None, Any]]:
        consumer = Consumer(
            {
                **self.client,
                "group.id": "reader",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "isolation.level": "read_committed",
            }
        )
        consumer.assign([TopicPartition(self.topic, number, 0) for number in (0, 1)])
        found: list[tuple[str | None, str | None, Any]] = []
        ends: set[int] = set()
        try:
            while len(ends) < 2:
                message = consumer.poll(30)
                assert message is not None, "the consumer got nothing for 30 s"
                if message.error() is not None:
                    ends.add(message.partition())
                    continue
                key, value = (
                    None if content is None else content.decode()
                    for content in (message.key(), message.value())
                )
                found.append((key, value, message.headers()))
        finally:
            consumer.close()
        return found

    def values(self) -> list[str]:
        return sorted(value for _, value, _ in self.read() if value is not None)


@pytest.fixture
def output(bootstrap: str, new_topic: Callable[..., str]) -> Output:
    return Output(bootstrap, new_topic())


def test_an_attempt_writes_its_rows_and_a_later_one_skips_them(output: Output) -> None:
    assert output.write(0, 0, "a", "b") == [2]
    assert output.write(0, 0, "a", "b") == [0]
    assert output.write(0, 1, "c") == [1]
    assert output.write(1, 0, "d") == [1]
    with pytest.raises(SetBackError, match="has batch 1 of this query, and the checkpoint another"):
        output.write(0, 0, "a", "b")  # also a former run's attempt that comes late
    assert output.values() == ["a", "b", "c", "d"]


def test_a_batch_with_other_ends_is_not_taken_for_the_written_one(output: Output) -> None:
    assert output.write(0, 0, "a", ends="1f") == [1]
    assert output.write(0, 0, "a", ends="1f") == [0]
    with pytest.raises(SetBackError, match="has batch 0 of this query"):
        output.write(0, 0, "a", "b", ends="2e")
    with pytest.raises(SetBackError, match="and the checkpoint another batch 0"):
        output.write(1, 0, "b", ends="3d", begins="2e")
    assert output.write(1, 0, "b", ends="3d", begins="1f") == [1]
    assert output.values() == ["a", "b"]


def test_a_task_without_rows_does_nothing(output: Output) -> None:
    assert output.write(0, 0) == []
    assert output.values() == []


def test_nulls_and_headers_arrive(output: Output) -> None:
    rows = [
        (b"key", None, [("h", b"1"), ("none", None)]),
        (None, b"value", []),
        (b"key", b"", None),
    ]
    assert list(output.batch(0).write(0, rows)) == [3]
    found = sorted(output.read(), key=str)
    assert found == sorted(
        [
            ("key", None, [("h", b"1"), ("none", None)]),
            (None, "value", None),
            ("key", "", None),
        ],
        key=str,
    )


def test_an_attempt_whose_rows_fail_leaves_nothing_visible(output: Output) -> None:
    def rows() -> Iterator[Any]:
        yield b"k", b"lost", None
        raise ValueError("the query fails")

    with pytest.raises(ValueError, match="the query fails"):
        list(output.batch(0).write(0, rows()))
    assert output.values() == []
    assert output.write(0, 0, "a") == [1]
    assert output.values() == ["a"]


def test_a_later_attempt_fences_an_earlier_one(output: Output) -> None:
    zombie = Producer({**output.client, "transactional.id": f"{output.group}-0"})
    zombie.init_transactions(30)
    zombie.begin_transaction()
    zombie.produce(output.topic, b"zombie", partition=0)
    zombie.flush(30)

    def rows() -> Iterator[Any]:
        # The later attempt begins in the middle of the earlier one.
        yield b"k", b"early", None
        assert output.write(0, 0, "late") == [1]
        yield b"k", b"early", None

    with pytest.raises(NotWrittenError):
        list(output.batch(0).write(0, rows()))
    assert output.values() == ["late"]


def test_a_refusal_says_why(output: Output) -> None:
    with pytest.raises(RefusedError, match="INVALID_TRANSACTION_TIMEOUT"):
        list(
            output.batch(0, **{"transaction.timeout.ms": "99999999"}).write(0, [(None, b"a", None)])
        )
    with pytest.raises(RefusedError, match="MSG_SIZE_TOO_LARGE"):
        list(output.batch(0).write(0, [(None, b"a" * 2_000_000, None)]))
    assert output.values() == []


def test_a_record_that_the_broker_refuses_is_named_by_those_after_it(
    output: Output, bootstrap: str
) -> None:
    limit = ConfigEntry("max.message.bytes", "1000", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource("topic", output.topic, incremental_configs=[limit])
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 3})
    admin.incremental_alter_configs([resource])[resource].result(30)

    def rows() -> Iterator[Any]:
        yield None, b"a" * 2_000, None
        for _ in range(1_000):
            time.sleep(0.01)
            yield None, b"b", None
        raise AssertionError("the client takes all records after a refused one")

    with pytest.raises(RefusedError, match="MSG_SIZE_TOO_LARGE"):
        list(output.batch(0).write(0, rows()))
    assert output.values() == []


def test_a_mark_that_cannot_be_read_is_not_a_missing_one(
    output: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Refused(Consumer):
        def committed(self, *_: Any) -> list[Any]:
            error = KafkaError(KafkaError.GROUP_AUTHORIZATION_FAILED)
            return [SimpleNamespace(error=error, metadata=None)]

    monkeypatch.setattr("confluent_kafka.Consumer", Refused)
    with pytest.raises(RefusedError, match="GROUP_AUTHORIZATION_FAILED"):
        output.write(0, 0, "a")
    monkeypatch.undo()
    assert output.values() == []


def test_a_mark_with_other_bytes_behind_it_is_that_mark(
    output: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As confluent-kafka reads one that another client has committed."""

    class Longer(Consumer):
        def committed(self, *asked: Any) -> list[Any]:
            (mark,) = super().committed(*asked)

            class Commit:
                error = None

                @property
                def metadata(self) -> str:
                    content: bytes = mark.metadata.encode() + b"\x11{\xd1"
                    return content.decode()

            return [Commit()]

    assert output.write(0, 0, "a") == [1]
    monkeypatch.setattr("confluent_kafka.Consumer", Longer)
    assert output.write(0, 0, "a") == [0]
    monkeypatch.undo()
    assert output.values() == ["a"]


def test_marks_are_read_as_they_are_written() -> None:
    assert read_mark(mark_of(7, 100)) == (7, "")
    assert read_mark(mark_of(7, 100, "1f")) == (7, "1f")
    others = ["", None, "text", "[]", "{}", '{"ottla.written": 2, "batch": 7}']
    assert [read_mark(text).batch for text in others] == [-1] * 6
    assert read_mark(json.dumps({"ottla.written": 1, "batch": "7"})).batch == -1


def test_many_rows_pass_a_small_queue(output: Output) -> None:
    rows = [(b"%d" % number, b"v%d" % number, None) for number in range(5_000)]
    batch = output.batch(0, **{"queue.buffering.max.messages": "500"})
    assert list(batch.write(1, iter(rows))) == [5_000]
    assert len(output.values()) == 5_000
    assert list(itertools.islice(batch.write(1, iter(rows)), 2)) == [0]


def sent(*arrays: bytes | None) -> bytes:
    lengths = (-5 if each is None else len(each) for each in arrays)
    return b"".join(
        struct.pack("!i", length) + (each or b"")
        for length, each in zip(lengths, arrays, strict=True)
    )


def test_byte_arrays_are_read_until_the_end_of_the_task() -> None:
    arrays = [b"k", b"\0\xff", None, b"", b"v" * 100_000]
    stream = io.BytesIO(sent(*arrays) + struct.pack("!i", -1) + b"next")
    assert list(ByteArrays().load_stream(stream)) == arrays
    assert stream.read() == b"next"
    assert list(ByteArrays().load_stream(io.BytesIO(sent(*arrays)))) == arrays


@pytest.mark.parametrize("cut", [1, 4])
def test_a_stream_that_ends_in_a_byte_array_is_no_end_of_the_task(cut: int) -> None:
    stream = io.BytesIO(sent(b"whole", b"half")[:-cut])
    with pytest.raises(EOFError):
        list(ByteArrays().load_stream(stream))
