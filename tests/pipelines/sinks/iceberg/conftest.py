"""A catalog of Iceberg in a folder of the test's own."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.pipelines.jars import iceberg


@pytest.fixture
def catalog(spark: Any, tmp_path: Path) -> str:
    """The name of a Hadoop catalog: its tables are folders, and its commits renames."""
    if not iceberg():
        pytest.skip("no Iceberg for this Spark")
    name = f"lake_{uuid.uuid4().hex[:8]}"
    setting = f"spark.sql.catalog.{name}"
    spark.conf.set(setting, "org.apache.iceberg.spark.SparkCatalog")
    spark.conf.set(f"{setting}.type", "hadoop")
    spark.conf.set(f"{setting}.warehouse", str(tmp_path / "warehouse"))
    return name


@pytest.fixture
def marks(spark: Any) -> Callable[[str], list[str]]:
    """What the snapshots of a table say of their batches, the newest first."""

    def read(table: str) -> list[str]:
        column = "summary['ottla.batch']"
        rows = spark.sql(f"SELECT {column} FROM {table}.snapshots ORDER BY committed_at DESC")
        return [row[0] or "" for row in rows.collect()]

    return read
