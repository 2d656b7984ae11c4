"""Queries that read one topic several times."""

from dataclasses import replace

import pytest
from pyspark.sql.types import LongType

from ottla.pipelines.errors import PipelineError
from ottla.pipelines.kafka.settings import read_settings
from ottla.pipelines.run.topic_twice import check_rejected, check_start
from ottla.pipelines.source.source import Source

ONE = Source("t", read_settings("b:9092"), {"value": LongType()})
OTHER = replace(ONE, starting="latest")


def test_rejected_rows_of_two_reads_are_not_told_apart() -> None:
    check_rejected([ONE, replace(OTHER, name="u")])
    check_rejected([ONE, ONE])  # a join of a frame with itself
    check_rejected([replace(ONE, rejects="keep"), replace(OTHER, rejects="keep")])
    with pytest.raises(PipelineError, match="reads topic 't' by several calls of topic") as told:
        check_rejected([ONE, replace(OTHER, rejects="keep")])
    assert "or write rejects='keep'" in str(told.value)


def test_two_reads_do_not_continue_at_one_offset() -> None:
    check_start([ONE, replace(ONE, name="u")], "on_lost='skip'")
    with pytest.raises(
        PipelineError, match="skip' cannot be used here: the frame reads topic 't'"
    ) as told:
        check_start([ONE, ONE], "on_lost='skip'")
    assert "only one offset of each partition is known" in str(told.value)
