"""Byte arrays from the JVM to Python's workers."""

from typing import Any

import pytest

from ottla.pipelines.spark.jvm.byte_rows import bytes_of

pytestmark = pytest.mark.spark


def test_the_byte_arrays_of_each_row_in_turn(spark: Any) -> None:
    pairs = spark.createDataFrame(
        [(b"k1", (b"v1", b"h1")), (None, (b"v2", None))],
        "_1 BINARY, _2 STRUCT<_1: BINARY, _2: BINARY>",
    ).coalesce(1)
    assert bytes_of(pairs).collect() == [b"k1", b"v1", b"h1", None, b"v2", None]
