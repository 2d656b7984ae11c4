"""Short ranges of a topic, read by the driver."""

from collections.abc import Callable

import pytest
from confluent_kafka import Producer

from ottla.pipelines import PipelineError
from ottla.pipelines.failures.sentences import passes_by_itself
from ottla.pipelines.failures.table import BROKER
from ottla.pipelines.kafka import records
from ottla.pipelines.kafka.records import RangeReader
from ottla.pipelines.kafka.settings import KafkaSettings, read_settings
from ottla.pipelines.spark.jvm.causes import causes_of
from ottla.testing import Broker, Security


def test_a_range_is_read_from_its_first_offset_to_its_end(
    bootstrap: str, new_topic: Callable[..., str], produce: Callable[..., None]
) -> None:
    name = new_topic()
    produce(name, [(b"k", b"v%d" % number) for number in range(10)], partition=0)
    produce(name, [(None, None, [("h", None), ("h", b"1")])], partition=1)

    with RangeReader(KafkaSettings(bootstrap)) as reader:
        found = reader.read(name, {0: 3, 1: -2}, {0: 6, 1: 1})
        assert found is not None
        records = sorted((record.partition, record.offset, record.value) for record in found)
        assert records == [(0, 3, b"v3"), (0, 4, b"v4"), (0, 5, b"v5"), (1, 0, None)]
        other = next(record for record in found if record.partition == 1)
        assert (other.key, other.headers) == (None, [("h", None), ("h", b"1")])
        # The same reader, to the log's end.
        again = reader.read(name, {0: 8}, {0: 10})
        assert again is not None
        assert [record.offset for record in again] == [8, 9]
        assert reader.read(name, {0: 5}, {0: 5}) == []


def test_a_range_that_ends_after_the_log_does_is_not_read_in_part(
    bootstrap: str,
    new_topic: Callable[..., str],
    produce: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A new leader may not know yet that its last records are committed."""
    name = new_topic()
    produce(name, [(None, b"v")] * 3, partition=0)
    monkeypatch.setattr(records, "TIMEOUT_S", 1.0)

    with RangeReader(KafkaSettings(bootstrap)) as reader, pytest.raises(PipelineError) as caught:
        reader.read(name, {0: 0}, {0: 5})
    assert str(caught.value).endswith("partition 0 ends at offset 3, before 5")
    assert passes_by_itself(causes_of(caught.value), ()) == BROKER


def test_a_range_ends_with_the_marker_of_a_transaction(
    bootstrap: str, new_topic: Callable[..., str]
) -> None:
    name = new_topic()
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": name})
    producer.init_transactions(30)
    for ends in (producer.commit_transaction, producer.abort_transaction):
        producer.begin_transaction()
        producer.produce(name, b"v", partition=0)
        assert producer.flush(30) == 0  # what is not sent yet an abort drops
        ends(30)

    with RangeReader(KafkaSettings(bootstrap)) as reader:
        found = reader.read(name, {0: 0}, {0: 4})
        assert found is not None
        assert [record.offset for record in found] == [0]
        assert reader.read(name, {0: 1}, {0: 4}) == []


def test_more_than_the_limit_is_not_held(
    bootstrap: str,
    new_topic: Callable[..., str],
    produce: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    name = new_topic()
    produce(name, [(None, bytes(1_000))] * 3, partition=0)
    monkeypatch.setattr(records, "MAX_BYTES", 2_500)

    with RangeReader(KafkaSettings(bootstrap)) as reader:
        assert reader.read(name, {0: 0}, {0: 3}) is None


def test_a_range_that_the_broker_does_not_hold_is_an_error(
    bootstrap: str, new_topic: Callable[..., str], produce: Callable[..., None]
) -> None:
    name = new_topic()
    produce(name, [(None, b"v")], partition=0)

    with (
        RangeReader(KafkaSettings(bootstrap)) as reader,
        pytest.raises(PipelineError, match=f"{name}-0: the rejected rows cannot be read") as caught,
    ):
        reader.read(name, {0: 100}, {0: 200})
    assert passes_by_itself(causes_of(caught.value), ()) is None


def test_a_broker_that_does_not_answer_is_worth_a_retry(
    bootstrap: str, new_topic: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(records, "TIMEOUT_S", -1.0)

    with RangeReader(KafkaSettings(bootstrap)) as reader, pytest.raises(PipelineError) as caught:
        reader.read(new_topic(), {0: 0}, {0: 3})
    assert passes_by_itself(causes_of(caught.value), ()) == BROKER


def test_permission_to_read_the_topic_suffices() -> None:
    """librdkafka asks for the coordinator of a group, which is refused, and which nobody needs."""
    security = Security(users={"reader": "secret"}, acls=["reader Read topic t"])
    with Broker(security=security) as broker:
        broker.create_topic("t")
        for value in ("a", "b"):
            broker.produce("t", value)
        settings = broker.client("reader")
        kafka = read_settings(settings.pop("bootstrap.servers"), settings)
        with RangeReader(kafka) as reader:
            found = reader.read("t", {0: 0}, {0: 2})
        assert found is not None
        assert [record.value for record in found] == [b"a", b"b"]
