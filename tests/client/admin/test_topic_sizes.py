"""The size of a topic is the sum of its partitions, or unknown."""

from __future__ import annotations

from tests.client.answers import offsets, stored
from tests.client.fake_cluster import FakeCluster

from ottla.client.admin.log_dirs import DESCRIBE_LOG_DIRS, LogDir, StoredReplica
from ottla.client.admin.offsets import LIST_OFFSETS
from ottla.client.admin.topic_sizes import topic_sizes

WHOLE = [("whole", 0), ("whole", 1)]


def test_sizes_and_what_is_unknown() -> None:
    replicas = (
        StoredReplica("whole", 0, 100, 0, False),
        StoredReplica("whole", 1, 1000, 0, False),
        StoredReplica("mute", 0, 7, 0, False),
    )
    folder = LogDir(1, "/d", None, None, None, replicas)
    known = offsets(dict.fromkeys(WHOLE, 5), dict.fromkeys(WHOLE, 12))
    cluster = FakeCluster({DESCRIBE_LOG_DIRS: [stored([folder])], LIST_OFFSETS: [known]})
    cluster.leaders = dict.fromkeys((*WHOLE, ("mute", 0)), 1)
    cluster.leaders |= {("silent", 0): 2, ("offline", 0): -1}
    cluster.silent.add("b2:9092")
    client = cluster.client()
    found, why = topic_sizes(client, client.metadata().topics)
    assert found == {
        "whole": (14, 1100),
        "silent": (None, None),
        "offline": (None, None),
        "mute": (None, 7),
    }
    assert why == {2: "no response from b2:9092"}
