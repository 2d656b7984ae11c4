"""A topic as a frame."""

from typing import Any

import pytest

from ottla.pipelines import PipelineError, rejected, topic

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
        ({"starting": "yesterday"}, "write 'earliest', 'latest', 'table', a datetime"),
        ({"starting": {}}, "write 'earliest', 'latest', 'table', a datetime"),
    ],
)
def test_wrong_arguments_are_refused(spark, changed: dict[str, Any], words: str) -> None:
    arguments = {"name": "flights", "bootstrap_servers": NOWHERE} | changed
    with pytest.raises(PipelineError, match=words):
        topic(spark, **arguments)
