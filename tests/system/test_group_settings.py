"""Settings of groups at real brokers, by Apache Kafka's tool, and what a member is told."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from components.apache_kafka import KafkaJars
from tests.system.wire import Wire

from components import fixture
from ottla.cli.main import main
from ottla.protocol.errors import ErrorCode
from ottla.testing import BrokerProcess

kafka_jars = fixture.kafka_jars

FIND_COORDINATOR, HEARTBEAT = 10, 68
NOT_YET = (ErrorCode.not_coordinator, ErrorCode.coordinator_load_in_progress)
TRIES, PAUSE_S = 300, 0.1


def heartbeat_interval_ms(bootstrap: str) -> int:
    """What a member that joins is told."""
    with Wire(bootstrap) as wire:
        build = wire.request(FIND_COORDINATOR, 4)
        wire.ask(build.FindCoordinatorRequest(key_type=0, coordinator_keys=("g",)))
        build = wire.request(HEARTBEAT, 1)
        request = build.ConsumerGroupHeartbeatRequest(
            group_id="g", member_id="a", member_epoch=0, rebalance_timeout=1_000,
            subscribed_topic_names=("t",), topic_partitions=(),
        )  # fmt: skip
        for _ in range(TRIES):
            answer = wire.ask(request)
            if answer.error_code is ErrorCode.none:
                return int(answer.heartbeat_interval)
            assert answer.error_code in NOT_YET
            time.sleep(PAUSE_S)
    raise AssertionError(answer)


def alter(bootstrap: str, *words: str) -> None:
    assert main(["config", "alter", "group", "g", *words, "--bootstrap", bootstrap]) == 0


def test_members_follow_the_settings_also_after_a_restart(
    new_broker: Callable[..., BrokerProcess], tmp_path: Path
) -> None:
    broker = new_broker()
    assert heartbeat_interval_ms(broker.bootstrap) == 5_000
    alter(broker.bootstrap, "consumer.heartbeat.interval.ms=7000")
    assert heartbeat_interval_ms(broker.bootstrap) == 7_000
    assert broker.stop() == 0
    narrow = ("--config", "group.consumer.max.heartbeat.interval.ms=6000")
    broker = new_broker(*narrow, data=tmp_path / "data-0")
    assert heartbeat_interval_ms(broker.bootstrap) == 6_000
    said = "group g: consumer.heartbeat.interval.ms is 6000 and not 7000"
    assert said in broker.said()
    alter(broker.bootstrap, "--unset", "consumer.heartbeat.interval.ms")
    assert heartbeat_interval_ms(broker.bootstrap) == 5_000


@pytest.mark.kafka
def test_kafka_configs(kafka_jars: KafkaJars, new_broker: Callable[..., BrokerProcess]) -> None:
    """Apache Kafka's own tool sets, shows and removes them."""
    server = ("--bootstrap-server", new_broker().bootstrap)

    def configs(*words: str) -> str:
        group = ("--entity-type", "groups", "--entity-name", "orders/eu")
        return kafka_jars.run("org.apache.kafka.tools.ConfigCommand", *server, *group, *words)

    configs("--alter", "--add-config", "consumer.session.timeout.ms=50000")
    configs("--alter", "--add-config", "share.isolation.level=read_committed")
    said = configs("--describe")
    assert "consumer.session.timeout.ms=50000" in said
    assert "DYNAMIC_GROUP_CONFIG:share.isolation.level=read_committed" in said
    configs("--alter", "--delete-config", "consumer.session.timeout.ms")
    assert "consumer.session.timeout.ms" not in configs("--describe")
    server_and_type = (*server, "--entity-type", "groups")
    said = kafka_jars.run("org.apache.kafka.tools.ConfigCommand", *server_and_type, "--describe")
    assert "orders/eu" in said
