"""Files and their checkpoint on a real HDFS: a NameNode and a DataNode."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from components.hdfs import Hdfs
from confluent_kafka import Producer
from tests.pipelines.environment import serve
from tests.pipelines.jars import fetch_jars_once

from components import hdfs, ivy, java
from ottla.pipelines import PipelineError, session, to_delta, to_files, topic

pytestmark = [pytest.mark.spark, pytest.mark.full, pytest.mark.timeout(900)]

BATCH = 500


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Hdfs]:
    try:
        jars = hdfs.fetched_jars()
    except (ivy.FetchError, java.NoJavaError) as error:
        pytest.skip(f"Hadoop's jars could not be fetched: {error}")
    running = Hdfs(jars, tmp_path / "hdfs")
    try:
        running.start()
        yield running
    finally:
        running.stop()


def test_data_and_checkpoint_lie_on_hdfs(
    cluster: Hdfs, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    fetch_jars_once(tmp_path_factory)
    (tmp_path / "broker").mkdir()
    with serve(tmp_path / "broker/data") as bootstrap:
        producer = Producer({"bootstrap.servers": bootstrap})
        spark = session(
            "hdfs",
            master="local[2]",
            conf={"spark.ui.enabled": False, "spark.hadoop.dfs.replication": 1},
        )
        try:
            place = f"{cluster.url}/lake"
            for first in range(0, 6 * BATCH, 3 * BATCH):
                for number in range(first, first + 3 * BATCH):
                    producer.produce("numbers", json.dumps({"id": number, "day": number % 3}))
                producer.produce("numbers", b"no JSON")
                assert producer.flush(30) == 0
                frame = topic(
                    spark,
                    "numbers",
                    bootstrap_servers=bootstrap,
                    schema="id BIGINT, day INT",
                    max_rows=BATCH,
                ).select("value.*", "partition", "offset")
                trigger = {"availableNow": True}
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
            for kind, name in (("parquet", "files"), ("delta", "table")):
                rows = spark.read.format(kind).load(f"{place}/{name}").select("id").collect()
                assert sorted(row["id"] for row in rows) == list(range(6 * BATCH)), name
                rejected = spark.read.format(kind).load(f"{place}/{name}_rejected")
                assert rejected.count() == 2, name
            with pytest.raises(PipelineError, match="holds batches of another checkpoint"):
                to_files(frame, f"{place}/files", checkpoint=f"{place}/new", partition_by="day")
        finally:
            spark.stop()
