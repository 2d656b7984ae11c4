"""The offsets topic, created by the first FindCoordinator request."""

from pathlib import Path

import pytest

from ottla.testing import KitError
from ottla.testing.broker_process import BrokerProcess
from ottla.testing.internal_topics import create_offsets_topic
from ottla.testing.ports import HOST, free_ports


def test_the_offsets_topic_is_created(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path / "data") as broker:
        create_offsets_topic(broker.bootstrap, 60)
        create_offsets_topic(broker.bootstrap, 0)


def test_the_error_has_the_brokers_reason(tmp_path: Path) -> None:
    options = ["-c", "offsets.topic.replication.factor=3"]
    with (
        BrokerProcess(tmp_path / "data", options) as broker,
        pytest.raises(KitError, match=r"only 1 broker\(s\) are registered"),
    ):
        create_offsets_topic(broker.bootstrap, 0)


def test_no_broker_responds() -> None:
    with pytest.raises(KitError, match="no response from"):
        create_offsets_topic(f"{HOST}:{free_ports(1)[0]}", 0)
