"""A pipeline into Delta and the journey of its messages, on a secured broker of Ottla.

The users have the permissions that the guides name, and none besides: each is needed.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from tests.pipelines.jars import fetch_jars_once

from ottla.pipelines import PipelineError
from ottla.pipelines.kafka.brokers import look_up
from ottla.pipelines.kafka.settings import read_settings
from ottla.testing import Broker, Security

pytestmark = [pytest.mark.spark, pytest.mark.timeout(500)]

ROOT = Path(__file__).parents[2]
GROUP = "flights-delta"
PASSWORDS = {"flights": "a word", "looks": "another", "nobody": "third", "airport": "fourth"}
OF_THE_PIPELINE = (
    "flights Read topic flights",
    f"flights Read group {GROUP}",
    f"flights Read group {GROUP}.run",
    f"flights Read group {GROUP}.stop",
    f"flights Delete group {GROUP}.run",
    f"flights Delete group {GROUP}.stop",
)
"""What docs/pipelines.md says."""
OF_THE_JOURNEY = ("looks Read topic flights", "looks Describe cluster")
"""What docs/authorization.md says."""
WITHIN_S = 60


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    acls = [*OF_THE_PIPELINE, *OF_THE_JOURNEY, "airport Write topic flights"]
    with Broker(security=Security(users=PASSWORDS, acls=acls)) as running:
        running.create_topic("flights")
        producer = Producer(running.client("airport"))
        for carrier, delay in (("HA", 1301), ("UA", 2)):
            producer.produce("flights", f'{{"carrier": "{carrier}", "dep_delay": {delay}}}')
        producer.produce("flights", "no flight")
        assert producer.flush(WITHIN_S) == 0
        yield running


@pytest.fixture(scope="module")
def ran(
    broker: Broker, tmp_path_factory: pytest.TempPathFactory
) -> subprocess.CompletedProcess[str]:
    """The guide's example as the user `flights`, to its end."""
    fetch_jars_once(tmp_path_factory)
    guide = (ROOT / "docs" / "pipeline-sources.md").read_text()
    blocks = re.findall(r"```py\n(.*?)```", guide, re.DOTALL)
    (example,) = (block for block in blocks if "sasl.username" in block)
    for old, new in (
        ("kafka.example.com:9093", broker.bootstrap),
        ("/etc/kafka/ca.pem", str(broker.authority)),
    ):
        assert old in example
        example = example.replace(old, new)
    counts = """
for name in ("flights", "flights_rejected"):
    print(name, spark.read.format("delta").load(f"./lake/{name}").count())
"""
    return subprocess.run(
        [sys.executable, "-c", example + counts],
        capture_output=True,
        text=True,
        timeout=400,
        cwd=tmp_path_factory.mktemp("pipeline"),
        env={**os.environ, "KAFKA_PASSWORD": PASSWORDS["flights"]},
    )


def test_the_guides_example_runs_with_the_permissions_that_the_guide_names(
    broker: Broker, ran: subprocess.CompletedProcess[str]
) -> None:
    assert ran.returncode == 0, ran.stderr[-4000:]
    assert ran.stdout.splitlines()[-2:] == ["flights 2", "flights_rejected 1"]
    assert PASSWORDS["flights"] not in ran.stdout + ran.stderr
    asked = ConsumerGroupTopicPartitions(GROUP, [TopicPartition("flights", 0)])
    admin = AdminClient({"bootstrap.servers": broker.bootstrap, **broker.kit_settings})
    answer = admin.list_consumer_group_offsets([asked])[GROUP].result(timeout=WITHIN_S)
    assert [partition.offset for partition in answer.topic_partitions] == [3]
    lines = broker.process.said().splitlines()
    denied = [line for line in lines if "User:flights lacks" in line]
    # librdkafka asks for a coordinator also where it reads without a group.
    assert [line for line in denied if "Group 'ottla-unused'" not in line] == []


def journey(broker: Broker, user: str, code: int = 0) -> Any:
    settings = broker.client(user)
    address = settings.pop("bootstrap.servers")
    options = [f"--client-config={name}={value}" for name, value in settings.items()]
    words = ["journey", "flights", "0", "1", "--json", "--bootstrap", address, *options]
    done = subprocess.run(
        [sys.executable, "-m", "ottla", *words],
        capture_output=True,
        text=True,
        timeout=WITHIN_S,
        check=False,
    )
    assert done.returncode == code, done.stderr
    return json.loads(done.stdout) if code == 0 else done.stderr


def test_the_journey_is_shown_to_whom_may_see_it(
    broker: Broker, ran: subprocess.CompletedProcess[str]
) -> None:
    assert ran.returncode == 0, ran.stderr[-4000:]
    assert GROUP in json.dumps(journey(broker, "looks"))
    # The pipeline may read the topic, which does not suffice: a journey names every group.
    needs = "needs Read on topic flights and Describe on the cluster"
    assert f"User:flights {needs}" in journey(broker, "flights", code=1)
    broker.delete_acls("looks Read topic flights")
    try:
        assert f"User:looks {needs}" in journey(broker, "looks", code=1)
    finally:
        broker.add_acls("looks Read topic flights")


def test_without_permission_a_pipeline_says_what_it_lacks(broker: Broker) -> None:
    settings = broker.client("nobody")
    address = settings.pop("bootstrap.servers")
    with pytest.raises(PipelineError, match="flights") as caught:
        look_up(read_settings(address, settings), ["flights"])
    assert "\n" not in str(caught.value)
    assert PASSWORDS["nobody"] not in str(caught.value)
