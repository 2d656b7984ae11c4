"""A warning for each run of a query that drops rejected rows; see test_topic for a real one."""

import logging
from typing import Any

import pytest

from ottla.pipelines.kafka.settings import read_settings
from ottla.pipelines.source.source import SOURCES, Source
from ottla.pipelines.source.watch import Watch


@pytest.fixture
def metric(monkeypatch: pytest.MonkeyPatch) -> str:
    from pyspark.sql.types import StringType

    source = Source("flights", read_settings("localhost:9092"), {"value": StringType()})
    monkeypatch.setitem(SOURCES, source.metric, source)
    return source.metric


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.message for record in caplog.records]


def test_each_run_is_warned_of_once(metric: str, caplog: Any) -> None:
    watch = Watch()
    with caplog.at_level(logging.WARNING, logger="ottla.pipelines"):
        watch.progressed("q", "run-1", "late", {metric: {"rejected": 0}})
        assert lines(caplog) == []
        watch.progressed("q", "run-1", "late", {metric: {"rejected": 2}})
        watch.progressed("q", "run-1", "late", {metric: {"rejected": 3}})
        watch.progressed("q", "run-2", None, {metric: {"rejected": 4}})
    assert [line.partition(" does not")[0] for line in lines(caplog)] == [
        "the topic flights has rows that do not parse: 2 in this batch. The query late",
        "the topic flights has rows that do not parse: 4 in this batch. The query q",
    ]


def test_fields_that_are_left_out_are_warned_of_once(metric: str, caplog: Any) -> None:
    watch = Watch()
    counts = {"rejected": 1, "unknown": 7, "unknown_first": "delay_min", "unknown_last": "x"}
    with caplog.at_level(logging.WARNING, logger="ottla.pipelines"):
        watch.progressed("q", "run-1", "late", {metric: counts | {"unknown": 0}})
        watch.progressed("q", "run-1", "late", {metric: counts})
        watch.progressed("q", "run-1", "late", {metric: counts})
    assert [line.partition(". ")[0] for line in lines(caplog)[1:]] == [
        "7 values of flights in this batch have fields that the schema lacks, such as delay_min"
    ]


def test_a_query_of_to_delta_keeps_its_rows(
    metric: str, caplog: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ottla.pipelines.running import QUERIES

    monkeypatch.setitem(QUERIES, "q", None)
    Watch().progressed("q", "run-1", "late", {metric: {"rejected": 2}, "users own": {"n": 1}})
    assert lines(caplog) == []
