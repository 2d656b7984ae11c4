"""Texts are taken while Spark computes the rest of them."""

from __future__ import annotations

import contextlib
import socket
import threading
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from ottla.pipelines.spark.jvm import arrow_stream
from ottla.pipelines.spark.jvm.arrow_stream import streamed
from ottla.pipelines.spark.jvm.attributes import java_class

pytestmark = pytest.mark.spark
FAILURES = (Py4JJavaError, PySparkException)


def lines(spark: Any, count: int, partitions: int = 2) -> Any:
    return spark.range(0, count, 1, partitions).selectExpr("concat(id, '\n') AS line")


def taken(spark: Any, frame: Any) -> list[int]:
    stream = java_class(spark, "java.io.ByteArrayOutputStream")()
    rows = 0
    for chunk in streamed(frame):
        chunk.buffer.getBytes(0, stream, int(chunk.buffer.readableBytes()))
        rows += chunk.rows
    assert rows == bytes(stream.toByteArray()).count(b"\n")
    return [int(line) for line in bytes(stream.toByteArray()).split()]


@pytest.mark.parametrize("count", [0, 3, 21_000])
def test_each_text_is_taken_once_and_those_of_a_partition_in_order(spark: Any, count: int) -> None:
    found = taken(spark, lines(spark, count, 3))
    assert sorted(found) == list(range(count))
    for part in range(3):
        own = [number for number in found if number * 3 // max(count, 1) == part]
        assert own == sorted(own)


def test_texts_are_taken_before_the_last_one_is_computed(spark: Any) -> None:
    """Of a partition whose last row fails, the first rows are there."""
    long = lines(spark, 40_000, 1).selectExpr("concat(repeat('x', 200), line) AS line")
    failing = long.selectExpr("if(endswith(line, 'x39999\n'), raise_error('no'), line) AS line")
    texts = streamed(failing)
    assert next(texts).buffer.readableBytes() > 0
    with pytest.raises(FAILURES, match="no"):
        list(texts)


def test_a_failure_of_the_job_is_raised(spark: Any) -> None:
    failing = lines(spark, 20_000).selectExpr(
        "if(line = '19999\n', raise_error('no'), line) AS line"
    )
    with pytest.raises(FAILURES, match="no"):
        taken(spark, failing)


def test_who_takes_no_more_ends_the_job(spark: Any) -> None:
    texts = streamed(lines(spark, 1_000_000))
    next(texts)
    texts.close()
    names = [one.name for one in threading.enumerate()]
    assert [name for name in names if name.startswith("ottla-texts")] == []


def test_a_program_without_the_token_hands_in_nothing(
    spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    sender = arrow_stream._Server.sender
    strangers = []

    def known(server: Any) -> Any:
        port = int(server._java.getLocalPort())
        for words in (b"", b"x" * 100):
            stranger = socket.create_connection(("127.0.0.1", port))
            stranger.sendall(words)
            # It is refused as soon as it has sent 32 bytes, which may be before this.
            with contextlib.suppress(OSError):
                stranger.shutdown(socket.SHUT_WR)
            strangers.append(stranger)
        return sender(server)

    monkeypatch.setattr(arrow_stream._Server, "sender", known)
    assert sorted(taken(spark, lines(spark, 100))) == list(range(100))
    assert len(strangers) == 2
    for stranger in strangers:
        stranger.close()
