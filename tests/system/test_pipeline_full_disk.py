"""A disk without space: one sentence, and the pipeline goes on when there is space again.

The disk is a small tmpfs, so only root can run this. A file fills it up to a few hundred KB.
"""

from __future__ import annotations

import contextlib
import json
import random
import subprocess
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from components.postgres import PASSWORD, USER, Postgres, fetched_driver, find_programs
from confluent_kafka import Producer
from tests.pipelines.environment import serve
from tests.pipelines.jars import fetch_jars_once

from ottla.pipelines import PipelineError, session, to_delta, to_files, to_postgresql, topic

pytestmark = [pytest.mark.spark, pytest.mark.full, pytest.mark.timeout(900)]

ROWS = 4_000
DISK_MB = 160
LEFT_BYTES = 400_000
ENDS_WITHIN_S = 120
TRIGGER = {"availableNow": True}


@contextlib.contextmanager
def small_disk(place: Path) -> Iterator[Path]:
    mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK_MB}m,mode=777", "none", str(place)]
    done = subprocess.run(mount, capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip(f"a disk of its own cannot be mounted here: {done.stderr.strip()}")
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "disk"
    place.mkdir()
    with small_disk(place):
        yield place


@pytest.fixture
def database() -> Iterator[Postgres]:
    """A server with all that it has on a small disk, except for its log."""
    programs = find_programs()
    if programs is None:
        pytest.skip("PostgreSQL is not installed. On Debian: apt-get install postgresql")
    # Not below tmp_path, which is closed to the user that the server runs as.
    place = Path(tempfile.mkdtemp(prefix="ottla-postgres-"))
    with small_disk(place):
        server = Postgres(programs, place)
        try:
            server.make()
            yield server
        finally:
            server.stop()
    place.rmdir()


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
        produce(address, "numbers", range(ROWS))
        yield address


def produce(bootstrap: str, name: str, numbers: range) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    for number in numbers:
        # At random, so that no compression makes it small.
        word = random.Random(number).randbytes(200).hex()
        producer.produce(name, json.dumps({"id": number, "word": word}))
    assert producer.flush(60) == 0


def frame(spark: Any, bootstrap: str, name: str = "numbers") -> Any:
    rows = topic(spark, name, bootstrap_servers=bootstrap, schema="id BIGINT, word STRING")
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


class IntoDatabase:
    """The rows of a topic into a table of the database."""

    def __init__(
        self,
        spark: Any,
        bootstrap: str,
        database: Postgres,
        checkpoint: Path,
        name: str = "numbers",
    ) -> None:
        spark.sql(f"ADD JAR '{fetched_driver()}'")
        self.name = name
        self.spark, self.bootstrap = spark, bootstrap
        self.database, self.checkpoint = database, checkpoint

    def write(self, **how: Any) -> None:
        to_postgresql(
            frame(self.spark, self.bootstrap, self.name),
            "numbers",
            url=self.database.url,
            user=USER,
            password=PASSWORD,
            checkpoint=self.checkpoint,
            trigger=TRIGGER,
            **how,
        ).awaitTermination()

    def ids(self) -> list[int]:
        return [int(row[0]) for row in self.database.query("SELECT id FROM numbers ORDER BY id")]


@pytest.mark.parametrize("how", [{}, {"keys": ["id"]}], ids=["append", "upsert"])
def test_a_full_disk_under_a_database(
    spark: Any, bootstrap: str, database: Postgres, tmp_path: Path, how: dict[str, Any]
) -> None:
    into = IntoDatabase(spark, bootstrap, database, tmp_path / "checkpoint")
    ballast = fill(database.folder)
    with pytest.raises(PipelineError) as caught:
        into.write(**how)
    said = str(caught.value)
    assert "The disk of the database of public.numbers in postgresql://" in said
    assert "is full: could not extend file" in said
    assert "Free some space: the next start continues from the checkpoint" in said
    assert "\n" not in said
    assert into.ids() == []

    ballast.unlink()
    into.write(**how)
    assert into.ids() == list(range(ROWS))


def test_a_full_disk_under_the_log_of_a_database(
    spark: Any, bootstrap: str, database: Postgres, tmp_path: Path
) -> None:
    """PostgreSQL cannot go on without its write-ahead log: it ends."""
    into = IntoDatabase(spark, bootstrap, database, tmp_path / "checkpoint", "more")
    produce(bootstrap, "more", range(ROWS // 2))
    into.write()
    # The rest of a file of the log is used up, and there is no room for the next one.
    ballast = fill(database.folder)
    database.query("SELECT pg_switch_wal()")
    produce(bootstrap, "more", range(ROWS // 2, ROWS))
    with ThreadPoolExecutor(1) as thread:
        writing = thread.submit(into.write)
        database.child.process.wait(ENDS_WITHIN_S)
        ballast.unlink()
        database.start()
        try:
            # It waits for the database, unless the database itself has told it of its disk.
            writing.result()
        except PipelineError as error:
            said = str(error)
            assert "The disk of the database of public.numbers in postgresql://" in said
            assert "\n" not in said
            into.write()
    assert into.ids() == list(range(ROWS))
