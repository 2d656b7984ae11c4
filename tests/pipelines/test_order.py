"""Duplicates, late rows, and the last row of each key; with topics produced out of order."""

from __future__ import annotations

import csv
import itertools
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from demo.flights import data_folder, read_flights
from pyspark.sql import functions as F  # noqa: N812

from ottla.pipelines import PipelineError, deduplicate, latest_by_key, to_delta, topic

pytestmark = pytest.mark.spark

ONCE = {"availableNow": True}


def test_a_join_of_two_topics_out_of_order_equals_the_batch_join(
    spark: Any,
    bootstrap: str,
    new_topic: Callable[..., str],
    produce: Callable[..., None],
    tmp_path: Path,
) -> None:
    """The first day's flights with the weather of their hour, each shuffled."""
    day = "2013-01-01"
    flights = [
        value
        for _, value in itertools.islice(read_flights(), 1_000)
        if json.loads(value)["time_hour"].startswith(day)
    ]
    with (data_folder() / "weather.csv").open() as file:
        weather = [
            json.dumps({"origin": row["origin"], "hour": row["time_hour"], "temp": row["temp"]})
            for row in csv.DictReader(file)
            if row["time_hour"].startswith(day)
        ]
    assert len(flights) > 500
    assert len(weather) > 50
    chosen = random.Random(7)
    names = []
    for rows in (flights, weather):
        names.append(new_topic(2))
        produce(names[-1], [(None, row) for row in chosen.sample(rows, len(rows))])

    def read(name: str, schema: str) -> Any:
        where: dict[str, Any] = {"bootstrap_servers": bootstrap, "max_rows": 300}
        return topic(spark, name, schema=schema, **where).select("value.*")

    flying = read(names[0], "carrier STRING, flight INT, origin STRING, time_hour TIMESTAMP")
    weather_at = read(names[1], "origin STRING, hour TIMESTAMP, temp STRING")
    joined = flying.withWatermark("time_hour", "2 days").join(
        weather_at.withWatermark("hour", "2 days"),
        (flying["origin"] == weather_at["origin"]) & (F.col("time_hour") == F.col("hour")),
    )
    columns = ("carrier", "flight", "time_hour", "temp")
    to_delta(
        joined.select(*columns), tmp_path / "t", checkpoint=tmp_path / "cp", trigger=ONCE
    ).awaitTermination()

    temperature = {(one["origin"], one["hour"]): one["temp"] for one in map(json.loads, weather)}
    expected = [
        (one["carrier"], one["flight"], temperature[one["origin"], one["time_hour"]])
        for one in map(json.loads, flights)
        if (one["origin"], one["time_hour"]) in temperature
    ]
    rows = spark.read.format("delta").load(str(tmp_path / "t")).collect()
    assert sorted((row["carrier"], row["flight"], row["temp"]) for row in rows) == sorted(expected)
    assert len(expected) > 400
    assert not Path(f"{tmp_path}/t_late").exists()


def test_the_last_row_of_each_key_of_a_batch_frame(spark: Any) -> None:
    schema = "id INT, word STRING, partition INT, offset BIGINT, tombstone BOOLEAN"
    rows = [
        (1, "a", 0, 0, False),
        (1, "b", 0, 2, False),
        (2, "c", 1, 0, False),
        (2, "", 1, 1, True),
    ]
    frame = spark.createDataFrame(rows, schema)

    assert [tuple(row) for row in latest_by_key(frame, "id").collect()] == [(1, "b", 0, 2)]
    assert deduplicate(frame, ["id"], within="1 hour", time="offset").count() == 2


def test_what_cannot_be_is_refused_in_one_line(spark: Any, bootstrap: str) -> None:
    stream = topic(spark, "t", bootstrap_servers=bootstrap, schema="id INT")
    cases: list[tuple[Callable[[], Any], str]] = [
        (lambda: latest_by_key(stream, "offset"), "frame is streaming: write it with to_delta"),
        (lambda: latest_by_key(spark.range(1), "id"), "needs the topic's columns partition"),
        (lambda: latest_by_key(spark.range(1), "idd"), "no column 'idd'; did you mean 'id'?"),
        (lambda: deduplicate(stream, [], within="1 hour"), "write the names of the key's"),
        (lambda: deduplicate(stream, "ofset", within="1 hour"), "did you mean 'offset'?"),
        (lambda: deduplicate(stream, "offset", within="soon"), "within='soon', time='timestamp'"),
        (lambda: deduplicate(stream, "offset", within="1 hour", time="offset"), "time='offset'"),
    ]
    for call, words in cases:
        with pytest.raises(PipelineError, match=words) as caught:
            call()
        assert "\n" not in str(caught.value)
