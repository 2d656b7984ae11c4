"""Maintenance of a pipeline's tables: files are joined, and none is taken from a reader."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ottla.pipelines import PipelineError, maintain
from ottla.pipelines.spec.maintained import Maintained

pytestmark = [pytest.mark.spark, pytest.mark.full]


def test_tables_are_joined_and_only_old_files_deleted(spark: Any, tmp_path: Path) -> None:
    table, rejected = tmp_path / "users", tmp_path / "users_rejected"
    for place in (table, table, table, rejected):
        spark.range(2).coalesce(1).write.format("delta").mode("append").save(str(place))
    before = spark.read.format("delta").load(str(table))

    assert maintain(spark, table, dry_run=True) == [
        Maintained(str(table), 3, 3, 0, 168.0),
        Maintained(str(rejected), 1, 1, 0, 168.0),
    ]
    assert maintain(spark, table) == [
        Maintained(str(table), 3, 1, 0, 168.0),
        Maintained(str(rejected), 1, 1, 0, 168.0),
    ]
    # A reader that began before still finds its files.
    assert before.count() == 6

    for place in (table, rejected):
        spark.sql(
            f"ALTER TABLE delta.`{place}` SET TBLPROPERTIES "
            "('delta.deletedFileRetentionDuration' = 'interval 0 hours')"
        )
    assert maintain(spark, table, dry_run=True)[0] == Maintained(str(table), 1, 1, 3, 0.0)
    assert maintain(spark, table, keep_hours=1)[0] == Maintained(str(table), 1, 1, 0, 1.0)
    assert maintain(spark, table)[0] == Maintained(str(table), 1, 1, 3, 0.0)
    assert len(list(table.glob("*.parquet"))) == 1
    assert spark.read.format("delta").load(str(table)).count() == 6


def test_what_would_break_a_reader_is_refused(spark: Any, tmp_path: Path) -> None:
    spark.range(2).write.format("delta").save(str(tmp_path / "t"))

    with pytest.raises(PipelineError, match=r"keeps files for 168 hours.*and 24 is less"):
        maintain(spark, tmp_path / "t", keep_hours=24)
    (done,) = maintain(spark, tmp_path / "t", dry_run=True)
    assert (done.table, done.deleted, done.kept_hours) == (str(tmp_path / "t"), 0, 168.0)
    with pytest.raises(PipelineError, match=r"There is no Delta table .*/other"):
        maintain(spark, tmp_path / "other")
