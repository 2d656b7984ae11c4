"""A disk without space: one sentence, and the pipeline goes on when there is space again.

The disk is a small tmpfs, so only root can run this. A file fills it up to a few hundred KB.
"""

from __future__ import annotations

import json
import random
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from tests.pipelines.environment import fetch_jars_once, serve

from ottla.pipelines import PipelineError, session, to_delta, to_files, topic

pytestmark = [pytest.mark.spark, pytest.mark.full, pytest.mark.timeout(900)]

ROWS = 4_000
DISK_MB = 160
LEFT_BYTES = 400_000
TRIGGER = {"availableNow": True}


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK_MB}m,mode=777", "none", str(place)]
    done = subprocess.run(mount, capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip(f"a disk of its own cannot be mounted here: {done.stderr.strip()}")
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    fetch_jars_once(tmp_path_factory)
    running = session(
        "disk",
        master="local[2]",
        conf={"spark.ui.enabled": False},
    )
    yield running
    running.stop()


@pytest.fixture(scope="module")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with serve(tmp_path_factory.mktemp("broker") / "data") as address:
        producer = Producer({"bootstrap.servers": address})
        for number in range(ROWS):
            # At random, so that no compression makes it small.
            word = random.Random(number).randbytes(200).hex()
            producer.produce("numbers", json.dumps({"id": number, "word": word}))
        assert producer.flush(60) == 0
        yield address


def frame(spark: Any, bootstrap: str) -> Any:
    rows = topic(spark, "numbers", bootstrap_servers=bootstrap, schema="id BIGINT, word STRING")
    return rows.select("value.*", "partition", "offset")


def fill(disk: Path) -> Path:
    """Leave LEFT_BYTES on the disk."""
    ballast = disk / "ballast"
    free = int(subprocess.check_output(["df", "-B1", "--output=avail", disk]).split()[1])
    subprocess.run(["fallocate", "-l", str(free - LEFT_BYTES), ballast], check=True)
    return ballast


@pytest.mark.parametrize("kind", ["delta", "parquet"])
def test_a_full_disk_under_a_table_or_files(
    spark: Any, bootstrap: str, disk: Path, tmp_path: Path, kind: str
) -> None:
    def write() -> None:
        write_rows: Any = to_delta if kind == "delta" else to_files
        query = write_rows(
            frame(spark, bootstrap),
            disk / "table",
            checkpoint=tmp_path / "checkpoint",
            trigger=TRIGGER,
        )
        query.awaitTermination()

    ballast = fill(disk)
    with pytest.raises(PipelineError) as caught:
        write()
    said = str(caught.value)
    assert "The disk is full" in said
    assert "Free some space: the next start continues from the checkpoint" in said
    assert "\n" not in said

    ballast.unlink()
    write()
    rows = spark.read.format(kind).load(str(disk / "table")).select("id").collect()
    assert sorted(row["id"] for row in rows) == list(range(ROWS))


def test_a_full_disk_under_the_checkpoint(
    spark: Any, bootstrap: str, disk: Path, tmp_path: Path
) -> None:
    def write() -> None:
        to_delta(
            frame(spark, bootstrap),
            tmp_path / "table",
            checkpoint=disk / "checkpoint",
            trigger=TRIGGER,
        ).awaitTermination()

    ballast = disk / "ballast"
    free = int(subprocess.check_output(["df", "-B1", "--output=avail", disk]).split()[1])
    subprocess.run(["fallocate", "-l", str(free), ballast], check=True)
    with pytest.raises(PipelineError, match="The disk is full") as caught:
        write()
    assert "\n" not in str(caught.value)

    ballast.unlink()
    write()
    rows = spark.read.format("delta").load(str(tmp_path / "table")).select("id").collect()
    assert sorted(row["id"] for row in rows) == list(range(ROWS))
