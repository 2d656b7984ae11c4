"""Records as rows: the same as Spark's Kafka source gives."""

from collections.abc import Callable
from typing import Any

import pytest

from ottla.pipelines.kafka.records import RangeReader
from ottla.pipelines.kafka.settings import KafkaSettings
from ottla.pipelines.rejects.pending import Part
from ottla.pipelines.rejects.read_again import read_range
from ottla.pipelines.source.raw import raw_frame

pytestmark = pytest.mark.spark

COLUMNS = ("key", "value", "topic", "partition", "offset", "timestamp", "headers")


def test_the_rows_are_those_of_the_source(
    spark: Any, bootstrap: str, new_topic: Callable[..., str], produce: Callable[..., None]
) -> None:
    name = new_topic(1)
    text = '"quoted" \\ text, \u00e9 and \U0001f600'.encode()
    produce(
        name,
        [
            (None, None),
            (b"", b""),
            (b"\x00\xff", text, [("h", b"\x01"), ("h", None), ("", b"")]),
            (b"k", bytes(range(256)) * 100),
        ],
    )
    kafka = KafkaSettings(bootstrap)
    with RangeReader(kafka) as reader:
        records = reader.read(name, {0: 0}, {0: 4})
    assert records is not None
    part = Part(name, "", {}, {0: 0}, {0: 4}, None)

    rows = raw_frame(spark, records).select(*COLUMNS)
    of_spark = read_range(spark, kafka, part).select(*COLUMNS)
    assert rows.orderBy("offset").collect() == of_spark.orderBy("offset").collect()
    assert rows.schema.simpleString() == of_spark.schema.simpleString()


def test_no_records_give_no_rows(spark: Any) -> None:
    assert raw_frame(spark, []).count() == 0
