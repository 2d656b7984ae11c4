"""`ottla pipeline` as a person types it: broker, files, and Spark where it is needed."""

from __future__ import annotations

import json
import signal
import time
import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from tests.pipelines.environment import serve
from tests.pipelines.jars import fetch_jars_once
from tests.pipelines.progress.runs import RUN
from tests.system.pipeline_commands import TEXT, WAIT_S, Running, ottla, produce

from ottla.pipelines.progress.commits import Delivered
from ottla.pipelines.progress.group import Group
from ottla.pipelines.progress.requests import find_request


@pytest.fixture(scope="module")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with serve(tmp_path_factory.mktemp("broker") / "data") as address:
        yield address


@pytest.fixture
def topic(bootstrap: str) -> str:
    name = f"numbers-{uuid.uuid4().hex[:8]}"
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(name, 2, 1)])[name].result(timeout=30)
    return name


@pytest.fixture
def file(bootstrap: str, topic: str, tmp_path: Path) -> Path:
    file = tmp_path / "numbers.toml"
    view = topic.replace("-", "_")
    file.write_text(TEXT.format(bootstrap=bootstrap, topic=topic, view=view))
    return file


def test_a_killed_run_is_silent_and_takes_no_request(
    bootstrap: str, topic: str, file: Path
) -> None:
    group = Group({"bootstrap.servers": bootstrap}, f"{topic}-delta")

    never = ottla("status", str(file))
    assert never.returncode == 1
    assert "has no state of a run" in never.stderr

    produce(bootstrap, topic, ["a"] * 3)
    delivered = Delivered("flights", "id-1", 7, {topic: {0: 1, 1: 0}}, "/lake/flights", 9)
    group.commit(delivered.commits(RUN))
    silent = ottla("status", str(file))
    assert silent.returncode == 1
    assert "last seen" in silent.stderr
    assert "silent" in silent.stdout
    asked = ottla("stop", str(file))
    assert asked.returncode == 1
    assert "numbers is not running: last seen" in asked.stderr
    assert find_request(group.companion("stop"), (topic, 0)) is None

    group.commit(delivered.commits(replace(RUN, state="stopped", by="anna@laptop")))
    stopped = ottla("status", str(file), "--json")
    assert stopped.returncode == 0
    assert '"lag_messages": 2' in stopped.stdout
    again = ottla("stop", str(file))
    assert again.returncode == 0
    assert "numbers is not running: stopped" in again.stdout


def test_a_run_that_does_not_answer_is_a_sentence(bootstrap: str, topic: str, file: Path) -> None:
    group = Group({"bootstrap.servers": bootstrap}, f"{topic}-delta")
    run = replace(RUN, seen_ms=int(time.time() * 1_000), every_s=3_600)
    group.commit(Delivered("flights", "id-1", 7, {topic: {0: 0, 1: 0}}).commits(run))

    done = ottla("stop", str(file), "--wait", "1")

    assert done.returncode == 1
    assert "numbers has not stopped within 1 s; the request stands" in done.stderr
    request = find_request(group.companion("stop"), (topic, 0))
    assert request is not None
    assert request.run == RUN.id
    assert "@" in request.by


@pytest.fixture
def running(file: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    fetch_jars_once(tmp_path_factory)
    started = Running(file, file.parent / "spark.log")
    yield started
    started.kill()


@pytest.mark.spark
@pytest.mark.timeout(600)
def test_a_pipeline_runs_shows_itself_and_is_stopped_from_elsewhere(
    bootstrap: str, topic: str, file: Path, running: Running
) -> None:
    produce(bootstrap, topic, ['{"n": 1}', '{"n": 2}', "no number"])
    running.wait_for_rows(3)

    status = ottla("status", str(file), "--json")
    assert status.returncode == 0, status.stderr
    (said,) = json.loads(status.stdout)
    assert (said["pipeline"], said["state"], said["rejected"]) == ("numbers", "running", 1)
    assert said["pid"] == running.process.pid
    assert (said["lag_messages"], said["table"]) == (0, str(file.parent / "lake/numbers"))

    stopped = ottla("stop", str(file), timeout=WAIT_S)
    assert stopped.returncode == 0, stopped.stderr
    assert stopped.stdout.startswith("numbers has stopped after ")
    assert running.wait() == 0
    last = running.lines()[-1]
    assert (last["state"], last["rejected"], last["lag_messages"]) == ("stopped", 1, 0)
    (said,) = json.loads(ottla("status", str(file), "--json").stdout)
    assert said["state"] == "stopped"
    assert "@" in said["by"]
    # What Spark writes is in its log; the screen has Ottla's own lines alone.
    errors = running.errors.read_text().splitlines()
    assert [line for line in errors if line.startswith("Starting Spark; its log is ")]
    assert not [line for line in errors if "WARN" in line or "Traceback" in line]
    assert (file.parent / "spark.log").stat().st_size > 0


@pytest.mark.spark
@pytest.mark.timeout(600)
def test_ctrl_c_stops_in_order(bootstrap: str, topic: str, file: Path, running: Running) -> None:
    produce(bootstrap, topic, ['{"n": 1}'])
    running.wait_for_rows(1)

    running.process.send_signal(signal.SIGINT)

    assert running.wait() == 130
    (said,) = json.loads(ottla("status", str(file), "--json").stdout)
    assert (said["state"], said["by"]) == ("stopped", "Ctrl-C")
    errors = running.errors.read_text()
    assert "Stopping the queries; again to end at once." in errors
    assert "Traceback" not in errors


def test_what_is_wrong_is_found_before_spark_starts(
    bootstrap: str, topic: str, file: Path, tmp_path: Path
) -> None:
    right = file.read_text()
    for wrong, said in (
        (right.replace(f'topic = "{topic}"', 'topic = "nubmers"'), "There is no topic 'nubmers'"),
        (right.replace(bootstrap, "127.0.0.1:1"), "cannot reach a broker at 127.0.0.1:1"),
    ):
        file.write_text(wrong)
        for command in ("run", "check"):
            done = ottla(command, str(file))
            assert done.returncode == 1
            assert said in done.stderr
            assert "Traceback" not in done.stderr
    file.write_text(right.replace("schema =", "shcema =").replace("1 second", "soon"))
    done = ottla("check", str(file))
    assert done.returncode == 2
    assert f"{file} has 2 problems." in done.stderr
    assert "source.shcema: there is no such field; did you mean 'schema'?" in done.stderr
    assert "delivery.trigger: 'soon' is not allowed" in done.stderr
    none = ottla("run", str(tmp_path / "nowhere.toml"))
    assert none.returncode == 2
    assert "cannot be read: no such file" in none.stderr


def test_a_schema_that_fits_nothing_stops_a_run_before_spark_starts(
    bootstrap: str, topic: str, file: Path
) -> None:
    produce(bootstrap, topic, ["one", "two", '{"n": 3}'])
    done = ottla("run", str(file))
    assert done.returncode == 3, done.stderr
    said = (
        "2 of the newest 3 records do not fit the schema: value is not a JSON object of the schema"
    )
    assert said in done.stdout
    assert "Spark" not in done.stderr
    (status,) = json.loads(ottla("status", str(file), "--json").stdout)
    assert status["state"] == "failed"
    assert status["failure"].startswith(said)


def test_check_without_spark(bootstrap: str, topic: str, file: Path) -> None:
    produce(bootstrap, topic, ['{"n": 1}', '{"n": 2}'])
    done = ottla("check", str(file), "--no-spark", "--json")
    assert done.returncode == 0, done.stderr
    assert done.stderr == "numbers: the newest 2 records fit the schema.\n"
    (said,) = json.loads(done.stdout)
    assert (said["topic"], said["partitions"], said["messages"]) == (topic, 2, 2)
    assert (said["group"], said["delivery"]) == (f"{topic}-delta", "exactly-once")
