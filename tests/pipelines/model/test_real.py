"""The steps of the model, drawn from seeds, against real Spark, Delta, PostgreSQL and topics."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from tests.pipelines.model.real import SINKS, RealWorld, walk

from components import fixture
from ottla.pipelines import to_delta, topic
from ottla.testing import Cluster

pytestmark = [pytest.mark.spark, pytest.mark.full, pytest.mark.timeout(900)]
postgres = fixture.postgres

SEEDS = (1, 2, 3)
KILLS = 2
WITHIN_S = 60
CONFIG = {"replica.lag.time.max.ms": 1500, "zookeeper.session.timeout.ms": 2000}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("kind", SINKS)
def test_each_record_is_there_once_or_a_run_says_why_not(
    kind: str, seed: int, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    def asked(name: str) -> Any:
        return request.getfixturevalue(name)

    database = asked("postgres") if kind == "postgresql" else None
    walk(RealWorld(kind, asked("spark"), asked("bootstrap"), tmp_path, database), seed)


def produce(cluster: Cluster, first: int, end: int) -> None:
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "acks": "all"})
    for number in range(first, end):
        producer.produce("t", json.dumps({"id": number}), partition=number % 2)
    assert producer.flush(WITHIN_S) == 0


def test_a_leader_that_is_killed_loses_and_doubles_nothing(spark: Any, tmp_path: Path) -> None:
    with Cluster(brokers=3, config=CONFIG) as cluster:
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 3})
        how = {"min.insync.replicas": "2"}
        admin.create_topics([NewTopic("t", 2, 3, config=how)])["t"].result(WITHIN_S)
        cluster.wait_in_sync("t")
        where: dict[str, Any] = {"bootstrap_servers": cluster.bootstrap}
        frame = topic(spark, "t", schema="id BIGINT NOT NULL", **where)
        produce(cluster, 0, 50)
        query: Any = to_delta(
            frame.select("value.*"), tmp_path / "table", checkpoint=tmp_path / "checkpoint"
        )
        try:
            for number in range(KILLS):
                query.processAllAvailable()
                leader = cluster.leader("t", number)
                cluster.kill(leader)
                cluster.wait_leader_other_than(leader, "t", number)
                first = 50 * (number + 1)
                produce(cluster, first, first + 50)
                query.processAllAvailable()
                cluster.start(leader)
                cluster.wait_in_sync("t")
        finally:
            query.stop()
        assert query.exception() is None
    rows = spark.read.format("delta").load(str(tmp_path / "table")).collect()
    assert sorted(row["id"] for row in rows) == list(range(50 * (KILLS + 1)))
