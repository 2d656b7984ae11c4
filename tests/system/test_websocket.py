"""Stock clients over WebSocket: what they do over TCP, whole."""

from __future__ import annotations

import json
import ssl
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from components.node_modules import node_modules
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from tests.security.authority import Authority
from tests.system.websocket_bridge import bridge

from ottla.testing import BrokerProcess
from ottla.testing.ports import HOST, free_ports

WAIT_S = 30
PAGE = Path(__file__).parents[2] / "docs" / "websocket.md"
USERS = 'PlainLoginModule required user_alice="alice-secret";'


def started(new_broker: Callable[..., BrokerProcess], **settings: str) -> BrokerProcess:
    named = {name.replace("_", "."): value for name, value in settings.items()}
    return new_broker(*(word for pair in named.items() for word in ("-c", "=".join(pair))))


@pytest.fixture
def bridged(new_broker: Callable[..., BrokerProcess]) -> Iterator[dict[str, Any]]:
    """The settings of a client that reaches a broker over WebSocket alone."""
    ports = free_ports(2)
    started(
        new_broker,
        listeners=f"WS://{HOST}:{ports[0]}",
        listener_security_protocol_map="WS:PLAINTEXT",
        advertised_listeners=f"WS://{HOST}:{ports[1]}",
        ottla_websocket_listeners="WS",
    )
    with bridge(ports[1], f"ws://{HOST}:{ports[0]}"):
        yield {"bootstrap.servers": f"{HOST}:{ports[1]}"}


def produced(settings: dict[str, Any], values: list[bytes], topic: str = "t") -> None:
    producer = Producer(settings)
    for value in values:
        producer.produce(topic, value)
    assert producer.flush(WAIT_S) == 0


def consumed(settings: dict[str, Any], count: int, topic: str = "t") -> list[bytes]:
    consumer = Consumer(settings | {"group.id": "g", "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    values: list[bytes] = []
    while len(values) < count:
        for message in consumer.consume(count, WAIT_S):
            assert message.error() is None
            values.append(message.value())
    consumer.commit(asynchronous=False)
    consumer.close()
    return values


def test_librdkafka(bridged: dict[str, Any]) -> None:
    values = [b"small"] * 100 + [bytes([number]) * 900_000 for number in range(20)]
    produced(bridged, values)
    assert sorted(consumed(bridged, len(values))) == sorted(values)


def test_transactions_of_librdkafka(bridged: dict[str, Any]) -> None:
    """From one topic into another, with offsets; then one that is aborted."""
    produced(bridged, [b"a", b"b", b"c"], "source")
    consumer = Consumer(
        bridged
        | {"group.id": "copier", "auto.offset.reset": "earliest", "enable.auto.commit": "false"}
    )
    consumer.subscribe(["source"])
    producer = Producer(bridged | {"transactional.id": "copier"})
    producer.init_transactions(WAIT_S)
    producer.begin_transaction()
    taken = 0
    while taken < 3:
        message = consumer.poll(WAIT_S)
        assert message is not None
        assert message.error() is None
        producer.produce("target", message.value().upper())
        taken += 1
    position = consumer.position(consumer.assignment())
    producer.send_offsets_to_transaction(position, consumer.consumer_group_metadata(), WAIT_S)
    producer.commit_transaction(WAIT_S)
    producer.begin_transaction()
    producer.produce("target", b"never")
    assert producer.flush(WAIT_S) == 0
    producer.abort_transaction(WAIT_S)
    produced(bridged, [b"end"], "target")
    (committed,) = consumer.committed([TopicPartition("source", 0)], WAIT_S)
    assert committed.offset == 3
    consumer.close()
    assert consumed(bridged, 4, "target") == [b"A", b"B", b"C", b"end"]


def test_over_tls_with_a_password(new_broker: Callable[..., BrokerProcess], tmp_path: Path) -> None:
    authority = Authority()
    store = authority.issue("CN=broker").store(tmp_path / "broker.pem")
    ports = free_ports(2)
    broker = started(
        new_broker,
        listeners=f"WSS://{HOST}:{ports[0]}",
        listener_security_protocol_map="WSS:SASL_SSL",
        advertised_listeners=f"WSS://localhost:{ports[1]}",
        ottla_websocket_listeners="WSS",
        sasl_enabled_mechanisms="PLAIN",
        ssl_keystore_type="PEM",
        ssl_keystore_location=str(store),
        **{"listener.name.wss.plain.sasl.jaas.config": USERS},
    )
    context = ssl.create_default_context(cafile=str(authority.trust(tmp_path / "trust.pem")))
    settings = {
        "bootstrap.servers": f"localhost:{ports[1]}",
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "alice",
    }
    with bridge(ports[1], f"wss://localhost:{ports[0]}", context):
        right = settings | {"sasl.password": "alice-secret"}
        produced(right, [b"a"])
        assert consumed(right, 1) == [b"a"]
        admin = AdminClient(settings | {"sasl.password": "wrong"})
        with pytest.raises(KafkaException):
            admin.list_topics(timeout=2)
    assert "wrong user name or password (user 'alice')" in broker.said()


def javascript_of_the_page() -> str:
    """What the page shows."""
    _, _, rest = PAGE.read_text().partition("```javascript\n")
    return rest.partition("```")[0]


PROGRAM = """
const { Kafka, logLevel } = require('kafkajs')
const [port] = process.argv.slice(2)

async function run() {
  const kafka = new Kafka({
    brokers: [`127.0.0.1:${port}`], socketFactory, logLevel: logLevel.ERROR
  })
  const admin = kafka.admin()
  await admin.connect()
  await admin.createTopics({ topics: [{ topic: 'source' }, { topic: 'target' }] })
  await admin.disconnect()
  const producer = kafka.producer({ idempotent: true })
  await producer.connect()
  const values = ['a', 'b', 'x'.repeat(900000)]
  for (const value of values) {
    await producer.send({ topic: 'source', messages: [{ key: 'k', value }] })
  }
  await producer.disconnect()

  const sender = kafka.producer({
    transactionalId: 'copier', maxInFlightRequests: 1, idempotent: true
  })
  await sender.connect()
  const source = await taken(kafka, 'copiers', 'source', 3)
  let transaction = await sender.transaction()
  await transaction.send({ topic: 'target', messages: source.map((value) => ({ value })) })
  await transaction.sendOffsets({
    consumerGroupId: 'others',
    topics: [{ topic: 'source', partitions: [{ partition: 0, offset: '3' }] }]
  })
  await transaction.commit()
  transaction = await sender.transaction()
  await transaction.send({ topic: 'target', messages: [{ value: 'never' }] })
  await transaction.abort()
  await sender.send({ topic: 'target', messages: [{ value: 'end' }] })
  await sender.disconnect()
  const target = await taken(kafka, 'readers', 'target', 4)
  console.log(JSON.stringify(target.map((value) => [value.length, value.slice(0, 10)])))
}

async function taken(kafka, groupId, topic, count) {
  const consumer = kafka.consumer({ groupId, maxWaitTimeInMs: 100 })
  await consumer.connect()
  await consumer.subscribe({ topics: [topic], fromBeginning: true })
  const values = []
  await new Promise((done) => consumer.run({
    eachMessage: async ({ message }) => {
      values.push(message.value.toString())
      if (values.length === count) done()
    }
  }))
  await consumer.disconnect()
  return values
}

run().then(() => process.exit(0), (error) => { console.error(error); process.exit(1) })
"""


def test_kafkajs(new_broker: Callable[..., BrokerProcess], tmp_path: Path) -> None:
    (port,) = free_ports(1)
    broker = started(
        new_broker,
        listeners=f"WS://{HOST}:{port}",
        listener_security_protocol_map="WS:PLAINTEXT",
        ottla_websocket_listeners="WS",
    )
    (tmp_path / "node_modules").symlink_to(node_modules())
    program = tmp_path / "program.js"
    program.write_text(javascript_of_the_page() + PROGRAM)
    done = subprocess.run(
        ["node", str(program), str(port)], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr + broker.said()
    expected = [[1, "a"], [1, "b"], [900_000, "x" * 10], [3, "end"]]
    assert json.loads(done.stdout.splitlines()[-1]) == expected
