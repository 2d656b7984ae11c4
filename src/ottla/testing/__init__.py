"""For tests of what talks to Kafka: real brokers as processes, alone or as a cluster with faults.

`BrokerProcess` is one `ottla serve`. `Cluster` is a ZooKeeper, brokers, and a network between them
that can be cut. `ottla.testing.plugin` makes both into pytest fixtures. All of it runs real
processes on free ports of this machine, and ends them with the test.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from ottla.testing.broker_process import BrokerProcess
    from ottla.testing.cluster import Cluster
    from ottla.testing.errors import KitError

__all__ = ["BrokerProcess", "Cluster", "KitError"]

# Imported when first asked for: pytest imports this package in every project that has Ottla.
_MODULES: Final = {
    "BrokerProcess": "broker_process",
    "Cluster": "cluster",
    "KitError": "errors",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
