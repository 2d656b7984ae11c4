"""Internal topics, created by the first FindCoordinator request."""

from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from ottla.client.coordinators import Coordinated
from ottla.testing import KitError
from ottla.testing.broker_process import BrokerProcess
from ottla.testing.internal_topics import TOPICS, create_internal_topic
from ottla.testing.ports import HOST, free_ports


def test_internal_topics_are_created(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path / "data") as broker:
        for kind in Coordinated:
            create_internal_topic(broker.bootstrap, kind, 60)
            create_internal_topic(broker.bootstrap, kind, 0)
        listed = AdminClient({"bootstrap.servers": broker.bootstrap}).list_topics(timeout=20)
        assert set(listed.topics) == set(TOPICS.values())


@pytest.mark.parametrize("kind", Coordinated)
def test_the_error_has_the_brokers_reason(tmp_path: Path, kind: Coordinated) -> None:
    options = [
        *("-c", "offsets.topic.replication.factor=3"),
        *("-c", "transaction.state.log.replication.factor=3"),
    ]
    with (
        BrokerProcess(tmp_path / "data", options) as broker,
        pytest.raises(KitError, match=rf"no {TOPICS[kind]} .* only 1 broker\(s\) are registered"),
    ):
        create_internal_topic(broker.bootstrap, kind, 0)


def test_no_broker_responds() -> None:
    with pytest.raises(KitError, match="no response from"):
        create_internal_topic(f"{HOST}:{free_ports(1)[0]}", Coordinated.GROUP, 0)
