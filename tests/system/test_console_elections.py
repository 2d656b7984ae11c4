"""The overview of a real cluster tells who leads since when, and why."""

from __future__ import annotations

import time
from collections.abc import Callable

from tests.console.served_console import Visitor, console_of, serving

from ottla.testing import Cluster

WAIT_S = 60.0


def words_with(visitor: Visitor, text: str) -> str:
    """The words of the overview once it has this text."""
    until_s = time.monotonic() + WAIT_S
    while True:
        words = visitor.get("/").words
        if text in words or time.monotonic() > until_s:
            return words
        time.sleep(0.2)


def test_leaders_that_stop_die_and_come_back(ottla_cluster: Callable[..., Cluster]) -> None:
    cluster = ottla_cluster(3)
    name = cluster.create_topic("led", partitions=3, replicas=3).name
    controller = cluster.controller()
    stopped, killed = (number for number in cluster.brokers if number != controller)
    with serving(console_of(cluster.bootstrap)) as visitor:
        words = visitor.get("/").words
        assert "No leader was elected." in words
        assert f"Broker {controller} became the controller at" in words
        cluster.stop(stopped)
        words = words_with(visitor, "the former leader is stopping")
        assert f"{name}-" in words
        assert f"after broker {stopped}" in words
        cluster.start(stopped)
        assert "not led by the preferred replica" in words_with(visitor, "not led by")
        cluster.kill(killed)
        words = words_with(visitor, "the former leader is down")
        assert f"after broker {killed}" in words
