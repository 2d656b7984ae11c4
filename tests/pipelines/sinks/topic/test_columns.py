from typing import Any

import pytest

from ottla.pipelines import PipelineError
from ottla.pipelines.sinks.topic.columns import RecordColumns

pytestmark = pytest.mark.spark


def test_columns_become_bytes(spark: Any) -> None:
    frame = spark.createDataFrame(
        [(1, "ä", bytearray(b"\xff"), [("h", bytearray(b"1"))], None)],
        "id BIGINT, text STRING, raw BINARY, heads ARRAY<STRUCT<k: STRING, v: BINARY>>,"
        " none STRING",
    )

    def record(**columns: Any) -> tuple[Any, ...]:
        row = RecordColumns(**columns).records(frame).first()
        return tuple(None if one is None else bytes(one) for one in row[:2])

    assert record() == (
        None,
        '{"id":1,"text":"ä","raw":"/w==","heads":[{"k":"h","v":"MQ=="}]}'.encode(),
    )
    assert record(key="id", value="text") == (b"1", "ä".encode())
    assert record(key="none", value="raw") == (None, b"\xff")
    assert record(key="upper(text)", value="struct(id)") == ("Ä".encode(), b'{"id":1}')
    assert record(key=frame["id"] + 1, value="none") == (b"2", None)
    frame = spark.sql(
        "SELECT TIMESTAMP'2026-01-01 20:00:00.123456Z' AS at, "
        "array(TIMESTAMP_NTZ'2026-01-01 20:00:00.000007') AS plain"
    )
    plain = b'["2026-01-01T20:00:00.000007"]'
    assert record(key="plain") == (
        plain,
        b'{"at":"2026-01-01T20:00:00.123456Z","plain":' + plain + b"}",
    )
    frame = spark.createDataFrame(
        [("t", [("h", bytearray(b"1"))])],
        "text STRING, heads ARRAY<STRUCT<k: STRING, v: BINARY>>",
    )
    row = RecordColumns(headers="heads").records(frame).first()
    assert [(head["key"], bytes(head["value"])) for head in row["headers"]] == [("h", b"1")]
    with pytest.raises(
        PipelineError, match="key='idd' is no column of the frame: it has text, heads"
    ):
        record(key="idd")
    with pytest.raises(PipelineError, match="headers='text' is string: give an array<struct"):
        record(headers="text")
