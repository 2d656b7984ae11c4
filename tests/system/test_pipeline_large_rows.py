"""Rows of 4 MB into PostgreSQL: a batch that the driver cannot hold says what to do about it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from components.postgres import Postgres
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from tests.pipelines.environment import serve
from tests.pipelines.jars import fetch_jars_once

from components import fixture

pytestmark = [pytest.mark.spark, pytest.mark.full, pytest.mark.timeout(600)]
postgres = fixture.postgres

ROWS, ROW_BYTES, MAX_ROWS = 200, 4 << 20, 10
RUN_WITHIN_S = 250
# A heap of 1 GB, as much for Arrow's buffers outside of it, and the JVM's own.
MOST_BYTES = 5 << 29


def run(*arguments: object) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "tests.system.large_rows_job", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=RUN_WITHIN_S,
        cwd=Path(__file__).parents[2],
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_a_batch_larger_than_the_driver_says_what_to_do_and_smaller_ones_arrive(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, postgres: Postgres
) -> None:
    fetch_jars_once(tmp_path_factory)
    with serve(tmp_path / "broker") as bootstrap:
        admin = AdminClient({"bootstrap.servers": bootstrap})
        admin.create_topics([NewTopic("large", 2, 1)])["large"].result(timeout=30)
        producer = Producer({"bootstrap.servers": bootstrap})
        for number in range(ROWS):
            producer.produce("large", json.dumps({"id": number}), partition=number % 2)
        assert producer.flush(30) == 0
        where = (bootstrap, "large", postgres.url)

        error = run(*where, tmp_path / "first", ROW_BYTES)["error"]
        assert "Spark ran out of memory" in error
        assert "'spark.driver.memory'" in error
        assert "topic(max_rows=)" in error
        assert len(error.splitlines()) == 1
        assert postgres.query("SELECT count(*) FROM large") == [["0"]]

        found = run(*where, tmp_path / "second", ROW_BYTES, MAX_ROWS)
    assert found["error"] is None
    assert found["peak_bytes"] < MOST_BYTES
    rows = postgres.query("SELECT count(DISTINCT id), count(*), min(length(word)) FROM large")
    assert rows == [[str(ROWS), str(ROWS), str(ROW_BYTES)]]
