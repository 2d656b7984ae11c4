"""`ottla pipeline` as processes, and a small pipeline file for them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from confluent_kafka import Producer

TEXT = """
[source]
bootstrap_servers = "{bootstrap}"
topic = "{topic}"
schema = "n INT NOT NULL"
[transform]
sql = "SELECT value.n, offset FROM {view}"
[sink]
target = "./lake/numbers"
[delivery]
checkpoint = "./cp/numbers"
group = "{topic}-delta"
trigger = "1 second"
[spark]
master = "local[2]"
[spark.conf]
spark.sql.shuffle.partitions = 2
spark.driver.extraJavaOptions = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""
WAIT_S = 240


def produce(bootstrap: str, topic: str, values: list[str]) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    for value in values:
        producer.produce(topic, value, partition=0)
    assert producer.flush(30) == 0


def words(*words: str) -> list[str]:
    return [sys.executable, "-m", "ottla", "pipeline", *words]


def statuses(file: Path) -> list[dict[str, object]]:
    """What `status` says of the pipelines of a file."""
    found: list[dict[str, object]] = json.loads(ottla("status", str(file), "--json").stdout)
    return found


def ottla(*given: str, timeout: int = 60) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words(*given), capture_output=True, text=True, timeout=timeout)


class Running:
    """`ottla pipeline run` in the background, with its output as lines of JSON."""

    def __init__(self, file: Path, log: Path) -> None:
        self.out = log.with_suffix(".out")
        self.errors = log.with_suffix(".err")
        with self.out.open("w") as out, self.errors.open("w") as errors:
            self.process = subprocess.Popen(
                words("run", str(file), "--json", "--log", str(log)),
                stdout=out,
                stderr=errors,
                start_new_session=True,
            )

    def lines(self) -> list[dict[str, object]]:
        whole = self.out.read_text().rpartition("\n")[0]
        return [json.loads(line) for line in whole.splitlines()]

    def wait_for_rows(self, rows: int, pipeline: str | None = None) -> None:
        self.wait_for(
            lambda: any(
                line["rows"] == rows and pipeline in (None, line["pipeline"])
                for line in self.lines()
            )
        )

    def wait_for(self, condition: Callable[[], bool]) -> None:
        until = time.monotonic() + WAIT_S
        while time.monotonic() < until and self.process.poll() is None:
            if condition():
                return
            time.sleep(0.2)
        raise AssertionError(self.out.read_text() + self.errors.read_text())

    def wait(self) -> int:
        return self.process.wait(WAIT_S)

    def kill(self) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait(30)
