"""An Ottla and an Apache Kafka that take the same users and the same ACLs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from components.apache_kafka import ApacheKafka, KafkaJars

from conformance.authorization.asked import ADMIN, WITNESS
from conformance.authorization.situations import BOSS, CLIENT
from ottla.testing import BrokerProcess
from ottla.testing.ports import HOST, free_ports

START_WAIT_MS: Final = 120_000
KAFKAS_JVM: Final = "-Xmx512m -XX:+UseSerialGC -XX:TieredStopAtLevel=1"
USERS: Final = (ADMIN, WITNESS, BOSS, CLIENT)
"""Each user's password is its name."""


def settings(*, for_everyone: bool) -> dict[str, str]:
    """Those that both have."""
    module = "org.apache.kafka.common.security.plain.PlainLoginModule required"
    users = " ".join(f'user_{name}="{name}"' for name in USERS)
    return {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        # Who comes without a password is the broker itself: nobody else knows that listener.
        "super.users": f"User:ANONYMOUS;User:{ADMIN};User:{BOSS}",
        "allow.everyone.if.no.acl.found": str(for_everyone).lower(),
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": f"{module} {users};",
        "group.initial.rebalance.delay.ms": "0",
        "offsets.topic.num.partitions": "2",
        "transaction.state.log.num.partitions": "2",
        "auto.create.topics.enable": "true",
    }


@contextmanager
def ottla(folder: Path, *, for_everyone: bool) -> Iterator[str]:
    """The address for clients."""
    client, inside = free_ports(2)
    given = settings(for_everyone=for_everyone) | {
        "broker.id": "1",
        "listeners": f"SASL_PLAINTEXT://{HOST}:{client},PLAINTEXT://{HOST}:{inside}",
        "inter.broker.listener.name": "PLAINTEXT",
    }
    words = [word for pair in given.items() for word in ("-c", "=".join(pair))]
    with BrokerProcess(folder / "ottla", words):
        yield f"{HOST}:{client}"


@contextmanager
def kafka(jars: KafkaJars, folder: Path, *, for_everyone: bool) -> Iterator[str]:
    """The address for clients."""
    client, inside, controller = free_ports(3)
    listeners = f"SASL_PLAINTEXT://{HOST}:{client},PLAINTEXT://{HOST}:{inside}"
    given = settings(for_everyone=for_everyone) | {
        "listeners": f"{listeners},CONTROLLER://{HOST}:{controller}",
        "advertised.listeners": listeners,
        "controller.quorum.voters": f"1@{HOST}:{controller}",
        "listener.security.protocol.map": (
            "SASL_PLAINTEXT:SASL_PLAINTEXT,PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT"
        ),
    }
    broker = ApacheKafka(jars, folder / "kafka", given, jvm=KAFKAS_JVM)
    broker.start()
    try:
        broker.child.wait_for_port(client, START_WAIT_MS)
        yield f"{HOST}:{client}"
    finally:
        broker.stop()
