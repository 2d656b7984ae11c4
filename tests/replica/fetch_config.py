"""The settings of replica fetchers, for tests."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any


def fetch_config(**more: int) -> Any:
    """Those of broker 1, with a backoff of 1 ms."""
    config = {
        "id": 1,
        "replica_fetch_backoff_ms": 1,
        "replica_socket_timeout_ms": 10_000,
        "replica_fetch_wait_max_ms": 500,
        "replica_fetch_min_bytes": 1,
        "replica_fetch_max_bytes": 1 << 20,
        "replica_fetch_response_max_bytes": 10 << 20,
    }
    return SimpleNamespace(**(config | more))
