"""A pipeline that is killed, at every kind of moment, delivers each record once."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from tests.pipelines.environment import fetch_jars_once, serve
from tests.system.pipeline_job import GROUP

pytestmark = [pytest.mark.spark, pytest.mark.timeout(400)]

TOPIC = "numbers"
PARTITIONS = (0, 1)
MOMENTS = ("between tables", "inside", "between batches")
RUN_WITHIN_S = 150


class Feed:
    """Produces numbers without end, each seventh a record that does not parse."""

    def __init__(self, bootstrap: str) -> None:
        self.good: list[int] = []
        self.bad = 0
        self._producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Feed:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()
        assert self._producer.flush(30) == 0

    def _run(self) -> None:
        for number in itertools.count():
            if self._stop.wait(0.02):
                return
            partition = number % len(PARTITIONS)
            if number % 7 == 0:
                self.bad += 1
                self._producer.produce(TOPIC, b"\xff", partition=partition)
            else:
                self.good.append(number)
                self._producer.produce(TOPIC, json.dumps({"id": number}), partition=partition)
            self._producer.poll(0)


@pytest.fixture
def bootstrap(tmp_path: Path) -> Iterator[str]:
    with serve(tmp_path / "broker") as address:
        yield address


def run_job(bootstrap: str, folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-m", "tests.system.pipeline_job", bootstrap, TOPIC, str(folder)]
    job = subprocess.Popen(
        [*words, *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        cwd=Path(__file__).parents[2],
    )
    try:
        out, errors = job.communicate(timeout=RUN_WITHIN_S)
    except subprocess.TimeoutExpired:
        os.killpg(job.pid, signal.SIGKILL)
        _, errors = job.communicate()
        pytest.fail(f"the job did not end: {errors[-2000:]}")
    return subprocess.CompletedProcess(job.args, job.returncode, out, errors)


def group_place(bootstrap: str) -> tuple[list[int], dict[str, Any]]:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    asked = [TopicPartition(TOPIC, partition) for partition in PARTITIONS]
    futures = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(GROUP, asked)])
    places = futures[GROUP].result(timeout=30).topic_partitions
    return [place.offset for place in places], json.loads(places[0].metadata)


def test_each_record_arrives_once_whenever_the_pipeline_is_killed(
    bootstrap: str, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    fetch_jars_once(tmp_path_factory)
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(TOPIC, len(PARTITIONS), 1)])[TOPIC].result(timeout=30)

    with Feed(bootstrap) as feed:
        for moment in MOMENTS:
            killed = run_job(bootstrap, tmp_path, "--die", moment)
            assert killed.returncode == -signal.SIGKILL, killed.stderr[-2000:]
    done = run_job(bootstrap, tmp_path)

    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout.splitlines()[-1])
    places = found["places"]
    assert places["ids"] == [[number] for number in feed.good]
    assert len(places["table_rejected"]) == feed.bad
    ends = [(len(feed.good) + feed.bad + 1) // 2, (len(feed.good) + feed.bad) // 2]
    everywhere = [
        [partition, offset] for partition in PARTITIONS for offset in range(ends[partition])
    ]
    assert sorted(places["table"] + places["table_rejected"]) == everywhere
    offsets, said = group_place(bootstrap)
    assert offsets == ends
    assert said["delta"]["table"] == str(tmp_path / "table")
    assert str(said["delta"]["version"]) in found["versions"]
