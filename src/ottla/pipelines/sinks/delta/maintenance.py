"""`maintain`: a pipeline's tables kept small on disk and fast to read, while the pipeline runs.

OPTIMIZE joins small files; VACUUM deletes the files that no version needs any more. A reader or a
stream that began on an older version still reads its files, so none is deleted before the table's
own `delta.deletedFileRetentionDuration` is over (a week by default): Delta itself allows less only
with its check switched off, and this is never done here.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Final

from ottla.pipelines.errors import PipelineError, require_pyspark
from ottla.pipelines.sinks.delta.compaction import compact
from ottla.pipelines.sinks.delta.target import Target, find_target
from ottla.pipelines.spark.jvm.delta_log import count_files
from ottla.pipelines.spark.jvm.required import require_delta, require_jvm
from ottla.pipelines.spark.session_settings import settings_of
from ottla.pipelines.spec.maintained import Maintained
from ottla.pipelines.target.delta_table import DeltaTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_MS_PER_HOUR: Final = 3_600_000
TASKS_PER_CORE: Final = 4
_LISTING_TASKS: Final = "spark.sql.sources.parallelPartitionDiscovery.parallelism"
"""VACUUM lists the folders in so many tasks, 10,000 by default: minutes on a small cluster."""
MAX_TRIES: Final = 3
"""A commit of the running pipeline may come between; Delta then refuses the OPTIMIZE."""


def maintain(
    spark: SparkSession,
    target: str | os.PathLike[str],
    *,
    keep_hours: float | None = None,
    dry_run: bool = False,
) -> list[Maintained]:
    """Join small files and delete unused ones of a table and of those beside it.

    Args:
        target: the path or name given to `to_delta`. `<target>_rejected` and `<target>_late` are
            maintained too, where they exist.
        keep_hours: how long deleted and replaced files are kept; by default, and at least, the
            table's own `delta.deletedFileRetentionDuration`.
        dry_run: change nothing; `files_after` is then the number of files now.

    Returns:
        One entry for each table.

    Raises:
        PipelineError: there is no such table, or `keep_hours` is less than the table keeps.
    """
    require_pyspark()
    require_jvm(spark)
    require_delta(spark)
    first = find_target(spark, target)
    if not _exists(spark, first):
        raise PipelineError(
            f"There is no Delta table {first.name}: give the target of a pipeline that has run"
        )
    beside = [one for one in (first.rejected(spark), first.late(spark)) if _exists(spark, one)]
    # All are checked before the first is changed.
    tables = [(one, _kept_hours(spark, one, keep_hours)) for one in (first, *beside)]
    return [_maintain(spark, one, kept, dry_run) for one, kept in tables]


def _exists(spark: SparkSession, target: Target) -> bool:
    return bool(target.location) and DeltaTable(spark, target.location).exists()


def _kept_hours(spark: SparkSession, target: Target, keep_hours: float | None) -> float:
    """Return how long the table keeps unused files. Raises PipelineError for too few hours."""
    least = DeltaTable(spark, target.location).snapshot().kept_ms(spark) / _MS_PER_HOUR
    if keep_hours is not None and keep_hours < least:
        raise PipelineError(
            f"{target.name} keeps files for {least:g} hours, so that no running reader loses one, "
            f"and {keep_hours:g} is less: leave it out, or set the table's property "
            "delta.deletedFileRetentionDuration"
        )
    return max(least, keep_hours or 0.0)


def _maintain(spark: SparkSession, target: Target, kept_hours: float, dry_run: bool) -> Maintained:
    before = after = count_files(spark, target.location)
    if not dry_run:
        _compact(spark, target.location)
        after = count_files(spark, target.location)
    deleted = _vacuum(spark, target, kept_hours, dry_run)
    return Maintained(target.shown, before, after, deleted, kept_hours)


def _compact(spark: SparkSession, location: str) -> None:
    """Join small files; a commit that comes between is no reason to give up at once."""
    from pyspark.errors import PySparkException

    for left in reversed(range(MAX_TRIES)):
        try:
            compact(spark, location)
            return
        except PySparkException as error:
            if not left or not re.search(r"DELTA_CONCURRENT_\w+", str(error)):
                raise PipelineError(
                    f"The small files of {location} cannot be joined: "
                    f"{str(error).strip().splitlines()[0]}"
                ) from error


def _vacuum(spark: SparkSession, target: Target, kept_hours: float, dry_run: bool) -> int:
    """Delete unused files; return their number."""
    quoted = target.location.replace("`", "``")
    statement = f"VACUUM delta.`{quoted}` RETAIN {kept_hours:g} HOURS"
    tasks = TASKS_PER_CORE * spark.sparkContext.defaultParallelism
    with settings_of(spark, {_LISTING_TASKS: str(tasks)}):
        number = spark.sql(f"{statement} DRY RUN").count()
        if number and not dry_run:
            spark.sql(statement).collect()
    return int(number)
