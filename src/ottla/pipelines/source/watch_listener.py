"""Spark's listener for `watch`; a file of its own because its base class needs PySpark."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from ottla.pipelines.spark.jvm.listener import JsonListener


class RejectsListener(JsonListener):
    """Passes on the counts of each progress: query id, run id, name and observed metrics."""

    def __init__(self, progressed: Callable[[str, str, str | None, Any], None]) -> None:
        super().__init__()
        self._progressed = progressed

    def progressed(self, text: str) -> None:
        """Look at the counts of a batch."""
        progress = json.loads(text)
        counts = progress.get("observedMetrics") or {}
        self._progressed(progress["id"], progress["runId"], progress.get("name"), counts)
