"""The main job: every flight from one file into a table, through a kill and a lost checkpoint."""

from __future__ import annotations

import csv
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from demo.flights import FLIGHTS, TOPIC, data_folder, read_flights
from demo.processes import PIPELINE_FILE, pipeline_environment
from demo.publish import Broker
from tests.pipelines.environment import serve
from tests.pipelines.jars import fetch_jars_once

pytestmark = [pytest.mark.spark, pytest.mark.full, pytest.mark.timeout(1_800)]

WITHIN_S = 600


class Job:
    """`ottla pipeline run` with its lines of JSON."""

    def __init__(self, file: Path, folder: Path, bootstrap: str, starting: str) -> None:
        self.out = folder / f"{starting}.out"
        self.errors = folder / f"{starting}.err"
        self.environment = pipeline_environment(bootstrap, folder, starting)
        words = [sys.executable, "-m", "ottla", "pipeline", "run", str(file), "--json"]
        with self.out.open("w") as out, self.errors.open("w") as errors:
            self.process = subprocess.Popen(
                [*words, "--log", str(folder / f"{starting}.log")],
                stdout=out,
                stderr=errors,
                env=self.environment,
                start_new_session=True,
            )

    def wait_until(self, wanted: Any) -> None:
        until = time.monotonic() + WITHIN_S
        while time.monotonic() < until and self.process.poll() is None:
            if any(wanted(json.loads(line)) for line in self.out.read_text().splitlines()):
                return
            time.sleep(0.1)
        raise AssertionError(self.out.read_text()[-2_000:] + self.errors.read_text())

    def kill(self) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait(60)


def expected() -> Counter[tuple[Any, ...]]:
    """Each flight as the table should have it, with its airline."""
    with (data_folder() / "airlines.csv").open() as file:
        airlines = {row["carrier"]: row["name"] for row in csv.DictReader(file)}
    records = (json.loads(value) for _, value in read_flights())
    return Counter(
        tuple(sorted((record | {"airline": airlines[record["carrier"]]}).items()))
        for record in records
    )


def in_table(table: Path) -> tuple[Counter[tuple[Any, ...]], int]:
    """Each row of the table without its partition and offset, and how many of these there are."""
    from ottla.pipelines import session

    spark = session("rows", conf={"spark.ui.enabled": False})
    try:
        frame = spark.read.format("delta").load(str(table)).drop("timestamp")
        rows = [row.asDict() for row in frame.toLocalIterator()]
    finally:
        spark.stop()
    positions = {(row.pop("partition"), row.pop("offset")) for row in rows}
    counted = Counter(
        tuple(sorted((name, value) for name, value in row.items() if value is not None))
        for row in rows
    )
    return counted, len(positions)


def test_every_flight_arrives_once_though_the_run_is_killed_and_its_checkpoint_deleted(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    fetch_jars_once(tmp_path_factory)
    file = tmp_path / "flights.toml"
    text = PIPELINE_FILE.read_text()
    file.write_text(text.replace('topic = "flights"', 'topic = "flights"\nmax_rows = 40_000'))
    with serve(tmp_path / "broker") as bootstrap:
        broker = Broker(bootstrap, TOPIC)
        broker.create_topic()
        assert broker.publish(read_flights(), lambda _: None) == FLIGHTS

        first = Job(file, tmp_path, bootstrap, "earliest")
        try:
            first.wait_until(lambda line: (line["rows"] or 0) > 0)
        finally:
            first.kill()
        shutil.rmtree(tmp_path / "checkpoint")

        second = Job(file, tmp_path, bootstrap, "table")
        try:
            second.wait_until(lambda line: line["state"] == "running" and line["batch"] is not None)
            until = time.monotonic() + WITHIN_S
            while broker.committed("flights-delta") != (FLIGHTS, FLIGHTS):
                assert time.monotonic() < until, second.out.read_text()[-2_000:]
                time.sleep(0.5)
            stop = [sys.executable, "-m", "ottla", "pipeline", "stop", str(file), "--wait", "120"]
            done = subprocess.run(stop, env=second.environment, capture_output=True, text=True)
            assert done.returncode == 0, done.stderr
            assert second.process.wait(120) == 0
        finally:
            second.kill()

    rows, positions = in_table(tmp_path / "flights")
    assert positions == FLIGHTS
    assert rows == expected()
