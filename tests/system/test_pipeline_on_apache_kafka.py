"""The same pipeline, unchanged, on Apache Kafka: it knows a broker by its address alone."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from components.apache_kafka import ApacheKafka
from confluent_kafka import ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from tests.pipelines.jars import fetch_jars_once
from tests.system.pipeline_job import GROUP

from components import fixture

kafka_jars, apache_kafka = fixture.kafka_jars, fixture.apache_kafka
pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.timeout(400)]

GOOD = 30


def test_the_pipeline_runs_on_apache_kafka(
    apache_kafka: ApacheKafka, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    fetch_jars_once(tmp_path_factory)
    address = apache_kafka.address
    producer = Producer({"bootstrap.servers": address})
    for number in range(GOOD):
        producer.produce("numbers", json.dumps({"id": number}))
    producer.produce("numbers", "no number")
    assert producer.flush(30) == 0
    job = [sys.executable, "-m", "tests.system.pipeline_job", address, "numbers"]
    done = subprocess.run(
        [*job, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=240,
        cwd=Path(__file__).parents[2],
    )
    admin = AdminClient({"bootstrap.servers": address})
    asked = ConsumerGroupTopicPartitions(GROUP, [TopicPartition("numbers", 0)])
    answer = admin.list_consumer_group_offsets([asked])[GROUP].result(timeout=30)

    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["positions"]["ids"] == [[number] for number in range(GOOD)]
    assert found["positions"]["table_rejected"] == [[0, GOOD]]
    (partition,) = answer.topic_partitions
    assert partition.offset == GOOD + 1
    assert json.loads(partition.metadata)["delta"] == {
        "table": str(tmp_path / "table"),
        "version": 1,
    }
