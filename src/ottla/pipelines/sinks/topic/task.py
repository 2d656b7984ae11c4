"""One task of a batch: writes its rows to a topic in one transaction. Runs on Spark's executors.

This file imports `checkpoint.next_batch` and `kafka.committed`, and those nothing of Ottla:
`sinks.topic.sink` sends all three to the executors by value, and they need confluent-kafka only.

A task has a number from 0 on, and a batch that is tried again has the same rows in the task of the
same number (`sinks.topic.sink` says why). Each task has one transactional id and one mark:

    transactional id   <group>-<task>
    mark               the commit of <group> for partition <task> of the topic that is written:
                       offset 0, so that it does not count as having read anything, and
                       {"ottla.written": 1, "batch": <number>, "rows": <number>, "ends": "<digest>"}
                       as its metadata

The mark is committed in the transaction of the rows (KIP-447), so both are visible or neither. An
attempt does in this order:

1. InitProducerId. It fences every earlier attempt of this task, and aborts or completes what that
   one left open; from here on no earlier attempt can commit. Then the same for the id
   <group>-batch, in which `sinks.topic.one_transaction` writes a batch as a whole, and says why in
   this order.
2. It reads the mark. If that names this batch, an earlier attempt wrote the rows: nothing is
   written. If it names a later batch, or this one or the one before with another digest, the
   checkpoint was set back (a restored backup, a copy): the rows of this batch are other rows, and
   the attempt is refused.
3. It writes the rows and the mark in one transaction, and commits.

Killed before 3 ends, an attempt leaves an open transaction, which the next attempt or the timeout
of the transaction aborts. Whether a commit without an answer was made, the next attempt finds by
the mark.

`ends` is a digest of the offsets at which the batch ends: the metadata of a commit is at most
offset.metadata.max.bytes long. Marks of earlier versions have none, and are compared by number.
"""

from __future__ import annotations

import base64
import contextlib
import itertools
import json
import struct
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO, NamedTuple

from ottla.pipelines.checkpoint.next_batch import Held, Planned, Refuse, Skip, decide
from ottla.pipelines.kafka.committed import metadata_of, read_document

VERSION = 1
TIMEOUT_S = 60.0
"""For each request, retries included."""
QUEUE_WAIT_S = 0.1
_LENGTH = "!i"
_NULL = -5
"""PySpark's SpecialLengths.NULL."""


class NotWrittenError(Exception):
    """The rows are not written for now; another attempt may help."""


class RefusedError(Exception):
    """The brokers or the client refuse the rows; another attempt would fail as well."""


class SetBackError(Exception):
    """The topic has another batch of this number, or a later one: the checkpoint is older."""


@dataclass(frozen=True)
class TaskOfBatch:
    """What all tasks of a batch have in common.

    `client` has librdkafka's settings for clients of any kind, `producer` those for producers.
    `ends` is the digest of where the batch ends, `begins` of where the one before it ended, empty
    where that is not known.
    """

    topic: str
    group: str
    batch: int
    client: Mapping[str, str]
    producer: Mapping[str, str]
    ends: str = ""
    begins: str = ""

    def __repr__(self) -> str:
        """Leave out the settings, which may be secret."""
        return f"TaskOfBatch({self.topic}, batch {self.batch})"

    def write(self, task: int, rows: Iterable[Any]) -> Iterator[int]:
        """Write the rows of a task: (key, value, headers) as of `rows_of`.

        Yields the number of rows that this attempt wrote; nothing for a task without rows, and 0
        if an earlier attempt wrote them. Raises NotWrittenError, RefusedError or SetBackError.
        """
        from confluent_kafka import KafkaException

        each = iter(rows)
        first = next(each, None)
        if first is None:
            return
        try:
            yield _attempt(self, task, itertools.chain((first,), each))
        except KafkaException as error:
            raise _named(self.topic, error.args[0]) from error


def _id_of(group: str, task: int) -> str:
    return f"{group}-{task}"


def whole_batch_id(group: str) -> str:
    """The transactional id of a batch that is written as a whole."""
    return f"{group}-batch"


def fence(batch: TaskOfBatch, task: int) -> None:
    """End what attempts of a task left open: none that runs can commit. Raises as `write` does."""
    from confluent_kafka import KafkaException

    try:
        _fence(batch, _id_of(batch.group, task))
    except KafkaException as error:
        raise _named(batch.topic, error.args[0]) from error


def _fence(batch: TaskOfBatch, name: str) -> None:
    from confluent_kafka import Producer

    own = {"transactional.id": name, "log_level": "0"}
    Producer({**batch.client, **batch.producer, **own}).init_transactions(TIMEOUT_S)


def _attempt(batch: TaskOfBatch, task: int, rows: Iterator[Any]) -> int:
    from confluent_kafka import Consumer, Producer, TopicPartition

    producer = Producer(
        {
            **batch.client,
            **batch.producer,
            "transactional.id": _id_of(batch.group, task),
            "log_level": "0",
        }
    )
    consumer = Consumer(
        {
            **batch.client,
            "group.id": batch.group,
            "enable.auto.commit": "false",
            # The read of the mark waits for a transaction that is being completed.
            "isolation.level": "read_committed",
            "log_level": "0",
        }
    )
    try:
        producer.init_transactions(TIMEOUT_S)
        _fence(batch, whole_batch_id(batch.group))
        (mark,) = consumer.committed([TopicPartition(batch.topic, task)], TIMEOUT_S)
        if mark.error is not None:
            raise _exception(mark.error)
        held = held_of(batch.topic, [read_mark(metadata_of(mark))])
        answer = decide(Planned("", batch.batch, batch.begins, batch.ends), held)
        if isinstance(answer, Refuse):
            assert held.batch is not None
            raise SetBackError(
                f"topic {batch.topic} has batch {held.batch} of this query, and the checkpoint "
                f"another batch {min(held.batch, batch.batch)}"
            )
        if isinstance(answer, Skip):
            return 0
        return _write(batch, task, rows, producer, consumer.consumer_group_metadata())
    finally:
        consumer.close()


def _write(batch: TaskOfBatch, task: int, rows: Iterator[Any], producer: Any, group: Any) -> int:
    from confluent_kafka import KafkaError, KafkaException, TopicPartition

    def mark(count: int) -> None:
        offset = TopicPartition(batch.topic, task, 0, mark_of(batch.batch, count, batch.ends))
        _until_done(lambda: producer.send_offsets_to_transaction([offset], group, TIMEOUT_S))

    count = 0
    producer.begin_transaction()
    try:
        try:
            for row in rows:
                _produce(batch.topic, row, producer)
                count += 1
                if count % 1_000 == 0:
                    producer.poll(0)
        except KafkaException as error:
            if error.args[0].code() in (KafkaError._STATE, KafkaError._FATAL):
                # An earlier record failed. The refusal of the mark says why.
                mark(count)
            raise
        _wait_for_records(batch.topic, producer)
        mark(count)
        _until_done(lambda: producer.commit_transaction(TIMEOUT_S))
    except BaseException:
        _abort(producer)
        raise
    return count


def _produce(topic: str, row: Any, producer: Any) -> None:
    """Give a row to the client. It reports no single record: with a report a record takes 1.3 us of
    CPU, without 0.8. If one fails, the transaction cannot be committed.
    """
    key, value, headers = row
    while True:
        try:
            producer.produce(topic, value, key, headers=headers)
            return
        except BufferError:  # the client's queue is full
            producer.poll(QUEUE_WAIT_S)


def _wait_for_records(topic: str, producer: Any) -> None:
    until = time.monotonic() + TIMEOUT_S
    while producer.flush(1.0):
        if time.monotonic() > until:
            raise NotWrittenError(f"{topic}: not acknowledged within {TIMEOUT_S:.0f} s")


def _until_done(call: Any) -> None:
    """Call again what librdkafka says may be called again, for a limited time."""
    from confluent_kafka import KafkaException

    until = time.monotonic() + TIMEOUT_S
    while True:
        try:
            call()
            return
        except KafkaException as error:
            if not error.args[0].retriable() or time.monotonic() > until:
                raise
            time.sleep(QUEUE_WAIT_S)


def _abort(producer: Any) -> None:
    """Try to abort: readers then do not wait for the transaction's timeout."""
    from confluent_kafka import KafkaException

    # Otherwise the next attempt's InitProducerId aborts, or the timeout; the failure is raised.
    with contextlib.suppress(KafkaException):
        producer.abort_transaction(5.0)


def _exception(reason: Any) -> Exception:
    from confluent_kafka import KafkaException

    error: Exception = KafkaException(reason)
    return error


def _named(topic: str, reason: Any) -> NotWrittenError | RefusedError:
    words = f"{topic}: {reason.str()} ({reason.name()})"
    return NotWrittenError(words) if _may_pass(reason) else RefusedError(words)


def _may_pass(reason: Any) -> bool:
    """Whether another attempt may succeed: the brokers are away, or ended the transaction."""
    from confluent_kafka import KafkaError

    lasting = (
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.GROUP_AUTHORIZATION_FAILED,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
        KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        KafkaError.INVALID_TRANSACTION_TIMEOUT,
        KafkaError.MSG_SIZE_TOO_LARGE,
        KafkaError.INVALID_MSG,
        KafkaError.INVALID_RECORD,
        KafkaError.POLICY_VIOLATION,
        KafkaError.UNKNOWN_TOPIC_OR_PART,
        KafkaError._UNKNOWN_TOPIC,
        KafkaError._UNKNOWN_PARTITION,
        KafkaError._AUTHENTICATION,
        KafkaError._SSL,
        KafkaError._INVALID_ARG,
        KafkaError._UNSUPPORTED_FEATURE,
    )
    return reason.code() not in lasting


class ByteArrays:
    """Reads byte arrays as Spark sends them: each after its length, or a length below 0 for null.

    With PySpark's NoOpSerializer, a method call for each step, a row of three takes 1.0 us, with
    this 0.5 us.
    """

    def load_stream(self, stream: BinaryIO) -> Iterator[bytes | None]:
        """Yield each array, None for null, until the end of the stream or of the task."""
        read, form = stream.read, struct.Struct(_LENGTH)  # a Struct cannot be sent by value
        length_of, head_bytes = form.unpack, form.size
        while head := read(head_bytes):
            (length,) = length_of(head)
            if length >= 0:
                array = read(length)
                if len(array) < length:
                    raise EOFError("Spark's stream ends in the middle of a value")
                yield array
            elif length == _NULL:
                yield None
            else:
                return


def rows_of(fields: Iterable[bytes | None]) -> Iterator[tuple[Any, Any, Any]]:
    """Rows as (key, value, headers), from a key, a value and headers in turn.

    Key and value are bytes or None, and so are the values of headers. The headers come as JSON: an
    array of {"key": a name, "value": in Base64}, or None.
    """
    each = iter(fields)
    for key, value, headers in zip(each, each, each, strict=True):
        yield key, value, headers and [_header(one) for one in json.loads(headers)]


def _header(one: Mapping[str, Any]) -> tuple[Any, bytes | None]:
    value = one["value"]
    return one["key"], None if value is None else base64.b64decode(value)


class Mark(NamedTuple):
    """The last batch of a task that is written: its number, -1 for none, and its digest."""

    batch: int
    ends: str = ""


def mark_of(batch: int, rows: int | None, ends: str = "") -> str:
    """The metadata of a mark; `rows` None where they are not counted."""
    mark: dict[str, Any] = {"ottla.written": VERSION, "batch": batch}
    counted = {} if rows is None else {"rows": rows}
    return json.dumps(mark | counted | ({"ends": ends} if ends else {}))


def read_mark(metadata: str | None) -> Mark:
    """What a mark says; Mark(-1) without one. What follows it is left out."""
    mark = read_document(metadata or "")
    if mark is None or mark.get("ottla.written") != VERSION:
        return Mark(-1)
    batch, ends = mark.get("batch"), mark.get("ends", "")
    return Mark(batch, ends) if isinstance(batch, int) and isinstance(ends, str) else Mark(-1)


def held_of(name: str, marks: Iterable[Mark]) -> Held:
    """What a topic has of a query, by marks of its tasks.

    Marks of one batch that differ are those of two copies of a checkpoint: none agrees with both.
    """
    known = [mark for mark in marks if mark.batch >= 0]
    last = max((mark.batch for mark in known), default=None)
    ends = {mark.ends for mark in known if mark.batch == last}
    return Held(name, last, ",".join(sorted(ends)) if "" not in ends else None)
