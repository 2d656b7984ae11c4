"""A journey knows every group of the cluster, whichever broker coordinates it."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from tests.system.cluster_load import QUICK, create, produce, wait_for
from tests.system.test_cluster_groups import commit

from ottla.client.admin.asked_journeys import asked_journey
from ottla.journey.offset_history import MAX_SKEW_MS
from ottla.journey.words.tell import tell
from ottla.protocol.internal_topics import OFFSETS_TOPIC
from ottla.shards.partitioning import partition_for
from ottla.testing import Cluster
from ottla.timelines.pending_steps import WINDOW_MS

GROUPS = [f"group-{number}" for number in range(6)]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A test leaves its brokers all running, and uses topics of its own."""
    with Cluster(3, QUICK, data=tmp_path_factory.mktemp("cluster")) as opened:
        yield opened


@pytest.fixture
def topic(cluster: Cluster) -> str:
    """With three replicas."""
    return filled(cluster)


@pytest.fixture
def alone(cluster: Cluster) -> str:
    """With one replica: most coordinators have none."""
    return filled(cluster, replica_assignment=[[1]])


def filled(cluster: Cluster, **options: Any) -> str:
    """A new topic with ten records.

    The clocks of two brokers may differ. Whether a commit that one of them records so soon after
    the other has opened the partition came before or after that is not known.
    """
    name = f"flights-{uuid.uuid4().hex[:8]}"
    create(cluster, name, **options)
    assert produce(cluster, name, 10) == ["NO_ERROR"] * 10
    time.sleep(1.1 * MAX_SKEW_MS / 1000)
    return name


def question(topic: str, offset: int = 4) -> dict[str, Any]:
    return {"journey": 1, "topic": topic, "partition": 0, "offset": offset}


def ask(cluster: Cluster, topic: str, offset: int = 4) -> dict[str, Any]:
    return asked_journey(cluster.bootstrap, question(topic, offset))


def states(document: dict[str, Any]) -> dict[str, str]:
    return {group["group"]: group["state"] for group in document["read"]}


def coordinator(cluster: Cluster, group: str) -> int:
    partitions = int(str(QUICK["offsets.topic.num.partitions"]))
    return cluster.leader(OFFSETS_TOPIC, partition_for(group, partitions))


def test_every_coordinator_is_asked(cluster: Cluster, topic: str) -> None:
    for group in GROUPS:
        commit(cluster, group, topic, 5)
    commit(cluster, "slow", topic, 2)
    said = ask(cluster, topic)
    assert states(said) == dict.fromkeys(GROUPS, "read") | {"slow": "not_yet"}
    assert said["groups"]["complete"]
    for group in said["read"][:-1]:
        assert group["when"]["exact"], group


def test_what_a_silent_coordinator_has_is_said_to_be_unknown(cluster: Cluster, topic: str) -> None:
    for group in GROUPS:
        commit(cluster, group, topic, 5)
    leader = cluster.leader(topic)
    silent = next(
        broker for broker in cluster.brokers if broker != leader and broker != cluster.controller()
    )
    coordinated = {group for group in GROUPS if coordinator(cluster, group) == silent}
    cluster.pause(silent)
    said = asked_journey(cluster.brokers[leader].bootstrap, question(topic))
    assert said["groups"]["unanswered"] == [silent]
    assert set(states(said)) == set(GROUPS) - coordinated
    lines = str(tell(said).below[-2].below[-1].text())
    assert lines == f"groups that broker {silent} coordinates are not known: it did not answer"

    cluster.kill(silent)
    wait_for("all groups", lambda: ask(cluster, topic)["groups"]["complete"])
    said = ask(cluster, topic)
    assert states(said) == dict.fromkeys(GROUPS, "read")
    cluster.start(silent)
    cluster.wait_in_sync()


def test_a_reader_stays_known_after_its_partition_moved(cluster: Cluster, topic: str) -> None:
    for group in GROUPS:
        commit(cluster, group, topic, 5)
    leader = cluster.leader(topic)
    cluster.elect(next(one for one in cluster.brokers if one != leader), topic)
    said = ask(cluster, topic)
    assert states(said) == dict.fromkeys(GROUPS, "read")
    assert said["groups"]["complete"]


def test_commits_are_recorded_where_no_replica_is(cluster: Cluster, alone: str) -> None:
    for offset in (2, 5):
        for group in GROUPS:
            commit(cluster, group, alone, offset)
    assert len({coordinator(cluster, group) for group in GROUPS}) > 1
    said = ask(cluster, alone)
    assert states(said) == dict.fromkeys(GROUPS, "read")
    for group in said["read"]:
        assert group["when"]["until_ms"] - group["when"]["since_ms"] < WINDOW_MS, group


def test_a_coordinator_that_moved_leaves_what_it_recorded(cluster: Cluster, alone: str) -> None:
    """Only coordinators record the commits of this topic."""
    group = GROUPS[0]
    commit(cluster, group, alone, 2)
    commit(cluster, group, alone, 5)
    before = ask(cluster, alone)["read"]
    former = coordinator(cluster, group)
    index = partition_for(group, int(str(QUICK["offsets.topic.num.partitions"])))
    cluster.elect(former % 3 + 1, OFFSETS_TOPIC, index)
    commit(cluster, group, alone, 8)
    said = ask(cluster, alone)
    assert said["groups"]["complete"]
    (read,) = said["read"]
    assert read["committed_offset"] == 8
    assert read["when"] == before[0]["when"]
    later = ask(cluster, alone, offset=7)["read"][0]
    assert later["when"]["since_ms"] > read["when"]["until_ms"]
