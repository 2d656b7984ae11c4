"""A StreamingQuery whose run changes. Only imported where PySpark is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyspark.sql.streaming import StreamingQuery

from ottla.pipelines.spark.jvm.attributes import java_query


class CurrentQuery(StreamingQuery):  # type: ignore[misc]
    """Spark's query of which each call goes to the one that `current` returns then."""

    def __init__(self, current: Callable[[], StreamingQuery]) -> None:
        # StreamingQuery's own attribute is the property below.
        self._current = current

    @property
    def _jsq(self) -> Any:
        return java_query(self._current())
