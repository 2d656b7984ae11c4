"""The size of a topic is the sum of its partitions, or unknown."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from tests.client.answers import stored
from tests.client.fake_cluster import FakeCluster

from ottla.cli.topic import sizes as module
from ottla.cli.topic.sizes import topic_sizes
from ottla.client.admin.log_dirs import DESCRIBE_LOG_DIRS, LogDir, StoredReplica


def topic(*leaders: int) -> Any:
    return SimpleNamespace(
        partitions={index: SimpleNamespace(leader=leader) for index, leader in enumerate(leaders)}
    )


TOPICS = {"whole": topic(1, 1), "silent": topic(2), "offline": topic(-1), "mute": topic(1)}


@pytest.fixture
def connection(monkeypatch: pytest.MonkeyPatch) -> Any:
    def shown(_connection: Any, places: Any, *_specs: Any) -> Any:
        assert ("offline", 0) not in places
        first = dict.fromkeys([("whole", 0), ("whole", 1), ("silent", 0)], 5)
        return [first, dict.fromkeys(first, 12)], {("mute", 0): "no response"}

    replicas = (
        StoredReplica("whole", 0, 100, 0, False),
        StoredReplica("whole", 1, 1000, 0, False),
        StoredReplica("mute", 0, 7, 0, False),
    )
    folder = LogDir(1, "/d", None, None, None, replicas)
    monkeypatch.setattr(module, "shown_offsets", shown)
    cluster = FakeCluster({DESCRIBE_LOG_DIRS: [stored([folder])]})
    cluster.silent.add("b2:9092")
    return SimpleNamespace(client=cluster.client())


def test_sizes_and_what_is_unknown(connection: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert topic_sizes(connection, TOPICS) == {
        "whole": (14, 1100),
        "silent": (7, None),
        "offline": (None, None),
        "mute": (None, 7),
    }
    assert capsys.readouterr().err == "broker 2: no response from b2:9092.\n"
