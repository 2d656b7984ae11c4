"""`ottla pipeline replay` as a process that is killed before each of its steps."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from tests.pipelines.environment import serve
from tests.pipelines.jars import fetch_jars_once
from tests.system.pipeline_commands import WAIT_S, ottla

pytestmark = [pytest.mark.spark, pytest.mark.full, pytest.mark.timeout(600)]

FILE = """
[source]
bootstrap_servers = "{bootstrap}"
topic = "{topic}"
schema = "{schema}"
[transform]
view = "numbers"
sql = "SELECT CAST(value.id AS BIGINT) AS id, partition, offset FROM numbers"
[sink]
target = "./numbers"
format = "json"
[delivery]
checkpoint = "./checkpoint"
group = "{topic}-json"
trigger = "available-now"
on_rejects = "continue"
[spark]
master = "local[2]"
[spark.conf]
spark.sql.shuffle.partitions = 2
spark.driver.extraJavaOptions = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""
STEPS = ("Computing what", "Rows to write", "Marking what", "The replay is complete")


@pytest.fixture
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with serve(tmp_path_factory.mktemp("broker") / "data") as address:
        yield address


def killed_at(file: Path, step: str) -> None:
    """Start a replay and kill it, and its Spark, when it says that a step begins."""
    with subprocess.Popen(
        [sys.executable, "-m", "ottla", "pipeline", "replay", str(file)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stderr is not None
        said = []
        for line in process.stderr:
            said.append(line)
            if step in line:
                os.killpg(process.pid, signal.SIGKILL)
                break
        else:
            raise AssertionError("".join(said))


def written(folder: Path) -> list[int]:
    """The numbers in the files that Spark's lists name: a killed write leaves others."""
    lists = [path for path in (folder / "_spark_metadata").iterdir() if path.name.isdigit()]
    listed = [json.loads(line) for path in lists for line in path.read_text().splitlines()[1:]]
    files = [Path(one["path"].removeprefix("file://")) for one in listed]
    lines = [line for file in files for line in file.read_text().splitlines()]
    return sorted(json.loads(line)["id"] for line in lines)


def test_each_row_is_written_once_although_the_process_is_killed(
    bootstrap: str, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    fetch_jars_once(tmp_path_factory)
    topic = f"numbers-{uuid.uuid4().hex[:8]}"
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(timeout=30)
    producer = Producer({"bootstrap.servers": bootstrap})
    for number in range(40):
        wanted = number if number % 2 else str(number)
        producer.produce(topic, json.dumps({"id": wanted}))
    producer.produce(topic, b"?")
    assert producer.flush(30) == 0
    file = tmp_path / "numbers.toml"

    def write(schema: str) -> None:
        file.write_text(FILE.format(bootstrap=bootstrap, topic=topic, schema=schema))

    # A number in quotes is no BIGINT of JSON.
    write("id BIGINT NOT NULL")
    run = ottla("run", str(file), timeout=WAIT_S)
    assert run.returncode == 0, run.stderr
    write("id STRING NOT NULL")
    for step in STEPS:
        killed_at(file, step)
    last = ottla("replay", str(file), "--json", timeout=WAIT_S)
    assert last.returncode == 0, last.stderr
    (found,) = json.loads(last.stdout)
    assert (found["rows"], found["sent"], found["rejected"]) == (1, 0, 1)
    assert [one["reason"] for one in found["rejected_again"]] == [
        "value is not a JSON object of the schema"
    ]
    assert written(tmp_path / "numbers") == list(range(40))
