"""The order in which a start does its steps, what a failure undoes, and a query's name."""

from __future__ import annotations

import gc
import json
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ottla.pipelines import to_delta, topic
from ottla.pipelines.checkpoint.identity import FILE, IDENTITY_DOCUMENT, Identity, Replacing
from ottla.pipelines.errors import PipelineError
from ottla.pipelines.kafka.settings import read_settings
from ottla.pipelines.run import begin as module
from ottla.pipelines.run.begin import (
    keeping,
    prepare_checkpoint,
    report,
    stream_writer,
    topic_ids_now,
)
from ottla.pipelines.running import QUERIES
from ottla.pipelines.source.source import Source
from ottla.pipelines.target.expectations import Expectations
from ottla.pipelines.target.port import Capabilities

KAFKA = read_settings("b:9092")
SINK = SimpleNamespace(
    short_name="/lake/late-flights",
    constrained=lambda frame: frame,
    capabilities=Capabilities(keeps_rejects=False),
)
RUNNER: Any = SimpleNamespace(query_id=lambda: "", sink=SINK)


class Writer:
    """Spark's DataStreamWriter."""

    def __init__(self) -> None:
        self.given: dict[str, Any] = {}

    def foreachBatch(self, write: Any) -> Writer:  # noqa: N802 - Spark's name
        self.given["write"] = write
        return self

    def option(self, name: str, value: str) -> Writer:
        self.given[name] = value
        return self

    def queryName(self, name: str) -> Writer:  # noqa: N802
        self.given["name"] = name
        return self


class World:
    """A checked plan, and the steps that were done, in their order."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.steps: list[Any] = []
        self.active: list[Any] = []
        self.id = "query-1"
        self.position = ("query-1", 3, 2)
        spark = SimpleNamespace(streams=self)
        files = SimpleNamespace(
            location="file:/lake/cp",
            write=lambda name, text: self.steps.append(("write", name, text)),
            delete=lambda name: self.steps.append(("delete", name)),
        )
        self.specification = SimpleNamespace(
            frame=SimpleNamespace(sparkSession=spark, writeStream=Writer()),
            checkpoint="cp",
            name=None,
            group=None,
            trigger=None,
            ends_by_itself=True,
            mode="append",
            expectations=Expectations(()),
        )
        self.checked: Any = SimpleNamespace(
            specification=self.specification,
            checkpoint=SimpleNamespace(
                files=files,
                query_id=lambda: self.id,
                position=lambda: self.position,
                replace=lambda number: self.steps.append(("replace", number)),
            ),
            sources=((0, Source("t", KAFKA, {})), (2, Source("u", KAFKA, {}))),
            position=self.position,
            starting=None,
            replacing=None,
            due=(),
            identity=Identity("cluster", {}, "", "", "exactly-once"),
        )
        self.lost: list[str] = []
        self.query: Any = SimpleNamespace(id="query-2", isActive=True, fail=self.lost.append)
        monkeypatch.setattr(module, "Lease", lambda files: self)
        monkeypatch.setattr(
            module,
            "write_initial_offsets",
            lambda spark, place, number, first: self.steps.append((place, number, first)),
        )
        monkeypatch.setattr(
            module, "report_query", lambda spark, query, **how: self.steps.append(how)
        )

    def acquire(self) -> None:
        self.steps.append("acquire")

    def keep(self, is_active: Any, lost: Any) -> None:
        assert is_active() is True
        self.lose, self.is_kept = lost, is_active
        self.steps.append("keep")

    def check_kept(self) -> None: ...

    def release(self) -> None:
        self.steps.append("release")

    def start(self) -> None:
        """As `start` does, without a runner."""
        with keeping(self.checked) as kept:
            assert kept.check == self.check_kept
            self.steps.append("start")
        kept.started(self.query)


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    before = dict(QUERIES)
    yield World(monkeypatch)
    QUERIES.clear()
    QUERIES.update(before)


def test_a_checkpoint_that_another_run_used_meanwhile_is_checked_again(world: World) -> None:
    world.position = ("query-1", 4, 4)
    with pytest.raises(PipelineError, match="Another run has written to the checkpoint cp while"):
        world.start()
    assert world.steps == ["acquire", "keep", "release"]


def test_a_query_starts_while_it_has_the_checkpoint(world: World) -> None:
    world.start()
    assert world.steps == ["acquire", "keep", "start"]


def test_a_query_that_has_started_is_known(world: World) -> None:
    report(world.checked, None, RUNNER, world.query)
    assert QUERIES["query-2"] is RUNNER
    assert world.steps == []


def test_with_a_group_it_is_reported(world: World) -> None:
    world.specification.group = "g"
    run: Any = object()
    report(world.checked, run, RUNNER, world.query)
    assert world.steps == [
        {
            "group": "g",
            "settings": KAFKA.for_librdkafka(),
            "ends_by_itself": True,
            "run": run,
        }
    ]


def test_a_start_that_fails_gives_the_checkpoint_back(world: World) -> None:
    with pytest.raises(KeyboardInterrupt), keeping(world.checked):
        raise KeyboardInterrupt
    assert world.steps == ["acquire", "keep", "release"]


def test_a_start_that_loses_the_checkpoint_ends_its_query(world: World) -> None:
    with keeping(world.checked) as kept:
        world.lose("another run took it")
        assert world.lost == []  # there is no query yet
    kept.started(world.query)
    assert world.lost == ["another run took it"]
    world.query.isActive = False
    assert world.is_kept() is False


def test_a_query_that_loses_the_checkpoint_ends(world: World) -> None:
    world.start()
    world.lose("another run took it")
    assert world.lost == ["another run took it"]


def test_a_second_query_of_the_session_on_one_checkpoint(world: World) -> None:
    """Spark would stop the first one silently."""
    world.active = [SimpleNamespace(id="query-1", name=None)]
    with pytest.raises(PipelineError, match="runs on the checkpoint cp already"):
        world.start()
    assert world.steps == []


def test_a_move_is_noted_before_it_begins(world: World) -> None:
    starting = {"t": {0: 5}, "u": {0: 7, 1: 8}}
    world.checked.replacing, world.checked.starting = Replacing(4, starting), starting
    identity = Identity("cluster", {}, "", "", "exactly-once", replacing=Replacing(4, starting))
    world.checked.identity = identity
    prepare_checkpoint(world.checked)
    assert world.steps == [
        ("write", FILE, IDENTITY_DOCUMENT.text(identity)),
        ("replace", 4),
        ("delete", "sources"),
        ("file:/lake/cp", 0, {"t": {0: 5}}),
        ("file:/lake/cp", 2, {"u": {0: 7, 1: 8}}),
        ("write", FILE, IDENTITY_DOCUMENT.text(replace(identity, replacing=None))),
    ]


def test_a_query_that_continues_needs_no_room(world: World) -> None:
    prepare_checkpoint(world.checked)
    assert world.steps == [("write", FILE, IDENTITY_DOCUMENT.text(world.checked.identity))]


@pytest.mark.parametrize(
    ("given", "taken", "group", "name", "is_named"),
    [
        (None, [], None, "_lake_late_flights", True),
        ("late flights", [], "g-1", "late flights", True),
        ("late", ["late"], "g-1", "g_1", True),
        (None, [], "g-1", "_lake_late_flights", True),
        (None, ["_lake_late_flights"], "g-1", "g_1", True),
        (None, ["_lake_late_flights"], None, "_lake_late_flights", False),
        (None, ["_lake_late_flights", "g_1"], "g-1", "g_1", False),
    ],
)
def test_the_name_of_a_query(
    world: World,
    given: str | None,
    taken: list[str],
    group: str | None,
    name: str,
    is_named: bool,
) -> None:
    """Spark refuses a name that another query of the session has."""
    world.active = [SimpleNamespace(id=each, name=each) for each in taken]
    world.specification.name, world.specification.group = given, group
    writer, *named = stream_writer(world.checked, world.specification.frame, RUNNER, print)
    assert named == [name, name if is_named else ""]
    expected = {"write": print, "checkpointLocation": "file:/lake/cp"}
    assert writer.given == (expected | {"name": name} if is_named else expected)


def test_a_former_runs_id(world: World) -> None:
    runner: Any = SimpleNamespace(query_id=lambda: "query-1", sink=SINK)
    stream_writer(world.checked, world.specification.frame, runner, print)
    assert QUERIES["query-1"] is runner, "its listeners ask for it while it starts"


def test_the_ids_of_all_topics_now() -> None:
    other = read_settings("elsewhere:9092")
    brokers: Any = {
        KAFKA: SimpleNamespace(topic_ids=lambda names: {name: f"{name} here" for name in names}),
        other: SimpleNamespace(topic_ids=lambda names: {name: f"{name} there" for name in names}),
    }
    clients: Any = SimpleNamespace(of=brokers.__getitem__)
    ask = topic_ids_now(iter([Source("t", KAFKA, {}), Source("u", other, {})]), clients)
    assert ask() == ask() == {"t": "t here", "u": "u there"}


WITHIN_S = 20
SETTLED_FILES = 4
"""Connections of Py4J, which it opens for threads and keeps for the next one."""


def run_once(spark: Any, bootstrap: str, name: str, folder: Path) -> None:
    frame = topic(spark, name, bootstrap_servers=bootstrap, schema="id BIGINT")
    query = to_delta(
        frame.select("value.*", "partition", "offset"),
        folder / "table",
        checkpoint=folder / "checkpoint",
        trigger={"availableNow": True},
        group=f"{name}-delta",
    )
    query.awaitTermination()


def open_files() -> dict[str, str]:
    gc.collect()
    found = {}
    for number in os.listdir("/proc/self/fd"):
        try:
            found[number] = os.readlink(f"/proc/self/fd/{number}")
        except FileNotFoundError:
            continue  # the folder itself, as it was listed
    return found


@pytest.mark.spark
def test_a_query_that_has_ended_leaves_no_open_file_and_no_listener(
    spark: Any,
    bootstrap: str,
    new_topic: Callable[..., str],
    produce: Callable[..., None],
    tmp_path: Path,
) -> None:
    if not Path("/proc/self/fd").is_dir():
        pytest.skip("the system does not list a process's open files")
    name = new_topic(1)
    listeners = spark._jsparkSession.streams().listListeners
    produce(name, [("k", json.dumps({"id": 0}))])
    run_once(spark, bootstrap, name, tmp_path)  # what the process opens once and keeps
    before, known = open_files(), len(listeners())
    for number in range(1, 4):
        produce(name, [("k", json.dumps({"id": number}))])
        run_once(spark, bootstrap, name, tmp_path)
    until = time.monotonic() + WITHIN_S
    while time.monotonic() < until:
        after, listening = open_files(), len(listeners())
        if len(after) <= len(before) + SETTLED_FILES and listening <= known:
            break
        time.sleep(0.2)
    new = sorted(after[number] for number in set(after) - set(before))
    assert (listening <= known, len(after) <= len(before) + SETTLED_FILES) == (True, True), (
        f"{known} listeners, then {listening}; {len(before)} open files, then {len(after)}: {new}"
    )
