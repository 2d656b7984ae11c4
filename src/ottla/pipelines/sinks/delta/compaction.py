"""Joins the small files that a running query leaves in its table, with Delta's OPTIMIZE.

Each batch adds a file or more for each partition of the table, and a table of thousands of files of
a few rows is slow to read. OPTIMIZE is a commit of its own that changes no row: readers, streams on
the table and a batch that is written again do not notice it. A crash inside it leaves files that no
version refers to. The files that it replaces stay until VACUUM.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ottla.pipelines.spark.jvm.delta_log import count_files
from ottla.pipelines.spark.session_settings import settings_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log: Final = logging.getLogger("ottla.pipelines")

COMPACT_AFTER: Final = 100
"""New files after which the small ones are joined, unless the pipeline says otherwise."""
LOOK_EVERY: Final = 16
"""Batches between two looks at the number of files."""
MAX_FILE_BYTES: Final = 128 << 20
"""Of a file that OPTIMIZE writes; those of half that size and more stay as they are."""

_SIZES: Final = {
    "spark.databricks.delta.optimize.minFileSize": str(MAX_FILE_BYTES // 2),
    "spark.databricks.delta.optimize.maxFileSize": str(MAX_FILE_BYTES),
}


@dataclass(frozen=True, slots=True)
class Compacted:
    """What one OPTIMIZE did: the files that it replaced, and those that it wrote."""

    removed: int
    added: int


@dataclass
class Compaction:
    """The small files of one table: joined when `after_files` have come since the last time."""

    location: str
    after_files: int
    _batches: int = 0
    _files_after: int = 0

    def batch_written(self, session: SparkSession) -> Compacted | None:
        """Count a batch, and join small files if it is time; `session` is that of the batch.

        The batch is in the table already, so a failure here is logged, and the query goes on.
        """
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException

        self._batches += 1
        if self._batches % LOOK_EVERY:
            return None
        try:
            files = count_files(session, self.location)
            if files - self._files_after < self.after_files:
                return None
            done = compact(session, self.location)
            self._files_after = files - done.removed + done.added
        except (Py4JError, PySparkException) as error:
            reason = str(error).strip().splitlines()[0]
            log.warning("The small files of %s were not joined: %s", self.location, reason)
            return None
        log.info("%d small files of %s are now %d", done.removed, self.location, done.added)
        return done


def compact(session: SparkSession, location: str) -> Compacted:
    """Join the small files of each partition. Without two of them nothing is committed."""
    quoted = location.replace("`", "``")
    with settings_of(session, _SIZES):
        (row,) = session.sql(f"OPTIMIZE delta.`{quoted}`").collect()
    return Compacted(int(row["metrics"]["numFilesRemoved"]), int(row["metrics"]["numFilesAdded"]))
