"""The broker's reason as a sentence, if there is one."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from tests.client.fake_cluster import FakeCluster, coordinators

from ottla.cli.group_coordinator import why_no_coordinator
from ottla.client.coordinators import FIND_COORDINATOR
from ottla.protocol.errors import ErrorCode


@pytest.mark.parametrize(
    ("code", "message", "reason"),
    [
        (ErrorCode.none, None, None),
        (ErrorCode.coordinator_not_available, "Too few brokers.", "Too few brokers."),
        (ErrorCode.coordinator_load_in_progress, None, "coordinator load in progress."),
    ],
)
def test_the_reason(code: ErrorCode, message: str | None, reason: str | None) -> None:
    cluster = FakeCluster({FIND_COORDINATOR: [coordinators(code, message)]})
    connection: Any = SimpleNamespace(client=cluster.client())
    assert why_no_coordinator(connection, "g") == reason


def test_no_broker_responds() -> None:
    cluster = FakeCluster()
    cluster.silent.add("b1:9092")
    connection: Any = SimpleNamespace(client=cluster.client())
    assert why_no_coordinator(connection, "g") is None
