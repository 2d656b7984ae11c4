"""A share group while brokers die that lead its partitions, its states and the group itself."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from confluent_kafka import AcknowledgeType, KafkaException, ShareConsumer
from tests.system.cluster_load import QUICK, create, produce
from tests.system.test_share_groups import begin_at_the_earliest

from ottla.testing import Cluster

PARTITIONS = 6
RECORDS = 40
"""Of each partition."""
WITHIN_S = 90


class Member:
    """Accepts everything, and knows what of that holds."""

    def __init__(self, bootstrap: str) -> None:
        settings: dict[str, Any] = {"bootstrap.servers": bootstrap, "group.id": "g"}
        settings["share.acknowledgement.mode"] = "explicit"
        self.client = ShareConsumer(settings)
        self.client.subscribe(["t"])
        self.accepted: set[tuple[int, int]] = set()
        self.again: list[tuple[int, int]] = []
        """Records that came although their acceptance had been confirmed."""

    def poll(self) -> None:
        try:
            got = []
            for message in self.client.poll(1.0):
                if message.error() is None:
                    got.append((message.partition(), message.offset()))
                    self.client.acknowledge(message, AcknowledgeType.ACCEPT)
            self.again += [each for each in got if each in self.accepted]
            confirmed = {
                partition.partition
                for partition, error in (self.client.commit_sync(20.0) if got else {}).items()
                if error is None
            }
        except KafkaException:
            return  # a broker has died
        self.accepted |= {each for each in got if each[0] in confirmed}

    def poll_until(self, count: int) -> None:
        end = time.monotonic() + WITHIN_S
        while len(self.accepted) < count:
            assert time.monotonic() < end, sorted(self.accepted)
            self.poll()


def test_no_record_is_lost_and_none_comes_again(tmp_path: Path) -> None:
    settings = {**QUICK, "share.coordinator.state.topic.num.partitions": 4}
    with Cluster(3, settings, data=tmp_path / "cluster") as cluster:
        create(cluster, "t", PARTITIONS)
        begin_at_the_earliest(cluster.bootstrap, "g")
        member = Member(cluster.bootstrap)
        for round_, broker in enumerate(cluster.brokers, 1):
            for partition in range(PARTITIONS):
                told = produce(cluster, "t", RECORDS // 2, partition)
                assert told == ["NO_ERROR"] * (RECORDS // 2)
            member.poll()
            cluster.kill(broker)
            for partition in range(PARTITIONS):
                told = produce(cluster, "t", RECORDS // 2, partition)
                assert told == ["NO_ERROR"] * (RECORDS // 2)
            member.poll_until(round_ * RECORDS * PARTITIONS)
            cluster.start(broker)
            cluster.wait_in_sync()
        assert member.again == []
        member.client.close()
