"""A topic as a frame."""

from typing import Any

import pytest

from ottla.pipelines import PipelineError, rejected, topic
from ottla.pipelines.source import sources_of

pytestmark = pytest.mark.spark

NOWHERE = "localhost:9092"


def test_columns_are_what_a_user_expects(spark) -> None:
    frame = topic(spark, "flights", bootstrap_servers=NOWHERE, schema="id BIGINT, s STRING")

    assert frame.isStreaming
    assert frame.schema.simpleString() == (
        "struct<key:string,value:struct<id:bigint,s:string>,partition:int,offset:bigint,"
        "timestamp:timestamp,headers:array<struct<key:string,value:binary>>>"
    )


def test_a_schema_may_be_a_type_of_sparks(spark) -> None:
    from pyspark.sql.types import IntegerType, StructField, StructType

    frame = topic(
        spark,
        "flights",
        bootstrap_servers=["a:1", "b:2"],
        schema=StructType([StructField("id", IntegerType(), nullable=False)]),
        key_schema="binary",
        starting={0: 5, 1: 7},
    )

    assert frame.schema["key"].dataType.simpleString() == "binary"
    assert frame.schema["value"].dataType.simpleString() == "struct<id:int>"


def test_a_frames_sources_are_found_through_any_transformation(spark) -> None:
    one = topic(spark, "one", bootstrap_servers=NOWHERE, schema="id BIGINT")
    two = topic(spark, "two", bootstrap_servers=NOWHERE, schema="id BIGINT")
    names = spark.createDataFrame([(1, "a")], "id BIGINT, name STRING")
    joined = one.select("value.*").join(names, "id").where("id > 0")

    assert [source.name for source in sources_of(joined)] == ["one"]
    both = joined.select("id").union(two.select("value.id"))
    assert sorted(source.name for source in sources_of(both)) == ["one", "two"]


def test_bytes_cannot_fail_so_nothing_is_counted(spark) -> None:
    frame = topic(spark, "raw", bootstrap_servers=NOWHERE, schema="binary", key_schema="binary")
    assert sources_of(frame) == []


def test_rejected_rows_keep_their_bytes(spark) -> None:
    frame = rejected(spark, "flights", bootstrap_servers=NOWHERE, schema="id BIGINT")

    assert frame.columns == [
        "topic",
        "partition",
        "offset",
        "timestamp",
        "headers",
        "key",
        "value",
        "reason",
    ]
    assert frame.schema["value"].dataType.simpleString() == "binary"


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"name": "no spaces"}, "is no topic's name"),
        ({"bootstrap_servers": "localhost"}, "write host:port"),
        ({"starting": "yesterday"}, "write 'earliest', 'latest' or an offset"),
        ({"starting": {}}, "write 'earliest', 'latest' or an offset"),
    ],
)
def test_wrong_arguments_are_refused(spark, changed: dict[str, Any], words: str) -> None:
    arguments = {"name": "flights", "bootstrap_servers": NOWHERE} | changed
    with pytest.raises(PipelineError, match=words):
        topic(spark, **arguments)
