"""A query of which each call goes to the run of now."""

from typing import Any

import pytest

from ottla.pipelines.spark.jvm.current_query import CurrentQuery

pytestmark = pytest.mark.spark


def test_a_call_goes_to_the_run_of_now(spark: Any) -> None:
    def start() -> Any:
        return spark.readStream.format("rate").load().writeStream.format("noop").start()

    first, second = start(), start()
    try:
        runs = [first]
        query = CurrentQuery(lambda: runs[-1])
        assert (query.id, query.isActive, query.name) == (first.id, True, None)
        first.stop()
        assert not query.isActive
        runs.append(second)
        assert (query.runId, query.isActive) == (second.runId, True)
    finally:
        first.stop()
        second.stop()
