"""The account of each record that was sent."""

import pytest
from confluent_kafka import KafkaError, KafkaException

from ottla.messaging.librdkafka import RejectedSettingsError
from ottla.messaging.producer import ErrorCount, TopicProducer, name_lines

# Nothing listens there; no record leaves the process.
SETTINGS = {"bootstrap.servers": "127.0.0.1:1", "log_level": 0}


class FakeReport:
    """A producer report's message."""

    def __init__(self, partition: int, offset: int | None) -> None:
        self.position = (partition, offset)

    def partition(self) -> int:
        return self.position[0]

    def offset(self) -> int | None:
        return self.position[1]


class FakeError:
    def code(self) -> int:
        return int(KafkaError.MSG_SIZE_TOO_LARGE)

    def str(self) -> str:
        return "Broker: Message size too large"


@pytest.fixture
def producer() -> TopicProducer:
    return TopicProducer("t", SETTINGS, 1.0, print)


def end(producer: TopicProducer, line: int, position: tuple[int, int | None] | None) -> None:
    producer.sent += 1
    if position is None:
        producer.ended(line, FakeError(), None)
    else:
        producer.ended(line, None, FakeReport(*position))


class FatalClient:
    """librdkafka after a fatal error: flush fails, and a purge reports what is queued."""

    def __init__(self) -> None:
        self.purged = False

    def flush(self, _within_s: float) -> int:
        raise KafkaException(KafkaError(KafkaError._FATAL))

    def purge(self) -> None:
        self.purged = True

    def poll(self, _within_s: float) -> int:
        return 0


def test_a_fatal_error_ends_the_wait(producer: TopicProducer) -> None:
    producer.client = FatalClient()
    producer.flush()
    assert producer.client.purged
    producer.sent += 1
    producer.ended(1, KafkaError(KafkaError._PURGE_QUEUE), None)
    assert "Purged" not in producer.losses()[0]
    producer.abandon()


def test_nothing(producer: TopicProducer) -> None:
    assert producer.sentence() == "Delivered no records to t."
    assert producer.losses() == []


def test_one_record_shows_its_partition_and_offset(producer: TopicProducer) -> None:
    end(producer, 1, (2, 17))
    assert producer.sentence() == "Delivered 1 record to t, partition 2, offset 17."


@pytest.mark.parametrize("offset", [-1, None])
def test_without_acknowledgement_there_is_no_offset(
    producer: TopicProducer, offset: int | None
) -> None:
    end(producer, 1, (2, offset))
    assert producer.sentence() == "Delivered 1 record to t, partition 2."
    assert producer.document()["partitions"][0]["last_offset"] is None


def test_the_summary_covers_all_outcomes(producer: TopicProducer) -> None:
    for line in range(1, 9):
        end(producer, line, (line % 2, 100 + line) if line < 3 else None)
    assert producer.sentence() == "Delivered 2 records to 2 partitions of t."
    assert producer.losses() == [
        "6 of 8 records not delivered: Message size too large (lines 3, 4, 5, 6, 7 and more).",
        "The limit of a batch is the topic's max.message.bytes, or else the broker's "
        "message.max.bytes: ottla config alter topic t max.message.bytes=BYTES",
    ]
    assert producer.document() == {
        "topic": "t",
        "delivered": 2,
        "undelivered": 6,
        "partitions": [
            {"partition": 0, "delivered": 1, "first_offset": 102, "last_offset": 102},
            {"partition": 1, "delivered": 1, "first_offset": 101, "last_offset": 101},
        ],
        "errors": [
            {
                "error": "Message size too large.",
                "records": 6,
                "first_lines": [3, 4, 5, 6, 7],
            }
        ],
    }


def test_a_record_without_an_outcome_is_counted(producer: TopicProducer) -> None:
    producer.sent = 3
    assert producer.losses() == ["3 of 3 records: no response, may have been delivered."]


def test_lines_are_named() -> None:
    assert name_lines(ErrorCount(1, [4])) == "line 4"
    assert name_lines(ErrorCount(2, [4, 5])) == "lines 4, 5"


def test_an_invalid_setting_is_a_usage_error() -> None:
    with pytest.raises(RejectedSettingsError, match="cannot produce with these settings"):
        TopicProducer("t", {**SETTINGS, "compression.type": "zip"}, 1.0, print)
