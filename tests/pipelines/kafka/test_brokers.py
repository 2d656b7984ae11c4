"""The brokers are asked before Spark waits for them."""

import socket
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ottla.pipelines.errors import PipelineError
from ottla.pipelines.failures.sentences import passes_by_itself
from ottla.pipelines.failures.table import BROKER
from ottla.pipelines.kafka import brokers
from ottla.pipelines.kafka.committed import read_document
from ottla.pipelines.kafka.settings import read_settings
from ottla.pipelines.spark.jvm.causes import causes_of
from ottla.testing.broker import Broker
from ottla.testing.broker_process import BrokerProcess

KAFKA = read_settings("b:9092")


def test_the_state_of_topics_is_their_id_and_offsets(
    bootstrap: str, new_topic: Callable[..., str], produce: Callable[..., None]
) -> None:
    from confluent_kafka import TopicPartition
    from confluent_kafka.admin import AdminClient

    one, two = new_topic(), new_topic(partitions=1)
    produce(one, [(None, b"a")] * 5, partition=1)
    admin = AdminClient({"bootstrap.servers": bootstrap})
    (deleted,) = admin.delete_records([TopicPartition(one, 1, 2)]).values()
    deleted.result(timeout=30)

    state = brokers.look_up(read_settings(bootstrap), [one, two])

    assert state.cluster_id == admin.list_topics(timeout=10).cluster_id
    assert set(state.topics) == {one, two}
    assert state.topics[one].earliest == {0: 0, 1: 2}
    assert state.topics[one].latest == {0: 0, 1: 5}
    assert state.topics[one].topic_id != state.topics[two].topic_id
    assert len(state.topics[one].topic_id) == 22


def test_an_open_transaction_ends_what_can_be_read(
    bootstrap: str, new_topic: Callable[..., str], produce: Callable[..., None]
) -> None:
    from confluent_kafka import Producer

    name = new_topic(partitions=1)
    produce(name, [(None, b"a")] * 5)
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": name})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(name, b"open")
    producer.flush(30)

    state = brokers.look_up(read_settings(bootstrap), [name]).topics[name]
    assert (state.latest, state.ends) == ({0: 5}, {0: 6})
    everything = read_settings(bootstrap, {"isolation.level": "read_uncommitted"})
    assert brokers.look_up(everything, [name]).topics[name].latest == {0: 6}
    later = datetime(2100, 1, 1, tzinfo=UTC)
    assert brokers.offsets_at(read_settings(bootstrap), name, later) == {0: 5}


def test_settled_commits_wait_for_transactions_that_are_open(
    bootstrap: str, new_topic: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A group's commits are what they will be when all transactions have ended (KIP-447)."""
    from confluent_kafka import Consumer, Producer, TopicPartition

    name = new_topic()
    asked = brokers.Brokers(read_settings(bootstrap))
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": name})
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": name})
    producer.init_transactions(30)
    producer.begin_transaction()
    mark = TopicPartition(name, 0, 0, '{"open": true}')
    producer.send_offsets_to_transaction([mark], consumer.consumer_group_metadata(), 30)
    consumer.close()
    assert asked.committed(name, name, range(2)) == []
    commit = threading.Timer(0.3, producer.commit_transaction)
    commit.start()
    assert [read_document(text) for text in asked.settled(name, name, range(2))] == [{"open": True}]
    commit.join()

    producer.begin_transaction()
    metadata = Consumer({"bootstrap.servers": bootstrap, "group.id": name})
    producer.send_offsets_to_transaction([mark], metadata.consumer_group_metadata(), 30)
    metadata.close()
    monkeypatch.setattr(brokers, "TIMEOUT_S", 0.3)
    with pytest.raises(PipelineError, match="a transaction of the group stays open"):
        asked.settled(name, name, range(2))
    producer.abort_transaction(30)


def test_offsets_at_a_time_are_those_of_the_first_records_since(
    bootstrap: str, new_topic: Callable[..., str]
) -> None:
    from confluent_kafka import Producer

    name = new_topic()
    producer = Producer({"bootstrap.servers": bootstrap})
    for second in range(10):
        producer.produce(name, b"x", partition=0, timestamp=1_700_000_000_000 + second * 1_000)
    producer.produce(name, b"x", partition=1, timestamp=1_600_000_000_000)
    assert producer.flush(30) == 0

    kafka = read_settings(bootstrap)
    at = datetime.fromtimestamp(1_700_000_003.5, UTC)
    assert brokers.offsets_at(kafka, name, at) == {0: 4, 1: 1}
    assert brokers.offsets_at(kafka, name, datetime(2001, 1, 1, tzinfo=UTC)) == {0: 0, 1: 0}


def test_a_request_whose_broker_librdkafka_forgot_is_made_again(
    bootstrap: str, new_topic: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with a broker that the metadata does not have for a moment."""
    from confluent_kafka import KafkaError, KafkaException

    name = new_topic(partitions=1)
    asked = brokers.Brokers(read_settings(bootstrap))
    forgets = 0

    class Forgetful:
        """Has the first answers to each request fail."""

        def __init__(self, admin: Any) -> None:
            self._admin = admin

        def __getattr__(self, request: str) -> Any:
            def ask(*of: Any, **named: Any) -> Any:
                nonlocal forgets
                futures = getattr(self._admin, request)(*of, **named)
                if forgets == 0:
                    return futures
                forgets -= 1
                forgotten: Future[Any] = Future()
                error: Any = KafkaError
                reason = error(error._DESTROY_BROKER)
                forgotten.set_exception(KafkaException(reason))
                return dict.fromkeys(futures, forgotten)

            return ask

    asked._admin = Forgetful(asked._admin)
    requests: list[Callable[[], bool]] = [
        lambda: len(asked.topic_ids([name])[name]) == 22,
        lambda: asked.offsets({name: [0]}, "end") == {name: {0: 0}},
    ]
    for ask in requests:
        forgets = 2
        assert ask()
        assert forgets == 0

    forgets = 1_000
    monkeypatch.setattr(brokers, "TIMEOUT_S", 0.3)
    with pytest.raises(PipelineError, match="refuse the look-up") as caught:
        asked.topic_ids([name])
    assert type(caught.value) is PipelineError
    assert passes_by_itself(causes_of(caught.value), ()) is BROKER


def test_a_setting_is_unknown_only_where_it_may_not_be_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Brokers that are away do not have the default."""
    from confluent_kafka import KafkaError, KafkaException

    asked = brokers.Brokers(KAFKA)
    monkeypatch.setattr(asked, "metadata", lambda: SimpleNamespace(brokers={1: None}))
    monkeypatch.setattr(asked, "_new_admin", lambda: asked._admin)
    failure: Any = KafkaError

    def read(answer: BaseException | dict[str, Any]) -> str | None:
        future: Future[Any] = Future()
        if isinstance(answer, dict):
            future.set_result(answer)
        else:
            future.set_exception(answer)
        asked._admin = SimpleNamespace(describe_configs=lambda of, **_: dict.fromkeys(of, future))
        return asked.setting("some.setting")

    assert read({"some.setting": SimpleNamespace(value="7")}) == "7"
    assert read({}) is None
    assert read(KafkaException(failure(failure.CLUSTER_AUTHORIZATION_FAILED))) is None
    for code in (failure._TIMED_OUT, failure._TRANSPORT, failure.UNKNOWN):
        with pytest.raises(PipelineError, match="refuse the look-up"):
            read(KafkaException(failure(code)))
    with pytest.raises(PipelineError, match="does not answer") as caught:
        read(TimeoutError())
    assert passes_by_itself(causes_of(caught.value), ()) is BROKER, "a running query waits for it"


def test_a_misspelt_topic_names_the_nearest(bootstrap: str, new_topic: Callable[..., str]) -> None:
    name = new_topic()
    with pytest.raises(PipelineError, match=f"did you mean '{name}'"):
        brokers.look_up(read_settings(bootstrap), [name.replace("topic", "topik")])


def test_a_client_that_is_kept_asks_again_and_again(
    bootstrap: str, new_topic: Callable[..., str]
) -> None:
    from confluent_kafka.admin import AdminClient

    name = new_topic()
    kept = brokers.Brokers(read_settings(bootstrap))
    first = kept.topic_ids([name])
    assert kept.topic_ids([name]) == first

    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.delete_topics([name])[name].result(timeout=30)
    with pytest.raises(PipelineError, match=r"is no longer on .*: it was deleted"):
        kept.topic_ids([name])


def test_a_topic_like_none_says_how_to_make_it(bootstrap: str) -> None:
    with pytest.raises(PipelineError, match="type: ottla topic create 0000"):
        brokers.look_up(read_settings(bootstrap), ["0000"])


def test_a_broker_that_is_away_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(brokers, "TIMEOUT_S", 1)
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        with pytest.raises(PipelineError, match=f"No broker answers at 127.0.0.1:{port}"):
            brokers.look_up(read_settings(f"127.0.0.1:{port}"), ["flights"])


def test_why_a_topic_is_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def look_up(kafka: Any, names: list[str]) -> None:
        asked.append((kafka, names))
        if "gone" in names:
            raise PipelineError("there is no topic gone")

    monkeypatch.setattr(brokers, "look_up", look_up)
    assert brokers.why_silent([(KAFKA, "t"), (KAFKA, "u")]) is None
    assert asked == [(KAFKA, ["t"]), (KAFKA, ["u"])]
    assert brokers.why_silent([(KAFKA, "gone"), (KAFKA, "u")]) == "there is no topic gone"


@pytest.mark.parametrize("error", ["NOT_COORDINATOR", "COORDINATOR_LOAD_IN_PROGRESS"])
def test_a_coordinator_that_loads_or_has_moved_is_asked_again(
    ottla_broker: Broker, error: str
) -> None:
    """An AdminClient would end this process with a segmentation fault of librdkafka."""
    from confluent_kafka import Consumer, TopicPartition
    from confluent_kafka.admin import AdminClient, NewTopic

    address = {"bootstrap.servers": ottla_broker.bootstrap}
    admin = AdminClient(address)
    (made,) = admin.create_topics([NewTopic(error, 1, 1)]).values()
    made.result(30)
    consumer = Consumer({**address, "group.id": error})
    consumer.commit(offsets=[TopicPartition(error, 0, 1, "mark")], asynchronous=False)
    consumer.close()
    asked = brokers.Brokers(read_settings(ottla_broker.bootstrap))
    for read in (asked.committed, asked.settled):
        ottla_broker.fail("OffsetFetch", error, times=2)
        assert read(error, error, [0]) == ["mark"]


def test_a_broker_that_comes_back_is_asked_by_a_client_that_never_waited_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client that did would end this process with an assertion of librdkafka, or hang."""
    from confluent_kafka import Consumer, TopicPartition
    from confluent_kafka.admin import AdminClient, NewTopic

    with BrokerProcess(tmp_path / "data") as broker:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        (made,) = admin.create_topics([NewTopic("t", 1, 1)]).values()
        made.result(30)
        consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "g"})
        consumer.commit(offsets=[TopicPartition("t", 0, 1, "mark")], asynchronous=False)
        consumer.close()
        asked = brokers.Brokers(read_settings(broker.bootstrap))
        assert asked.committed("g", "t", [0]) == ["mark"]
        broker.kill()
        monkeypatch.setattr(brokers, "TIMEOUT_S", 1.0)
        for _ in range(2):
            with pytest.raises(PipelineError, match=r"Timed out|does not answer"):
                asked.committed("g", "t", [0])
        broker.start()
        monkeypatch.undo()
        for _ in range(3):
            assert asked.committed("g", "t", [0]) == ["mark"]
            time.sleep(0.5)
