"""A test kit for Kafka applications: real broker processes, alone or as a cluster with faults.

`Broker` runs one broker whose time, faults and retention the test controls. `BrokerProcess` runs
`ottla serve`, as users do. `Cluster` runs ZooKeeper and several brokers, and can cut the network
between them. `ottla.testing.plugin` provides them as pytest fixtures. The processes are real,
listen on free ports of this machine, and end with the test.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from ottla.testing.broker import Broker, SharedBroker
    from ottla.testing.broker_process import BrokerProcess
    from ottla.testing.cluster import Cluster
    from ottla.testing.errors import KitError
    from ottla.testing.fault_rule import Received
    from ottla.testing.faults import Fault
    from ottla.testing.record import ReadRecord
    from ottla.testing.security import Security
    from ottla.testing.topic import Topic

__all__ = [
    "Broker",
    "BrokerProcess",
    "Cluster",
    "Fault",
    "KitError",
    "ReadRecord",
    "Received",
    "Security",
    "SharedBroker",
    "Topic",
]

# Imported on first use: pytest imports this package in every project that has Ottla.
_MODULES: Final = {
    "Broker": "broker",
    "SharedBroker": "broker",
    "BrokerProcess": "broker_process",
    "Cluster": "cluster",
    "Fault": "faults",
    "KitError": "errors",
    "ReadRecord": "record",
    "Received": "fault_rule",
    "Security": "security",
    "Topic": "topic",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
