"""`ottla transaction` against a real broker: stock producers, and one that leaves a hanging
transaction behind.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import pytest
from components.apache_kafka import ApacheKafka, KafkaJars
from confluent_kafka import KafkaException
from tests.system.test_cli import Typed
from tests.system.test_cli_terminal import at_terminal
from tests.system.test_transactions import WAIT_S, end_offset, new_topic, transactional, write
from tests.system.wire import Wire

from components import fixture
from ottla.protocol.errors import ErrorCode
from ottla.records.build import build_batch
from ottla.records.record import Record
from ottla.testing import BrokerProcess

kafka_jars = fixture.kafka_jars

PRODUCE, INIT_PRODUCER_ID = 0, 22


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """Without the verification that prevents hanging transactions (KIP-890)."""
    options = ["--config", "transaction.partition.verification.enable=false"]
    running = BrokerProcess(tmp_path_factory.mktemp("broker") / "data", options).start()
    yield running
    assert running.stop() == 0, running.said()


@pytest.fixture
def cli(broker: Any) -> Typed:
    return Typed(broker.bootstrap)


def leave_hanging(broker: Any, topic: str, written_ago_ms: int = 0) -> int:
    """A transactional record of which the coordinator knows nothing. Returns the producer id."""
    written_ms = int(time.time() * 1000) - written_ago_ms
    with Wire(broker.bootstrap) as wire:
        init = Wire.request(INIT_PRODUCER_ID, 4).InitProducerIdRequest(
            transactional_id=None, transaction_timeout=60_000, producer_id=-1, producer_epoch=-1
        )
        producer_id: int = wire.ask(init).producer_id
        batch = build_batch(
            [Record(0, written_ms, b"lost", b"lost", ())],
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=0,
            is_transactional=True,
        )
        build = Wire.request(PRODUCE, 11)
        partition = build.PartitionProduceData(index=0, records=batch)
        data = build.TopicProduceData(name=topic, partition_data=(partition,))
        request = build.ProduceRequest(
            transactional_id="forgotten", acks=-1, timeout=10_000, topic_data=(data,)
        )
        (answer,) = wire.ask(request).responses[0].partition_responses
        assert answer.error_code is ErrorCode.none
    return producer_id


def test_an_open_transaction_from_its_begin_to_its_abort(broker: Any, cli: Typed) -> None:
    topic, name = new_topic(broker, 2), f"open-{uuid4()}"
    producer = transactional(broker, name)
    assert {"transactional_id": name, "coordinator": 1, "state": "Empty"}.items() <= next(
        each for each in cli.json("transaction", "list") if each["transactional_id"] == name
    ).items()
    producer.begin_transaction()
    producer.produce(topic, "lost", partition=1)
    assert producer.flush(WAIT_S) == 0
    for filters in (["--state", "Ongoing"], ["--open-for", "1ms"], ["--id-pattern", "open-.*"]):
        listed = cli.json("transaction", "list", *filters)
        assert [each["transactional_id"] for each in listed] == [name], filters
    assert cli.json("transaction", "list", "--open-for", "1h") == []
    (described,) = cli.json("transaction", "describe")
    assert described["transactional_id"] == name
    assert described["state"] == "Ongoing"
    assert 0 <= described["open_for_ms"] < 60_000
    (partition,) = described["partitions"]
    assert (partition["topic"], partition["partition"], partition["first_offset"]) == (topic, 1, 0)
    said = cli.run("transaction", "describe", name).stdout.decode()
    assert f"To abort it now: ottla transaction abort {name}" in said
    refused = cli.run("transaction", "abort", name, code=2).stderr.decode()
    assert "Cannot ask without a terminal." in refused
    aborted = cli.json("transaction", "abort", name, "--yes")
    assert aborted == {"transactional_id": name, "aborted": True}
    with pytest.raises(KafkaException):
        producer.commit_transaction(WAIT_S)
    again = cli.run("transaction", "abort", name, "--yes", code=1).stderr.decode()
    assert "has no open transaction" in again
    write(transactional(broker, name), topic, "kept", commits=True)
    assert cli.json("transaction", "describe", name)[0]["state"] == "CompleteCommit"


def test_a_hanging_transaction_is_found_and_ended(broker: Any, cli: Typed) -> None:
    topic = new_topic(broker)
    producer_id = leave_hanging(broker, topic)
    ongoing = transactional(broker, f"x-{topic}")
    ongoing.begin_transaction()
    ongoing.produce(topic, "open")
    assert ongoing.flush(WAIT_S) == 0
    assert end_offset(broker, topic, "read_committed") == 0
    said = cli.run("transaction", "hanging", "--topic", topic).stderr.decode()
    assert said == "No hanging transactions without a write in the last 15 min 0 s.\n"
    (found,) = cli.json("transaction", "hanging", "--written-before", "0s")
    assert (found["topic"], found["partition"], found["first_offset"]) == (topic, 0, 0)
    assert found["producer_id"] == producer_id
    where = ["--topic", topic, "--partition", 0, "--producer"]
    shown = cli.run("transaction", "hanging", "--written-before", "0s").stdout.decode()
    assert "ottla transaction abort " + " ".join(map(str, [*where, producer_id])) in shown
    (described,) = cli.json("transaction", "describe", f"x-{topic}")
    refused = cli.run(
        "transaction", "abort", *where, described["producer_id"], "--yes", code=1
    ).stderr.decode()
    assert "the transaction does not hang" in refused
    code, asked = at_terminal(
        broker, "transaction", "abort", *map(str, where), str(producer_id), stdin=b"n\n"
    )
    assert (code, "Nothing was aborted." in asked) == (1, True)
    assert cli.json("transaction", "abort", *where, producer_id, "--yes")["aborted"]
    ongoing.commit_transaction(WAIT_S)
    # The lost record, the open one, and their two markers.
    assert end_offset(broker, topic, "read_committed") == 4
    assert cli.json("transaction", "hanging", "--written-before", "0s") == []
    gone = cli.run("transaction", "abort", *where, producer_id, "--yes", code=1).stderr.decode()
    assert f"producer {producer_id} has no open transaction in {topic}-0" in gone


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["describe", "ordres"], "there is no transactional id 'ordres'. Did you mean 'orders'?"),
        (["abort", "ordres", "--yes"], "Did you mean 'orders'?"),
        (["list", "--state", "Ongoin"], "there is no state 'Ongoin'. Did you mean 'Ongoing'?"),
        (["hanging", "--topic", "nowhere"], "there is no topic 'nowhere'."),
        (["abort", "--topic", "nowhere", "-p", "0", "--producer", "1"], "no topic 'nowhere'."),
    ],
)
def test_names_that_do_not_exist(broker: Any, cli: Typed, words: list[str], said: str) -> None:
    transactional(broker, "orders")
    assert said in cli.run("transaction", *words, code=1).stderr.decode()


def test_a_pattern_that_is_not_one(cli: Typed) -> None:
    refused = cli.run("transaction", "list", "--id-pattern", "(", code=2).stderr.decode()
    assert "--id-pattern: '(' is not a regular expression." in refused


@pytest.mark.parametrize("columns", [40, 80, 200])
def test_tables_fit_the_terminal(broker: Any, columns: int) -> None:
    name = "a-transactional-id-that-is-longer-than-many-a-terminal-is-wide-in-characters"
    transactional(broker, name)
    plain: dict[str, Any] = {"NO_COLOR": "1", "TERM": "dumb"}
    words = ["transaction", "list", "--id-pattern", "a-t.*"]
    code, shown = at_terminal(broker, *words, columns=columns, **plain)
    assert code == 0
    lines = shown.splitlines()
    assert max(map(len, lines)) <= columns
    if columns == 40:
        # A block: name and value, which goes on in the next lines.
        assert name in "".join(shown.split())
    else:
        assert name in "".join(line.split("  ")[0] for line in lines)


def test_no_transactional_ids(new_broker: Any, tmp_path: Path) -> None:
    cli = Typed(new_broker(data=tmp_path / "data").bootstrap)
    assert b"No transactional ids." in cli.run("transaction", "list").stderr
    assert b"No open transactions." in cli.run("transaction", "describe").stderr
    assert cli.json("transaction", "hanging") == []


@pytest.mark.full
@pytest.mark.kafka
def test_the_same_on_apache_kafka(kafka_jars: KafkaJars, tmp_path: Path) -> None:
    settings = {
        **fixture.SETTINGS,
        "transaction.partition.verification.enable": "false",
        "transaction.state.log.num.partitions": "2",
    }
    kafka = ApacheKafka(kafka_jars, tmp_path / "kafka", settings, jvm=fixture.JVM_FLAGS)
    kafka.start()
    try:
        kafka.child.wait_for_port(kafka.port, fixture.START_WAIT_MS)
        broker = SimpleNamespace(bootstrap=kafka.address)
        cli = Typed(kafka.address)
        test_an_open_transaction_from_its_begin_to_its_abort(broker, cli)
        test_a_hanging_transaction_is_found_and_ended(broker, cli)
        test_a_pattern_that_is_not_one(cli)
    finally:
        kafka.stop()
