"""An authorizer on a real cluster of three, by clients that are not ours.

Clients on a listener without authentication are User:ANONYMOUS: a super user at first, so that one
cluster shows both sides; what is denied to him is so by another broker's settings.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewPartitions,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from ottla.testing import Cluster

AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
ANONYMOUS = "User:ANONYMOUS"
WITHIN_S = 30.0
LITERAL, PREFIXED = ResourcePatternType.LITERAL, ResourcePatternType.PREFIXED
ALLOW, DENY = AclPermissionType.ALLOW, AclPermissionType.DENY


def acl(
    kind: ResourceType,
    name: str,
    operation: AclOperation,
    *,
    pattern: ResourcePatternType = LITERAL,
    principal: str = ANONYMOUS,
    permission: AclPermissionType = ALLOW,
) -> AclBinding:
    return AclBinding(kind, name, pattern, principal, "*", operation, permission)


ANY = AclBindingFilter(
    ResourceType.ANY, None, ResourcePatternType.ANY, None, None, AclOperation.ANY,
    AclPermissionType.ANY,
)  # fmt: skip


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    config = {"authorizer.class.name": AUTHORIZER, "allow.everyone.if.no.acl.found": "true"}
    with Cluster(brokers=3, proxies=False, config=config) as running:
        yield running


@pytest.fixture
def admin(cluster: Cluster) -> Iterator[AdminClient]:
    """With no ACL at first and none at the end; on the cluster itself none is made."""
    client = AdminClient({"bootstrap.servers": cluster.bootstrap})
    yield client
    for each in client.delete_acls([ANY]).values():
        each.result(WITHIN_S)


def create(admin: AdminClient, *acls: AclBinding) -> None:
    for each in admin.create_acls(list(acls)).values():
        each.result(WITHIN_S)


def each_broker(cluster: Cluster) -> list[str]:
    return cluster.bootstrap.split(",")


def until(check: Any) -> None:
    until_s = time.monotonic() + WITHIN_S
    while not check():
        assert time.monotonic() < until_s
        time.sleep(0.05)


def topic(admin: AdminClient, cluster: Cluster, name: str) -> str:
    admin.create_topics([NewTopic(name, 1, 3)])[name].result(WITHIN_S)
    cluster.wait_in_sync(name)
    return name


def produced(cluster: Cluster, name: str) -> KafkaError | None:
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "message.timeout.ms": 20_000})
    errors: list[Any] = []
    producer.produce(name, b"a", on_delivery=lambda error, message: errors.append(error))
    producer.flush(WITHIN_S)
    error: KafkaError | None = errors[0]
    return error


def test_every_broker_sees_a_change(cluster: Cluster, admin: AdminClient) -> None:
    made = [
        acl(ResourceType.TOPIC, "a", AclOperation.READ, principal="User:CN=é,O=b/c"),
        acl(ResourceType.GROUP, "b", AclOperation.ALL, pattern=PREFIXED, permission=DENY),
    ]
    create(admin, *made)
    create(admin, *made)  # again: nothing changes
    for address in each_broker(cluster):
        other = AdminClient({"bootstrap.servers": address})
        until(lambda other=other: set(other.describe_acls(ANY).result(WITHIN_S)) == set(made))
    deleted = admin.delete_acls([ANY])[ANY].result(WITHIN_S)
    assert set(deleted) == set(made)
    for address in each_broker(cluster):
        other = AdminClient({"bootstrap.servers": address})
        until(lambda other=other: other.describe_acls(ANY).result(WITHIN_S) == [])


def test_a_broker_that_comes_back_knows_the_acls(cluster: Cluster, admin: AdminClient) -> None:
    made = acl(ResourceType.TOPIC, "kept", AclOperation.READ)
    create(admin, made)
    cluster.stop(2)
    cluster.start(2)
    address = each_broker(cluster)[1]
    other = AdminClient({"bootstrap.servers": address})
    assert made in other.describe_acls(ANY).result(WITHIN_S)


def test_invalid_acls_are_refused_one_by_one(admin: AdminClient) -> None:
    wrong = AclBinding(ResourceType.TOPIC, "t", LITERAL, ANONYMOUS, "10.0.0.0/40",
                       AclOperation.READ, ALLOW)  # fmt: skip
    cluster = acl(ResourceType.BROKER, "not-kafka-cluster", AclOperation.ALTER)
    right = acl(ResourceType.TOPIC, "t", AclOperation.READ)
    results = admin.create_acls([wrong, cluster, right])
    for each in (wrong, cluster):
        with pytest.raises(KafkaException) as refused:
            results[each].result(WITHIN_S)
        assert refused.value.args[0].code() == KafkaError.INVALID_REQUEST
    results[right].result(WITHIN_S)


def test_what_is_denied_is_refused_and_the_rest_works(cluster: Cluster, admin: AdminClient) -> None:
    closed, open_ = topic(admin, cluster, "closed"), topic(admin, cluster, "open")
    create(admin, acl(ResourceType.TOPIC, closed, AclOperation.DESCRIBE))
    until(lambda: produced(cluster, closed) is not None)
    error = produced(cluster, closed)
    assert error is not None
    assert error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
    assert produced(cluster, open_) is None
    create(admin, acl(ResourceType.TOPIC, "clo", AclOperation.WRITE, pattern=PREFIXED))
    until(lambda: produced(cluster, closed) is None)
    assert consumed(cluster, [open_, closed], "g") == KafkaError.TOPIC_AUTHORIZATION_FAILED
    create(admin, acl(ResourceType.TOPIC, closed, AclOperation.READ))
    until(lambda: consumed(cluster, [closed], "g") is None)
    create(admin, acl(ResourceType.GROUP, "g", AclOperation.READ, principal="User:other"))
    until(lambda: consumed(cluster, [open_], "g") == KafkaError.GROUP_AUTHORIZATION_FAILED)


def consumed(cluster: Cluster, topics: list[str], group: str) -> int | None:
    """The code of the first error; None once a record comes."""
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe(topics)
    try:
        seen: set[str] = set()
        until_s = time.monotonic() + WITHIN_S
        while time.monotonic() < until_s:
            message = consumer.poll(1)
            if message is None:
                continue
            error = message.error()
            if error is not None:
                code: int = error.code()
                return code
            seen.add(message.topic() or "")
            if seen == set(topics):
                return None
        raise AssertionError(seen)
    except KafkaException as error:
        failed: int = error.args[0].code()
        return failed
    finally:
        consumer.close()


def test_topics_that_may_not_be_described_are_hidden(cluster: Cluster, admin: AdminClient) -> None:
    name = topic(admin, cluster, "hidden")
    create(admin, acl(ResourceType.TOPIC, name, AclOperation.ALL, principal="User:other"))
    for address in each_broker(cluster):
        other = AdminClient({"bootstrap.servers": address})
        until(lambda other=other: name not in other.list_topics(timeout=WITHIN_S).topics)
        asked = other.list_topics(name, timeout=WITHIN_S).topics[name]
        assert asked.error is not None
        assert asked.error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
    for future in admin.create_partitions([NewPartitions(name, 2)]).values():
        with pytest.raises(KafkaException) as refused:
            future.result(WITHIN_S)
        assert refused.value.args[0].code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
    # No ACL names the cluster, and who may delete there, may delete every topic, as in Kafka.
    for future in admin.delete_topics([name]).values():
        future.result(WITHIN_S)
