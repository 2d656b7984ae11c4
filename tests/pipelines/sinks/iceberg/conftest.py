"""What the snapshots of Iceberg's tables say."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest


@pytest.fixture
def marks(spark: Any) -> Callable[[str], list[str]]:
    """What the snapshots of a table say of their batches, the newest first."""

    def read(table: str) -> list[str]:
        column = "summary['ottla.batch']"
        rows = spark.sql(f"SELECT {column} FROM {table}.snapshots ORDER BY committed_at DESC")
        return [row[0] or "" for row in rows.collect()]

    return read
