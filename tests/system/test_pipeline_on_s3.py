"""Delta, files and their checkpoints on S3 as moto plays it, by Hadoop's s3a."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from components.s3 import S3
from confluent_kafka import Producer
from tests.pipelines.environment import serve
from tests.pipelines.jars import fetch_jars_once

from components import ivy, java, pypi, s3
from ottla.pipelines import PipelineError, session, to_delta, to_files, topic

pytestmark = [pytest.mark.spark, pytest.mark.full, pytest.mark.timeout(900)]

BATCH = 500
SCHEMA = "id BIGINT, day INT"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[tuple[S3, list[Path]]]:
    try:
        jars, programs = s3.fetched_jars(), s3.fetched_server()
    except (ivy.FetchError, java.NoJavaError, pypi.PypiError) as error:
        pytest.skip(f"Hadoop's jars for S3, or moto's server, could not be fetched: {error}")
    running = S3(programs, tmp_path)
    try:
        running.start()
        running.make_bucket("lake")
        yield running, jars
    finally:
        running.stop()


def test_data_and_checkpoint_lie_on_s3(
    store: tuple[S3, list[Path]], tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    fetch_jars_once(tmp_path_factory)
    running, jars = store
    conf = {
        "spark.ui.enabled": False,
        "spark.driver.extraClassPath": ":".join(map(str, jars)),
        **running.settings(),
    }
    (tmp_path / "broker").mkdir()
    with serve(tmp_path / "broker/data") as bootstrap:
        producer = Producer({"bootstrap.servers": bootstrap})
        spark = session("s3", master="local[2]", conf=conf)
        try:
            place = "s3a://lake"
            trigger = {"availableNow": True}
            for first in range(0, 4 * BATCH, 2 * BATCH):
                for number in range(first, first + 2 * BATCH):
                    value = json.dumps({"id": number, "day": number % 3})
                    producer.produce("numbers", value, str(number % 100))
                producer.produce("numbers", b"no JSON")
                assert producer.flush(30) == 0
                frame = topic(
                    spark, "numbers", bootstrap_servers=bootstrap, schema=SCHEMA, max_rows=BATCH
                ).select("value.*", "partition", "offset")
                to_files(
                    frame,
                    f"{place}/files",
                    checkpoint=f"{place}/state-files",
                    partition_by="day",
                    trigger=trigger,
                ).awaitTermination()
                to_delta(
                    frame, f"{place}/table", checkpoint=f"{place}/state-table", trigger=trigger
                ).awaitTermination()
                to_delta(
                    frame.withColumn("of", frame["id"] % 100),
                    f"{place}/keyed",
                    checkpoint=f"{place}/state-keyed",
                    trigger=trigger,
                    keys=["of"],
                    order_by="id",
                ).awaitTermination()
            for kind, name in (("parquet", "files"), ("delta", "table")):
                rows = spark.read.format(kind).load(f"{place}/{name}").select("id").collect()
                assert sorted(row["id"] for row in rows) == list(range(4 * BATCH)), name
                rejected = spark.read.format(kind).load(f"{place}/{name}_rejected")
                assert rejected.count() == 2, name
            keyed = spark.read.format("delta").load(f"{place}/keyed").select("id").collect()
            assert sorted(row["id"] for row in keyed) == list(range(4 * BATCH - 100, 4 * BATCH))
            # What lies there is what Spark on another machine would find: nothing is local.
            with pytest.raises(PipelineError, match="holds batches of another checkpoint"):
                to_files(frame, f"{place}/files", checkpoint=f"{place}/new", partition_by="day")
        finally:
            spark.stop()
