"""A pipeline into a topic that is killed, at every kind of moment, writes each row once.

On Ottla and on Apache Kafka, and on three brokers of which each is killed in turn. Read under
read_committed, the topic that is written equals the one that is read, row by row, and the rows of a
key are in their order.
"""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from components.apache_kafka import ApacheKafka
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from tests.pipelines.jars import fetch_jars_once
from tests.system.cluster_load import QUICK
from tests.system.test_pipeline_crashes import Ottla, broker, kill_and_start

from components import fixture
from ottla.testing import Cluster

kafka_jars, apache_kafka = fixture.kafka_jars, fixture.apache_kafka
__all__ = ["apache_kafka", "broker", "kafka_jars"]
pytestmark = [pytest.mark.spark, pytest.mark.timeout(1_200), pytest.mark.full]

PARTITIONS = (0, 1)
KEYS = 10
RUN_WITHIN_S = 200
KILLED = -signal.SIGKILL
SEEDS = (1, 2, 3)
WAYS = ("tasks", "whole")
MOMENTS = (
    (
        ("tasks", "among the rows"),
        ("whole", "among the rows"),
        ("tasks", "before the commit"),
        ("whole", "before the commit"),
    ),
    (
        ("tasks", "after the commit"),
        ("whole", "after the commit"),
        ("tasks", "between tasks"),
        ("whole", "at the commit"),
        ("tasks", "before the checkpoint"),
        ("whole", "before the checkpoint"),
    ),
)


class Feed:
    """Produces numbers without end; those of a key are in one partition."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self.count = 0
        self._topic = topic
        self._producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Feed:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        assert self._producer.flush(60) == 0

    def _run(self) -> None:
        for number in itertools.count():
            if self._stop.wait(0.01):
                return
            self._producer.produce(
                self._topic, str(number), str(number % KEYS), partition=number % len(PARTITIONS)
            )
            self.count = number + 1
            self._producer.poll(0)


class Job:
    """Two topics, and the folder with the checkpoint."""

    def __init__(self, bootstrap: str, folder: Path, replicas: int) -> None:
        self.bootstrap = bootstrap
        self.folder = folder
        self.source, self.target = (f"{name}-{uuid.uuid4().hex[:8]}" for name in ("from", "to"))
        admin = AdminClient({"bootstrap.servers": bootstrap})
        new = [NewTopic(name, len(PARTITIONS), replicas) for name in (self.source, self.target)]
        for future in admin.create_topics(new).values():
            future.result(timeout=60)

    def start(self, *options: str) -> subprocess.Popen[str]:
        words = [sys.executable, "-m", "tests.system.topic_job", self.bootstrap, self.source]
        self.last = subprocess.Popen(
            [*words, self.target, str(self.folder), *options],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            cwd=Path(__file__).parents[2],
        )
        return self.last

    def check_runs(self) -> None:
        if self.last.poll() is not None:
            pytest.fail(f"the job has ended: {self.finish(self.last)[1][-4000:]}")

    def check_wrote(self, by: str) -> None:
        """Check that batches were written in this way."""
        assert (self.folder / "whole").exists() == (by == "whole")

    def finish(self, job: subprocess.Popen[str]) -> tuple[int, str]:
        try:
            _, errors = job.communicate(timeout=RUN_WITHIN_S)
        except subprocess.TimeoutExpired:
            os.killpg(job.pid, signal.SIGKILL)
            _, errors = job.communicate()
            pytest.fail(f"the job did not end: {errors[-2000:]}")
        return job.returncode, errors

    def die(self, by: str, moment: str, seed: int = 0) -> None:
        code, errors = self.finish(self.start("--by", by, "--die", moment, "--seed", str(seed)))
        assert code == KILLED, errors[-2000:]

    def take_the_rest(self, by: str) -> None:
        code, errors = self.finish(self.start("--by", by))
        assert code == 0, errors[-2000:]

    def read(self) -> list[tuple[int, int]]:
        """Return (key, number) of all records that a read_committed consumer sees, in order."""
        consumer = Consumer(
            {
                "bootstrap.servers": self.bootstrap,
                "group.id": "reader",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "isolation.level": "read_committed",
            }
        )
        consumer.assign([TopicPartition(self.target, number, 0) for number in PARTITIONS])
        found: list[tuple[int, int]] = []
        ends: set[int] = set()
        try:
            while len(ends) < len(PARTITIONS):
                message = consumer.poll(60)
                assert message is not None, "the consumer got nothing for 60 s"
                if message.error() is None:
                    found.append((int(message.key()), int(message.value())))
                else:
                    ends.add(message.partition())
        finally:
            consumer.close()
        return found

    def check_each_arrived_once(self, feed: Feed, by: str) -> None:
        self.take_the_rest(by)
        found = self.read()
        assert sorted(number for _, number in found) == list(range(feed.count))
        for key in range(KEYS):
            numbers = [number for each, number in found if each == key]
            assert numbers == list(range(key, feed.count, KEYS))


@pytest.fixture
def new_job(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Job]:
    fetch_jars_once(tmp_path_factory)

    def make(bootstrap: str, replicas: int = 1) -> Job:
        return Job(bootstrap, tmp_path, replicas)

    return make


@pytest.mark.parametrize("moments", MOMENTS)
def test_each_row_arrives_once_whatever_the_kill_cuts_off(
    moments: tuple[tuple[str, str], ...],
    broker: Ottla | ApacheKafka,
    new_job: Callable[..., Job],
) -> None:
    """What a kill leaves of a batch, the next run takes up in the other way."""
    job = new_job(broker.address)
    with Feed(job.bootstrap, job.source) as feed:
        for by, moment in moments:
            job.die(by, moment)
    job.check_each_arrived_once(feed, "whole")


def test_each_row_arrives_once_wherever_the_kill_is(
    broker: Ottla | ApacheKafka, new_job: Callable[..., Job]
) -> None:
    job = new_job(broker.address)
    with Feed(job.bootstrap, job.source) as feed:
        for seed in SEEDS:
            job.die("tasks", "seeded", seed)
            job.die("whole", "seeded", seed)
            job.die("whole", "at the commit", seed)
    job.check_each_arrived_once(feed, "whole")


@pytest.mark.parametrize("by", WAYS)
def test_each_row_arrives_once_when_the_broker_is_killed(
    by: str, broker: Ottla | ApacheKafka, new_job: Callable[..., Job]
) -> None:
    job = new_job(broker.address)
    with Feed(job.bootstrap, job.source) as feed:
        run = job.start("--by", by, "--die", "never")
        for _ in range(3):
            wait_for_rows(job)
            kill_and_start(broker)
        wait_for_rows(job)
        os.killpg(run.pid, signal.SIGKILL)
        assert job.finish(run)[0] == KILLED
        job.check_wrote(by)
    job.check_each_arrived_once(feed, by)


@pytest.mark.parametrize("by", WAYS)
def test_each_row_arrives_once_when_coordinator_and_leaders_are_killed(
    by: str, new_job: Callable[..., Any], tmp_path: Path
) -> None:
    settings = {**QUICK, "transaction.state.log.num.partitions": 3}
    with Cluster(3, settings, data=tmp_path / "cluster") as cluster:
        job = new_job(cluster.bootstrap, 3)
        with Feed(job.bootstrap, job.source) as feed:
            run = job.start("--by", by, "--die", "never")
            for number in (1, 2, 3):
                wait_for_rows(job)
                cluster.kill(number)
                wait_for_rows(job)
                cluster.start(number)
                cluster.wait_in_sync()
            os.killpg(run.pid, signal.SIGKILL)
            assert job.finish(run)[0] == KILLED
            job.check_wrote(by)
        job.check_each_arrived_once(feed, by)


def wait_for_rows(job: Job) -> None:
    """Wait until more rows are committed to the topic that is written than now."""

    def committed() -> int | None:
        # A new client each time: one that has met a killed leader may ask it again and again.
        consumer = Consumer(
            {
                "bootstrap.servers": job.bootstrap,
                "group.id": "watcher",
                "isolation.level": "read_committed",
            }
        )
        partitions = [TopicPartition(job.target, number) for number in PARTITIONS]
        try:
            return sum(
                int(consumer.get_watermark_offsets(partition, 5)[1]) for partition in partitions
            )
        except KafkaException:
            return None  # a broker is away
        finally:
            consumer.close()

    before: int | None = None
    until = time.monotonic() + RUN_WITHIN_S
    while True:
        now = committed()
        if before is not None and now is not None and now > before:
            return
        before = now if before is None else before
        job.check_runs()
        if time.monotonic() > until:
            os.killpg(job.last.pid, signal.SIGKILL)
            _, errors = job.finish(job.last)
            pytest.fail(f"no row was committed within {RUN_WITHIN_S} s: {errors[-4000:]}")
        time.sleep(0.2)
