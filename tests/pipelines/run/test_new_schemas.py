"""A schema that is registered while a query runs."""

import functools
import io
import logging
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from components.registry_server import run_registry
from fastavro import parse_schema, schemaless_writer
from tests.pipelines.jars import formats

from ottla.pipelines import PipelineError, to_delta, topic
from ottla.registry.framing import head

pytestmark = [
    pytest.mark.spark,
    pytest.mark.full,
    pytest.mark.skipif(not formats(), reason="no spark-avro for this Spark"),
]

OLD: Any = {"type": "record", "name": "F", "fields": [{"name": "id", "type": "int"}]}
NEW: Any = OLD | {
    "fields": [*OLD["fields"], {"name": "dest", "type": ["null", "string"], "default": None}]
}


def avro(schema_id: int, schema: Any, value: Any) -> bytes:
    out = io.BytesIO()
    schemaless_writer(out, parse_schema(schema), value)
    return head(schema_id) + out.getvalue()


def rows(spark: Any, table: Any) -> list[tuple[Any, ...]]:
    return sorted(map(tuple, spark.read.format("delta").load(str(table)).collect()))


@pytest.mark.parametrize("delivery", ["exactly-once", "at-most-once"])
def test_a_new_schema_is_planned_and_its_column_added(
    spark: Any,
    bootstrap: str,
    new_topic: Callable[..., str],
    produce: Callable[..., None],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    delivery: str,
) -> None:
    caplog.set_level(logging.WARNING, "ottla.pipelines")
    name = new_topic(1)
    table = tmp_path / "table"
    with run_registry() as registry:
        old = registry.register(f"{name}-value", OLD)
        produce(name, [(None, avro(old, OLD, {"id": 1})), (None, b"no frame")])

        def frame() -> Any:
            rows = topic(spark, name, bootstrap_servers=bootstrap, registry=registry.url)
            return rows.select("value.*")

        place: Any = {"checkpoint": tmp_path / "checkpoint", "delivery": delivery}
        query: Any = to_delta(frame, table, schema_changes="add", **place)
        try:
            query.processAllAvailable()
            assert rows(spark, table) == [(1,)]
            new = registry.register(f"{name}-value", NEW)
            produce(
                name,
                [
                    (None, avro(new, NEW, {"id": 2, "dest": "HNL"})),
                    (None, head(4711) + b"data"),
                    (None, avro(old, OLD, {"id": 3})),
                ],
            )
            query.processAllAvailable()
        finally:
            query.stop()

    found = spark.read.format("delta").load(str(table)).orderBy("id")
    assert [tuple(row) for row in found.collect()] == [(1, None), (2, "HNL"), (3, None)]
    rejected = spark.read.format("delta").load(f"{table}_rejected").orderBy("offset")
    assert [(row["offset"], row["reason"]) for row in rejected.collect()] == [
        (1, "value has no schema id: it does not begin with the byte 0 and the 4 bytes of an id"),
        (3, "value has the schema id 4711, which is not in the schema registry"),
    ]
    assert f"The table {table} gets the column dest (string)" in caplog.text
    assert "has data of a schema that the plan does not know. Trying again" in caplog.text


def test_a_frame_cannot_be_planned_again(
    spark: Any,
    bootstrap: str,
    new_topic: Callable[..., str],
    produce: Callable[..., None],
    tmp_path: Path,
) -> None:
    name = new_topic(1)
    with run_registry() as registry:
        registry.register(f"{name}-value", OLD)
        frame = topic(spark, name, bootstrap_servers=bootstrap, registry=registry.url)
        new = registry.register(f"{name}-value", NEW)
        produce(name, [(None, avro(new, NEW, {"id": 2, "dest": "HNL"}))])
        start = functools.partial(
            to_delta, target=tmp_path / "table", checkpoint=tmp_path / "checkpoint",
            trigger={"availableNow": True},
        )  # fmt: skip
        with pytest.raises(PipelineError, match=f"{name}: value has the schema id {new}, which"):
            start(frame.select("value.*")).awaitTermination()
        again = topic(spark, name, bootstrap_servers=bootstrap, registry=registry.url)
        with pytest.raises(PipelineError, match=r"dest \(string\)"):
            start(again.select("value.*"))
        start(again.select("value.id")).awaitTermination()

    assert rows(spark, tmp_path / "table") == [(2,)]


def test_a_registry_that_is_away_is_one_sentence(spark: Any, bootstrap: str) -> None:
    away = {"url": "http://127.0.0.1:1", "max.retries": 1, "retries.wait.ms": 1}
    with pytest.raises(PipelineError, match=r"http://127.0.0.1:1 does not answer"):
        topic(spark, "flights", bootstrap_servers=bootstrap, registry=away)


def test_the_guides_example_runs(
    spark: Any,
    bootstrap: str,
    new_topic: Callable[..., str],
    produce: Callable[..., None],
    tmp_path: Path,
) -> None:
    guide = (Path(__file__).parents[3] / "docs" / "pipeline-sources.md").read_text()
    section = guide[guide.index("## A schema registry") : guide.index("## Secured Kafka")]
    (example,) = re.findall(r"```py\n(.*?)```", section, re.DOTALL)
    name = new_topic(1)
    with run_registry() as registry:
        known = registry.register(f"{name}-value", NEW)
        produce(name, [(None, avro(known, NEW, {"id": 1, "dest": "HNL"}))])
        for old, new in (
            ("localhost:9092", bootstrap),
            ("http://localhost:8081", registry.url),
            ('        "flights",\n', f'        "{name}",\n'),
            ('"./', f'"{tmp_path}/'),
        ):
            assert old in example
            example = example.replace(old, new)
        exec(compile(example, "docs/pipeline-sources.md", "exec"), {})

    assert rows(spark, tmp_path / "lake" / "flights") == [(1, "HNL", 0, 0)]
