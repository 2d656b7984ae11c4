"""Reading data in a schema registry's framing: one frame of many rows for each format."""

import io
import json
from typing import Any

import pytest
from components.registry_server import run_registry
from fastavro import parse_schema, schemaless_writer
from tests.pipelines.jars import formats

from ottla.pipelines.errors import PipelineError
from ottla.pipelines.failures.marks import CONFLICT, UNKNOWN_ID
from ottla.pipelines.registry.framed import Framed
from ottla.pipelines.registry.settings import RegistrySettings
from ottla.pipelines.source.parse import REASON, parse, read_schema, take_parsed
from ottla.pipelines.source.registry_schema import framed_schema, note_met
from ottla.registry.framing import head

pytestmark = pytest.mark.spark

needs_avro = pytest.mark.skipif(not formats(), reason="no spark-avro for this Spark")


def record(*fields: Any) -> dict[str, Any]:
    return {
        "type": "record",
        "name": "Flight",
        "namespace": "air",
        "fields": [dict(zip(("name", "type", "default"), one, strict=False)) for one in fields],
    }


OLD = record(("id", "int"), ("at", {"type": "long", "logicalType": "timestamp-millis"}))
NEW = record(
    ("id", "long"),
    ("at", {"type": "long", "logicalType": "timestamp-millis"}),
    ("dest", ["null", "string"], None),
)


def avro(schema: Any, value: Any) -> bytes:
    out = io.BytesIO()
    schemaless_writer(out, parse_schema(schema), value)
    return out.getvalue()


def rows(
    spark: Any, value: Framed, values: list[bytes | None], key: Any = None, *, names: bool = True
) -> list[tuple[Any, str | None]]:
    """Parse records; gives (value, reason) of each."""
    from pyspark.sql import functions as F  # noqa: N812

    schemas = {"key": read_schema(key, "key_schema"), "value": value}
    numbered = [(number, None, data) for number, data in enumerate(values)]
    raw = spark.createDataFrame(numbered, "number int, key binary, value binary")
    frame = parse(raw.coalesce(1), schemas, name_fields=names)
    # What has a reason is left out, as in a pipeline: Python cannot hold a time of the year 11476.
    parsed = [
        F.when(F.col(REASON).isNull(), column).alias(name)
        for column, name in zip(take_parsed(schemas), schemas, strict=True)
    ]
    found = frame.select("number", *parsed, REASON).orderBy("number")
    return [
        (row["value"].asDict(recursive=True) if row["value"] else None, row[REASON])
        for row in found.collect()
    ]


@needs_avro
def test_avro_of_several_schemas_is_read_as_the_latest(spark: Any) -> None:
    with run_registry() as registry:
        other = registry.register("other-value", record(("id", "string")))
        old = registry.register("f-value", OLD)
        new = registry.register("f-value", NEW)
        settings = RegistrySettings(registry.url)
        note_met(settings, [4711, other])
        framed = framed_schema(spark, settings, "f", "value", "registry")
    good = {"id": 7, "at": 0, "dest": "HNL"}
    parsed = rows(
        spark,
        framed,
        [
            head(old) + avro(OLD, {"id": 7, "at": 0}),
            head(new) + avro(NEW, good),
            None,
            b'{"id": 7}',
            head(4711) + b"data",
            head(new) + avro(NEW, good)[:-1],
            head(new) + avro(NEW, good) + b"more",
            head(old),
            head(new) + avro(NEW, good | {"at": 300_000_000_000_000}),
        ],
    )

    assert parsed[0][0] is not None
    assert [parsed[0][0]["id"], parsed[0][0]["dest"], parsed[0][1]] == [7, None, None]
    assert parsed[1][0] is not None
    assert parsed[1][0]["dest"] == "HNL"
    assert [reason for _, reason in parsed[1:]] == [
        None,
        None,
        "value has no schema id: it does not begin with the byte 0 and the 4 bytes of an id",
        "value has the schema id 4711, which is not in the schema registry",
        *["value is not Avro data of the schema that its id names"] * 3,
        "value.at is outside of the years 1 to 9999: a number is seconds since 1970, not "
        "milliseconds",
    ]
    for schema_id, words in (
        (9_999, f"{UNKNOWN_ID}: value has the schema id 9999"),
        (other, f"{CONFLICT}: value: version 2 of f-value .* cannot read data of schema {other}: "),
    ):
        with pytest.raises(Exception, match=words):
            rows(spark, framed, [head(schema_id) + b"data"])


@pytest.mark.full
@needs_avro
def test_a_plan_that_was_kept_reads_the_same(spark: Any) -> None:
    from ottla.pipelines.rejects.read_again import read_schemas

    with run_registry() as registry:
        known = registry.register("g-key", '"string"')
        settings = RegistrySettings(registry.url)
        framed = framed_schema(spark, settings, "g", "key", "registry")
    kept = read_schemas(json.loads(json.dumps({"key": framed.jsonValue(), "value": "binary"})))
    raw = spark.createDataFrame(
        [(head(known) + avro("string", "N1"), b"")], "key binary, value binary"
    )

    frame = parse(raw, kept)

    assert frame.select(*take_parsed(kept)).first()["key"] == "N1"


def test_json_after_its_framing_is_read_as_json(spark: Any) -> None:
    old = {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]}
    new = old | {"properties": {"id": {"type": "integer"}, "n": {"type": "number"}}}
    with run_registry() as registry:
        first = registry.register("f-value", old, "JSON")
        last = registry.register("f-value", new, "JSON")
        framed = framed_schema(spark, RegistrySettings(registry.url), "f", "value", "registry")
    parsed = rows(
        spark,
        framed,
        [
            head(first) + b'{"id": 1}',
            head(last) + b'{"id": 2, "n": 0.5}',
            None,
            head(last) + b'{"id": "one"}',
            head(last) + b'{"n": 1}',
            head(last) + b'{"id": 1} more',
            head(last) + b"",
            b'{"id": 3}',
        ],
    )

    assert [value for value, _ in parsed[:3]] == [{"id": 1, "n": None}, {"id": 2, "n": 0.5}, None]
    assert [reason for _, reason in parsed] == [
        None,
        None,
        None,
        "value.id is not a bigint: one",
        "value lacks the field id, which is NOT NULL",
        "value has more text after its JSON object",
        "value is not a JSON object of the schema",
        "value has no schema id: it does not begin with the byte 0 and the 4 bytes of an id",
    ]
    with pytest.raises(Exception, match=f"{UNKNOWN_ID}: value has the schema id 9999"):
        rows(spark, framed, [head(9_999) + b"{}"])


@pytest.mark.full
def test_framed_data_without_a_registry_names_the_framing(spark: Any) -> None:
    schemas = {"key": read_schema("bigint", "key_schema"), "value": read_schema("a INT", "schema")}
    raw = spark.createDataFrame(
        [(None, head(7) + b'{"a": 1}'), (head(8) + b"N1", b'{"a": 1}')], "key binary, value binary"
    )
    frame = parse(raw.coalesce(1), schemas, name_fields=True)

    assert [row[0] for row in frame.select(REASON).collect()] == [
        "value begins with the framing of a schema registry (schema id 7): read it with "
        "topic(..., registry='http://...', schema='registry')",
        "key begins with the framing of a schema registry (schema id 8): read it with "
        "topic(..., registry='http://...', key_schema='registry')",
    ]


def test_a_schema_word_needs_a_registry(spark: Any) -> None:
    from ottla.pipelines import topic

    with pytest.raises(PipelineError, match="key_schema='registry' needs the registry"):
        topic(spark, "f", bootstrap_servers="localhost:9092", key_schema="registry")
