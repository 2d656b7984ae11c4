"""Brokers as pytest fixtures; pytest loads this plugin wherever Ottla is installed.

def test_orders(ottla_broker):
    producer = Producer({"bootstrap.servers": ottla_broker.bootstrap})

def test_failover(ottla_cluster):
    cluster = ottla_cluster(brokers=3)
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    admin.create_topics([NewTopic("orders", 1)])["orders"].result()
    cluster.kill(cluster.leader("orders"))
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from ottla.testing.broker_process import BrokerProcess
    from ottla.testing.cluster import Cluster


@pytest.fixture(scope="session")
def ottla_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """One broker for the whole run, started on first use; `.bootstrap` is its address.

    All tests share it, so each test needs its own topics and groups. With pytest-xdist each worker
    has its own broker. For a broker per test, use `ottla.testing.BrokerProcess`.
    """
    # Imported on use: pytest loads this module in every project that has Ottla.
    from ottla.testing.broker_process import BrokerProcess

    with BrokerProcess(tmp_path_factory.mktemp("ottla-broker") / "data") as broker:
        yield broker


@pytest.fixture
def ottla_cluster() -> Iterator[Callable[..., Cluster]]:
    """Starts clusters for one test: takes the arguments of `ottla.testing.Cluster`."""
    from ottla.testing.cluster import Cluster

    with ExitStack() as ending:

        def start(*arguments: Any, **options: Any) -> Cluster:
            return ending.enter_context(Cluster(*arguments, **options))

        yield start
