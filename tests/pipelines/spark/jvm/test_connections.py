"""py4j's idle connections, which an interrupted call would close."""

from typing import Any

import pytest

from ottla.pipelines.spark.jvm import connections
from ottla.pipelines.spark.jvm.attributes import gateway

pytestmark = pytest.mark.spark


def test_idle_connections_are_kept_and_others_follow(spark: Any) -> None:
    assert spark.range(1).count() == 1  # its connection is idle now
    idle = gateway()._gateway_client.deque
    before = list(idle)
    assert before

    connections.keeper_of_idle()()

    assert not idle
    assert connections._kept[-len(before) :] == before
    assert spark.range(2).count() == 2
    idle.extend(connections._kept)
    connections._kept.clear()
