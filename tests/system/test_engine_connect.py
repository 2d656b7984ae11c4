"""Kafka Connect's distributed worker, with a source and a sink: docs/engines/kafka-connect.md."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from components.apache_kafka import KafkaJars
from confluent_kafka.admin import AdminClient, NewTopic
from tests.system.engine_orders import PARTITIONS, Engine, Written, running

from components import engine_page, ivy, java, kafka_connect
from ottla.testing.ports import free_ports

pytestmark = [pytest.mark.full, pytest.mark.timeout(900)]

PAGE = "kafka-connect.md"


@pytest.fixture(scope="module")
def jars() -> KafkaJars:
    try:
        kafka_connect.fetched_connectors()
        return kafka_connect.fetched_jars()
    except (ivy.FetchError, java.NoJavaError) as error:
        pytest.skip(f"Kafka Connect could not be fetched: {error}")


class Lines:
    """A file to which lines are appended while a source reads it."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.written: list[int] = []
        file.touch()

    def send(self, count: int) -> None:
        first = len(self.written)
        added = range(first, first + count)
        with self.file.open("a") as lines:
            lines.writelines(f"{number}\n" for number in added)
        self.written += added

    def copied(self, copy: Path) -> Counter[int]:
        """Of whole lines; a line that is being written has no end yet."""
        if not copy.exists():
            return Counter()
        whole = copy.read_text().rpartition("\n")[0]
        return Counter(int(line) for line in whole.split())


def configure(address: str, name: str, settings: dict[str, str]) -> bool:
    """Creates a connector; False while the worker cannot yet."""
    request = urllib.request.Request(
        f"{address}/connectors/{name}/config",
        data=json.dumps(settings).encode(),
        headers={"Content-Type": "application/json"},
        method="PUT",
    )
    try:
        with urllib.request.urlopen(request, timeout=90):
            return True
    except urllib.error.HTTPError as error:
        # It answers so while it starts, or while its group rebalances.
        if error.code in (404, 409, 503):
            return False
        raise AssertionError(error.read().decode()) from error
    except (urllib.error.URLError, OSError):
        return False


def connectors(folder: Path) -> dict[str, dict[str, str]]:
    """The page's two connectors, with files in a folder."""
    source: dict[str, str] = json.loads(engine_page.program(PAGE, "json", "SourceConnector"))
    sink: dict[str, str] = json.loads(engine_page.program(PAGE, "json", "SinkConnector"))
    source["file"], sink["file"] = str(folder / "lines.txt"), str(folder / "copy.txt")
    return {"source": source, "sink": sink}


def worker(jars: KafkaJars, folder: Path, bootstrap: str, port: int) -> Engine:
    lines = engine_page.program(PAGE, "properties").splitlines()
    settings = dict(line.split("=", 1) for line in lines if not line.startswith("#"))
    settings["bootstrap.servers"] = bootstrap
    settings["listeners"] = f"http://127.0.0.1:{port}"
    settings["plugin.path"] = str(kafka_connect.fetched_connectors())
    command = kafka_connect.worker_command(jars, folder / "worker.properties", settings)
    return Engine(command, folder / "worker.log")


@pytest.mark.parametrize("count", [1, 3])
def test_lines_are_in_the_topic_once(jars: KafkaJars, tmp_path: Path, count: int) -> None:
    lines, copy = Lines(tmp_path / "lines.txt"), tmp_path / "copy.txt"
    (port,) = free_ports(1)
    with running(count, tmp_path) as brokers:
        admin = AdminClient({"bootstrap.servers": brokers.bootstrap})
        topic = NewTopic("lines", PARTITIONS, brokers.replicas)
        admin.create_topics([topic])["lines"].result()
        engine = worker(jars, tmp_path, brokers.bootstrap, port)
        written = Written(brokers.bootstrap, "lines")
        lines.send(500)
        engine.start()
        try:
            for name, settings in connectors(tmp_path).items():
                create: Callable[[], Any]
                create = partial(configure, f"http://127.0.0.1:{port}", name, settings)
                engine.wait(f"the {name}", create)
            engine.wait("the first lines", lambda: bool(written.read()))
            brokers.kill_one_of(engine, lines)
            engine.wait("all lines", lambda: len(written.read()) >= len(lines.written))
            engine.wait("the copy", lambda: lines.copied(copy).keys() == set(lines.written))
            lines.send(100)
            engine.wait("the last lines", lambda: len(written.read()) >= len(lines.written))
        finally:
            engine.kill()
        assert sorted(written.read()) == lines.written
        written.close()
