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
from tests.system.engine_orders import PARTITIONS, Engine, Written, running, send_for

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


def asked(address: str, path: str) -> Any:
    """What a worker says; None while it cannot."""
    try:
        with urllib.request.urlopen(f"{address}/{path}", timeout=30) as answer:
            return json.load(answer)
    except (urllib.error.URLError, OSError):
        return None


def worker(jars: KafkaJars, folder: Path, bootstrap: str, port: int) -> Engine:
    lines = engine_page.program(PAGE, "properties").splitlines()
    settings = dict(line.split("=", 1) for line in lines if not line.startswith("#"))
    settings["bootstrap.servers"] = bootstrap
    settings["listeners"] = f"http://127.0.0.1:{port}"
    settings["plugin.path"] = str(kafka_connect.fetched_connectors())
    command = kafka_connect.worker_command(jars, folder / f"{port}.properties", settings)
    return Engine(command, folder / f"{port}.log")


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


def test_the_other_worker_takes_the_tasks_of_one_that_is_killed(
    jars: KafkaJars, tmp_path: Path
) -> None:
    lines, copy = Lines(tmp_path / "lines.txt"), tmp_path / "copy.txt"
    with running(1, tmp_path) as brokers:
        admin = AdminClient({"bootstrap.servers": brokers.bootstrap})
        admin.create_topics([NewTopic("lines", PARTITIONS, 1)])["lines"].result()
        workers = {
            f"127.0.0.1:{port}": worker(jars, tmp_path, brokers.bootstrap, port)
            for port in free_ports(2)
        }
        written = Written(brokers.bootstrap, "lines")
        first, second = workers
        lines.send(500)
        for one in workers.values():
            one.start()
        try:
            for name, settings in connectors(tmp_path).items():
                create = partial(configure, f"http://{first}", name, settings)
                workers[first].wait(f"the {name}", create)

            def places(by: str) -> dict[str, str]:
                """The worker of each connector's task that runs, as one of them says."""
                found = asked(f"http://{by}", "connectors?expand=status") or {}
                tasks = {name: one["status"]["tasks"] for name, one in found.items()}
                return {
                    name: of[0]["worker_id"]
                    for name, of in tasks.items()
                    if of and of[0]["state"] == "RUNNING"
                }

            def are_shared() -> bool:
                found = places(second)
                return found.keys() == {"source", "sink"} and len(set(found.values())) == 2

            def are_at(left: str) -> bool:
                return places(left) == {"source": left, "sink": left}

            def are_written(wanted: int) -> bool:
                return len(written.read()) >= wanted

            # Each worker has one of the two tasks. That of the source is lost, twice.
            for _ in range(2):
                workers[second].wait("a task for each", are_shared)
                lost = places(second)["source"]
                left = second if lost == first else first
                workers[lost].kill()
                send_for(lines)
                workers[left].wait("the tasks", partial(are_at, left))
                workers[left].wait("its lines", partial(are_written, len(lines.written)))
                workers[lost].start()
            workers[second].wait(
                "the copy", lambda: lines.copied(copy).keys() == set(lines.written)
            )
        finally:
            for one in workers.values():
                one.kill()
        assert sorted(written.read()) == lines.written
        written.close()
