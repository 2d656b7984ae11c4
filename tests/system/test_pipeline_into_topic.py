"""`ottla pipeline run` with a topic as the sink, killed in the middle: each row arrives once.

On Ottla, with Spark in one process and on a standalone cluster, where each executor has processes
of its own; and on Apache Kafka over TLS with a password, where the driver, its tasks and the
transactional producers in them need the settings.
"""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.pipelines.environment import serve
from tests.pipelines.jars import fetch_jars_once
from tests.system import test_pipeline_on_secured_kafka
from tests.system.pipeline_commands import Running, ottla
from tests.system.standalone_spark import standalone_spark
from tests.system.test_topic_crashes import Feed, Job, wait_for_rows

secured, kafka_jars = (
    test_pipeline_on_secured_kafka.secured,
    test_pipeline_on_secured_kafka.kafka_jars,
)
__all__ = ["kafka_jars", "secured"]
pytestmark = [pytest.mark.spark, pytest.mark.timeout(1_200), pytest.mark.full]

TEXT = """
[source]
bootstrap_servers = "{place.address}"
topic = "{job.source}"
schema = "bigint"
key_schema = "string"
{place.security}
[sink]
topic = "{job.target}"
key = "key"
value = "value"
[delivery]
checkpoint = "./cp/numbers"
group = "{job.source}-topic"
trigger = "{trigger}"
[spark]
master = "{place.master}"
[spark.conf]
spark.sql.shuffle.partitions = 2
spark.driver.extraJavaOptions = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""


class Place(NamedTuple):
    """Where the pipeline runs, and between which topics."""

    bootstrap: str
    """The broker's address for the test."""
    address: str
    """Its address for the pipeline."""
    security: str
    master: str


@pytest.fixture(
    params=["ottla", "spark cluster", pytest.param("secured kafka", marks=pytest.mark.kafka)]
)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    if request.param == "secured kafka":
        kafka = request.getfixturevalue("secured")
        lines = [f"{json.dumps(each)} = {json.dumps(to)}" for each, to in kafka.scram().items()]
        security = "\n".join(["[source.kafka]", *lines])
        yield Place(kafka.plain, kafka.sasl, security, "local[2]")
        return
    with ExitStack() as stack:
        address = stack.enter_context(serve(tmp_path / "data"))
        master = "local[2]"
        if request.param == "spark cluster":
            master = stack.enter_context(standalone_spark(tmp_path / "spark"))
        yield Place(address, address, "", master)


def test_a_killed_run_is_run_again_and_each_row_arrives_once(
    place: Place, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    fetch_jars_once(tmp_path_factory)
    job = Job(place.bootstrap, tmp_path, 1)
    file = tmp_path / "numbers.toml"

    def write(trigger: str) -> None:
        file.write_text(TEXT.format(place=place, job=job, trigger=trigger))

    write("1 second")
    with Feed(place.bootstrap, job.source) as feed:
        running = Running(file, tmp_path / "spark.log")
        try:
            running.wait_for(lambda: any(line["rows"] for line in running.lines()))
            wait_for_rows(job)
            assert running.process.poll() is None
        finally:
            running.kill()
        assert running.process.returncode == -signal.SIGKILL
    write("available-now")
    again = Running(file, tmp_path / "again.log")
    try:
        assert again.wait() == 0, again.errors.read_text()
    finally:
        again.kill()

    assert sorted(number for _, number in job.read()) == list(range(feed.count))
    said = ottla("status", str(file), "--json")
    (status,) = json.loads(said.stdout)
    assert (status["pipeline"], status["state"]) == ("numbers", "finished"), said.stdout
    assert status["lag_messages"] == 0
