"""Users, ACLs and certificates of a broker in a test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaError, Producer

from ottla.client.client import Client
from ottla.client.errors import SecurityError
from ottla.testing import Broker, Cluster, KitError, Security
from ottla.testing.security import SecuredClients

WAIT_S = 20


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    security = Security(
        users={"app": "secret"},
        acls=["app Write topic app- --prefixed", "User:CN=batch Write topic batch"],
        certificates=["batch"],
    )
    with Broker(security=security) as running:
        yield running


def error_of(settings: dict[str, str], topic: str) -> int | None:
    """Why a record is not delivered."""
    errors: list[Any] = []
    producer = Producer({**settings, "log_level": 0})
    producer.produce(topic, b"x", on_delivery=lambda error, _: errors.append(error))
    assert producer.flush(WAIT_S) == 0
    return None if errors[0] is None else int(errors[0].code())


def is_believed(settings: dict[str, str]) -> bool:
    with Client(settings["bootstrap.servers"], settings) as client:
        try:
            client.metadata([])
        except SecurityError:
            return False
    return True


def test_each_client_may_do_what_its_acls_allow(broker: Broker) -> None:
    for topic in ("app-1", "batch"):
        broker.create_topic(topic)
    app, batch = broker.client("app"), broker.certified_client("batch")
    assert error_of(app, "app-1") is None
    assert error_of(app, "batch") == KafkaError.TOPIC_AUTHORIZATION_FAILED
    assert error_of(batch, "batch") is None
    assert error_of(batch, "app-1") == KafkaError.TOPIC_AUTHORIZATION_FAILED
    broker.topic("app-1").assert_records(["x"])


def test_users_change(broker: Broker) -> None:
    broker.create_topic("app-2")
    assert not is_believed(broker.client("app", "wrong"))
    broker.add_user("other", "first")
    broker.add_acls("other Write topic app-2")
    assert error_of(broker.client("other"), "app-2") is None
    broker.delete_user("other")
    assert not is_believed(broker.client("other"))


def test_a_restart_keeps_users_and_acls(broker: Broker) -> None:
    broker.create_topic("app-3")
    broker.add_acls("app Write topic x")
    broker.delete_acls("app Write topic x")
    assert broker.process.stop() == 0
    broker.process.start()
    assert error_of(broker.client("app"), "app-3") is None
    assert error_of(broker.client("app"), "x") == KafkaError.TOPIC_AUTHORIZATION_FAILED


@pytest.mark.parametrize(
    ("security", "why"),
    [
        (Security(acls=["app Raed topic t"]), "'Raed' is no operation"),
        (Security(users={"admin": "x"}), "the kit's own"),
        (Security(certificates=["x" * 65]), "1 to 64 characters"),
    ],
)
def test_what_cannot_be(security: Security, why: str) -> None:
    with pytest.raises(KitError, match=why):
        Broker(security=security)


def test_who_is_not_known_is_named(tmp_path: Path) -> None:
    clients = SecuredClients(Security(users={"app": "secret"}), tmp_path)
    with pytest.raises(KitError, match="no user 'bob', only app"):
        clients.settings("bob")
    with pytest.raises(KitError, match="no certificate 'app', only none"):
        clients.certified_settings("app")
    with pytest.raises(KitError, match=r"Broker\(security=Security"):
        Broker().client("app")


def test_no_password_is_among_the_words_of_a_process(tmp_path: Path) -> None:
    clients = SecuredClients(Security(users={"app": "secret"}), tmp_path)
    words = " ".join(clients.options({"SASL_SSL": "h:1", "SSL": "h:2"}))
    passwords = [clients.kit_settings()["sasl.password"], "secret"]
    assert not any(each in words for each in passwords)
    assert (tmp_path / "sasl_ssl-ssl.properties").stat().st_mode & 0o777 == 0o600


def test_the_key_of_the_authority_may_be_elsewhere(tmp_path: Path) -> None:
    made = SecuredClients(Security(), tmp_path)
    (tmp_path / "authority.key").unlink()
    assert SecuredClients(Security(), tmp_path).kit_settings() == made.kit_settings()
    with pytest.raises(KitError, match=r"authority\.key"):
        SecuredClients(Security(certificates=["app"]), tmp_path)


@pytest.mark.full
@pytest.mark.parametrize("proxies", [False, True])
def test_a_secured_cluster(proxies: bool) -> None:
    security = Security(users={"app": "secret"}, acls=["app Write topic app"])
    with Cluster(3, proxies=proxies, security=security) as cluster:
        cluster.create_topic("app", replicas=3)
        cluster.wait_in_sync("app")
        assert error_of(cluster.client("app"), "app") is None
        leader = cluster.leader("app")
        cluster.kill(leader)
        cluster.wait_leader_other_than(leader, "app")
        cluster.produce("app", "y", timeout_s=30)
        cluster.start(leader)
        cluster.wait_in_sync("app")
        cluster.elect(leader, "app")
        assert error_of(cluster.client("app"), "other") == KafkaError.TOPIC_AUTHORIZATION_FAILED
        cluster.assert_records("app", ["x", "y"])
        for number, broker in cluster.brokers.items():
            cluster.stop(number)
            assert "Traceback" not in broker.said()


@pytest.mark.full
def test_a_cluster_that_was_there_before(tmp_path: Path) -> None:
    with Cluster(2, data=tmp_path, proxies=False) as cluster:
        cluster.create_topic("t")
        cluster.produce("t", "a")
    with Cluster(2, data=tmp_path, proxies=False, security=Security()) as cluster:
        cluster.assert_records("t", ["a"])


@pytest.mark.parametrize("proxies", [False, True])
def test_clients_of_a_cluster_with_certificates(proxies: bool) -> None:
    """Each broker has the listener: a client finds the others there, too."""
    security = Security(certificates=["batch"], acls=["User:CN=batch Write topic batch"])
    with Cluster(2, proxies=proxies, security=security) as cluster:
        for name in ("batch", "other"):
            cluster.create_topic(name, partitions=2)
            cluster.wait_in_sync(name)
        settings = cluster.certified_client("batch")
        assert len(settings["bootstrap.servers"].split(",")) == 2
        assert error_of(settings, "batch") is None
        assert error_of(settings, "other") == KafkaError.TOPIC_AUTHORIZATION_FAILED
        cluster.stop(1)
        cluster.wait_leader_other_than(1, "batch")
        assert error_of(settings, "batch") is None
        with pytest.raises(KitError, match="there is no certificate 'nobody', only batch"):
            cluster.certified_client("nobody")
