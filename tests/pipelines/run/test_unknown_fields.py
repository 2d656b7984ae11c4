"""Fields that the schema lacks are counted and named from the first batch on."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import pytest

from ottla.pipelines import to_delta, topic
from ottla.pipelines.kafka.settings import KafkaSettings
from ottla.pipelines.progress.status import read_status
from ottla.pipelines.run.unknown_fields import MAX_LOOKS, UnknownFieldsWatch
from ottla.pipelines.source.source import Source
from ottla.pipelines.unknown_fields import UnknownFields

WITHIN_S = 60
VALUES = [
    '{"id": 1, "n": {"x": 1}}',
    '{"id": 2, "delay_min": 7}',
    '{"id": 3, "n": {"y": 2}, "delay_min": 8}',
    '{"id": "four", "delay_min": 9}',
]


class Counted:
    """An execution that counted this, in a batch that is not read again."""

    def __init__(self, metric: str, first: str | None, last: str | None, rows: int = 1) -> None:
        self.row = {"unknown": rows, "unknown_first": first, "unknown_last": last}
        self.metric = metric

    def counted(self) -> dict[str, dict[str, Any]]:
        return {self.metric: self.row}

    def range_of(self, _topic: str) -> None:
        return None


class TestWatch:
    SOURCE: ClassVar = Source("t", KafkaSettings("localhost:9092"), {})

    def look(self, watch: UnknownFieldsWatch, *names: str | None, rows: int = 1) -> None:
        first, last = names
        counted: Any = Counted(self.SOURCE.metric, first, last, rows)
        watch.look([self.SOURCE], counted)

    def test_each_name_is_told_once(self, caplog: pytest.LogCaptureFixture) -> None:
        watch = UnknownFieldsWatch()
        with caplog.at_level(logging.WARNING, "ottla.pipelines"):
            self.look(watch, None, None, rows=0)
            assert (watch.found, caplog.messages) == ({}, [])
            self.look(watch, "a, n.x", "b")
            self.look(watch, "a", "b")
            self.look(watch, "a", "c")
        assert watch.found == {"t": UnknownFields("drop", ("a", "b", "n.x", "c"))}
        assert [text.partition(". ")[0] for text in caplog.messages] == [
            "1 values of t in this batch have fields that the schema lacks: a, b, n.x",
            "1 values of t in this batch have fields that the schema lacks: c",
        ]

    def test_names_have_a_limit(self) -> None:
        watch = UnknownFieldsWatch()
        for number in range(100):
            self.look(watch, f"f{number:03}", f"f{number:03}")
        assert len(watch.found["t"].names) == 20
        assert MAX_LOOKS < 20


def journey(name: str, bootstrap: str, offset: int, wanted: str, *options: str) -> str:
    """What `ottla journey` prints of a message, once the wanted words are in it."""
    command = [sys.executable, "-m", "ottla", "journey", name, "0", str(offset), *options]
    environment = os.environ | {"OTTLA_BOOTSTRAP": bootstrap, "COLUMNS": "200"}
    until = time.monotonic() + WITHIN_S
    while time.monotonic() < until:
        done = subprocess.run(
            command, capture_output=True, text=True, env=environment, timeout=WITHIN_S, check=True
        )
        if wanted in done.stdout:
            return done.stdout
    raise AssertionError(done.stdout)


@pytest.mark.spark
def test_what_is_dropped_is_counted_and_named_by_status_and_journey(
    spark: Any,
    bootstrap: str,
    new_topic: Callable[..., str],
    produce: Callable[..., None],
    tmp_path: Path,
) -> None:
    name = new_topic(1)
    produce(name, [(None, value) for value in VALUES])
    rows = topic(
        spark, name, bootstrap_servers=bootstrap, schema="id BIGINT, n STRUCT<x: INT>"
    ).select("value.*", "offset")
    to_delta(
        rows,
        tmp_path / "table",
        checkpoint=tmp_path / "checkpoint",
        trigger={"availableNow": True},
        group=f"{name}-delta",
    ).awaitTermination()

    journey(name, bootstrap, 2, "unknown fields dropped: delay_min, n.y; the schema lacks them")
    journey(name, bootstrap, 1, "unknown fields dropped: delay_min;")
    assert "unknown" not in journey(name, bootstrap, 0, "pipeline ")
    text = journey(name, bootstrap, 1, '"unknown_fields"', "--json")
    (one,) = json.loads(text)["delivered"]
    assert one["unknown_fields"] == {"did": "drop", "fields": ["delay_min"]}
    until = time.monotonic() + WITHIN_S
    while time.monotonic() < until:
        status = read_status({"bootstrap.servers": bootstrap}, f"{name}-delta", with_lag=False)
        assert status.metadata is not None
        assert status.metadata.run is not None
        if status.metadata.run.has_ended:
            break
    assert status.metadata is not None
    run = status.metadata.run
    assert run is not None
    assert (run.rejected, run.unknown, run.unknown_fields) == (1, 2, "delay_min, n.y")


@pytest.mark.spark
def test_unknown_fields_are_a_column_or_a_reason_in_a_delta_table(
    spark: Any,
    bootstrap: str,
    new_topic: Callable[..., str],
    produce: Callable[..., None],
    tmp_path: Path,
) -> None:
    name = new_topic(1)
    produce(name, [(None, value) for value in VALUES])
    for how in ("keep", "reject"):
        rows = topic(
            spark,
            name,
            bootstrap_servers=bootstrap,
            schema="id BIGINT, n STRUCT<x: INT>",
            unknown_fields=how,
        ).select("value.*", "offset")
        to_delta(
            rows,
            tmp_path / how,
            checkpoint=tmp_path / f"{how}-checkpoint",
            trigger={"availableNow": True},
            on_rejects="continue",
        ).awaitTermination()

    kept = spark.read.format("delta").load(str(tmp_path / "keep")).orderBy("offset").collect()
    assert [(row["id"], json.loads(row["_unknown"] or "null")) for row in kept] == [
        (1, None),
        (2, {"delay_min": 7}),
        (3, {"delay_min": 8, "n.y": 2}),
    ]
    left = spark.read.format("delta").load(str(tmp_path / "reject")).collect()
    assert [row["id"] for row in left] == [1]
    rejected = spark.read.format("delta").load(str(tmp_path / "reject_rejected"))
    assert [row["reason"] for row in rejected.orderBy("offset").collect()] == [
        "value has fields that are not in the schema: delay_min",
        "value has fields that are not in the schema: delay_min, n.y",
        "value.id is not a bigint: four",
    ]
