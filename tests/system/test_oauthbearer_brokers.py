"""Three brokers that log in with tokens at each other (KIP-768)."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from tests.security.issuer import AUDIENCE, ISSUER, Issuer, KeyServer, serving

from ottla.testing import BrokerProcess
from ottla.testing.ports import HOST, free_ports
from ottla.testing.zookeeper_server import ZooKeeperEnsemble

WAIT_S = 60
LASTS_S = 4
MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"


@pytest.fixture
def keys() -> Iterator[KeyServer]:
    issuer = Issuer()
    with serving(issuer.key_set()) as server:
        server.new_token = lambda: json.dumps(
            {"access_token": issuer.token("broker", LASTS_S)}
        ).encode()
        yield server


@pytest.fixture
def brokers(tmp_path: Path, keys: KeyServer) -> Iterator[list[BrokerProcess]]:
    ports = free_ports(6)
    started: list[BrokerProcess] = []
    ensemble = ZooKeeperEnsemble(tmp_path / "zookeeper")
    own = f'{MODULE} clientId="broker" clientSecret="secret";'
    try:
        ensemble.start()
        for number in (1, 2, 3):
            clients, inside = ports[2 * number - 2 : 2 * number]
            given = {
                "node.id": str(number),
                "zookeeper.connect": ensemble.connect,
                "listeners": f"PLAINTEXT://{HOST}:{clients},BROKERS://{HOST}:{inside}",
                "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,BROKERS:SASL_PLAINTEXT",
                "inter.broker.listener.name": "BROKERS",
                "sasl.mechanism.inter.broker.protocol": "OAUTHBEARER",
                "listener.name.brokers.sasl.enabled.mechanisms": "OAUTHBEARER",
                "listener.name.brokers.oauthbearer.sasl.jaas.config": own,
                "sasl.oauthbearer.jwks.endpoint.url": keys.url,
                "sasl.oauthbearer.token.endpoint.url": keys.url,
                "sasl.oauthbearer.expected.audience": AUDIENCE,
                "sasl.oauthbearer.expected.issuer": ISSUER,
                "sasl.oauthbearer.clock.skew.seconds": "0",
                "sasl.login.refresh.window.factor": "0.5",
            }
            options = [word for each in given.items() for word in ("-c", "=".join(each))]
            broker = BrokerProcess(
                tmp_path / f"data-{number}", options, bootstrap=f"{HOST}:{clients}"
            )
            started.append(broker)
            broker.start()
        yield started
    finally:
        for broker in started:
            broker.end()
        ensemble.stop()


def test_brokers_replicate_for_longer_than_a_token_lasts(
    brokers: list[BrokerProcess], keys: KeyServer
) -> None:
    bootstrap = {"bootstrap.servers": brokers[0].bootstrap}
    admin = AdminClient(bootstrap)
    topic = NewTopic(
        "t", num_partitions=3, replication_factor=3, config={"min.insync.replicas": "3"}
    )
    admin.create_topics([topic], request_timeout=WAIT_S)["t"].result(WAIT_S)
    producer = confluent_kafka.Producer(bootstrap | {"acks": "all"})
    refused: list[object] = []
    began = time.monotonic()
    # Each broker has got another token, and the one of its first connections is over.
    while len(keys.posted) < 6 or time.monotonic() < began + LASTS_S + 1:
        assert time.monotonic() < began + WAIT_S
        for _ in range(30):
            producer.produce(
                "t", b"x", on_delivery=lambda error, _: error and refused.append(error)
            )
        assert producer.flush(WAIT_S) == 0
        time.sleep(0.1)
    assert refused == []
    partitions = admin.list_topics("t", timeout=WAIT_S).topics["t"].partitions.values()
    assert all(sorted(each.isrs) == [1, 2, 3] for each in partitions)
    said = "".join(broker.said() for broker in brokers)
    assert "refused" not in said
    assert "shrunk" not in said
