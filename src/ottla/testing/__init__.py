"""A test kit for Kafka applications: real broker processes, alone or as a cluster with faults.

`BrokerProcess` runs one `ottla serve`. `Cluster` runs ZooKeeper and several brokers, and can cut
the network between them. `ottla.testing.plugin` provides both as pytest fixtures. The processes are
real, listen on free ports of this machine, and end with the test.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from ottla.testing.broker_process import BrokerProcess
    from ottla.testing.cluster import Cluster
    from ottla.testing.errors import KitError

__all__ = ["BrokerProcess", "Cluster", "KitError"]

# Imported on first use: pytest imports this package in every project that has Ottla.
_MODULES: Final = {
    "BrokerProcess": "broker_process",
    "Cluster": "cluster",
    "KitError": "errors",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
