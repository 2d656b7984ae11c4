"""One Spark session and one broker for the tests of a process."""

from __future__ import annotations

import sys
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.pipelines.environment import serve
from tests.pipelines.jars import fetch_jars_once, formats, iceberg


@pytest.fixture(scope="session", autouse=True)
def state_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Where the pipelines of this run keep traces and Spark's log, instead of the user's home."""
    folder = tmp_path_factory.mktemp("state")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OTTLA_STATE_DIR", str(folder))
        yield folder


@pytest.fixture(autouse=True)
def nothing_is_hidden(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """A failure is reported without its records rather than not at all, but never in a test."""
    from ottla.pipelines.run.supervisor import NOT_FOUND

    yield
    assert [text for text in caplog.messages if NOT_FOUND in text] == []


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A session as users get it; its warehouse and temporary files are the test's own."""
    from ottla.pipelines import session

    fetch_jars_once(tmp_path_factory)
    folder = tmp_path_factory.mktemp("spark")
    running = session(
        "tests",
        master="local[2]",
        formats=formats(),
        jars=iceberg(),
        conf={
            "spark.ui.enabled": False,
            "spark.ui.showConsoleProgress": False,
            # One session serves hundreds of tests: Spark keeps the plans of its last thousand
            # queries, which filled its gigabyte after half an hour. After that time, the
            # widest schema of test_plain.py filled two, which ended the JVM.
            "spark.driver.memory": "3g",
            "spark.sql.ui.retainedExecutions": 20,
            "spark.ui.retainedJobs": 50,
            "spark.ui.retainedStages": 50,
            "spark.databricks.delta.snapshotPartitions": 1,
            # Delta keeps the logs of 10,000 tables, with their snapshots, for an hour.
            "spark.databricks.delta.delta.log.cacheSize": 20,
            # Tests run each thing once: compiling it well takes longer than running it. With one
            # level of compilation Java keeps 48 MB of compiled code, which a file of tests fills;
            # then it compiles nothing more, and fails where it needs to. With the small heap that
            # Java begins with, a fifth of all time went into the collection of garbage.
            "spark.driver.extraJavaOptions": (
                "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC "
                "-Xms1g -Xmn600m -XX:MetaspaceSize=512m"
            ),
            "spark.sql.warehouse.dir": str(folder / "warehouse"),
            "spark.local.dir": str(folder / "local"),
        },
    )
    running.sparkContext.setLogLevel("ERROR")
    yield running
    running.stop()


@pytest.fixture(scope="session")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a broker; give topics and groups fresh names."""
    with serve(tmp_path_factory.mktemp("broker") / "data") as address:
        yield address


@pytest.fixture
def new_topic(bootstrap: str) -> Callable[..., str]:
    """Makes a topic of two partitions and returns its name."""
    from confluent_kafka.admin import AdminClient, NewTopic

    def make(partitions: int = 2) -> str:
        name = f"topic-{uuid.uuid4().hex[:8]}"
        # librdkafka writes what it drops at its end to stderr, which tests look at.
        admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 3})
        admin.create_topics([NewTopic(name, partitions, 1)])[name].result(timeout=30)
        return name

    return make


@pytest.fixture
def produce(bootstrap: str) -> Callable[..., None]:
    """Sends records, given as (key, value) or (key, value, headers), and waits for all."""
    from confluent_kafka import Producer

    def send(topic: str, records: list[tuple[Any, ...]], **where: int) -> None:
        producer = Producer({"bootstrap.servers": bootstrap})
        for key, value, *headers in records:
            producer.produce(topic, value, key, headers=headers[0] if headers else None, **where)
        assert producer.flush(30) == 0

    return send


@pytest.fixture
def without_packages() -> list[str]:
    """A Python that has Ottla's source and nothing that pip installed."""
    source = Path(__file__).parents[2] / "src"
    start = f"import sys; sys.path.insert(0, {str(source)!r})"
    return [sys.executable, "-S", "-c", start]


@pytest.fixture
def catalog(spark: Any, tmp_path: Path) -> str:
    """The name of a Hadoop catalog of Iceberg: its tables are folders, and its commits renames.

    Each test has its own: a session that has loaded one does not see that its folder is another.
    """
    if not iceberg():
        pytest.skip("no Iceberg for this Spark")
    name = f"lake_{uuid.uuid4().hex[:8]}"
    setting = f"spark.sql.catalog.{name}"
    spark.conf.set(setting, "org.apache.iceberg.spark.SparkCatalog")
    spark.conf.set(f"{setting}.type", "hadoop")
    spark.conf.set(f"{setting}.warehouse", str(tmp_path / "warehouse"))
    return name
