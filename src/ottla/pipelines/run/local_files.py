"""Lets Spark write its small files on a local disk without starting processes.

Each batch writes four small files: planned offsets, done batch, Delta's commit and its checksum.
Spark renames three of them into place through Hadoop's `FileContext`, for HDFS, whose
`FileContext.rename` is atomic. On a local disk Hadoop asks the commands `readlink` and `chmod` at
each of these steps (`RawLocalFileSystem.getFileLinkStatus`), some twenty processes a batch: 140 ms
of 840. Spark's other manager renames through `FileSystem`: it looks whether the file exists, then
calls rename(2), as `FileContext` does there as well.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from ottla.pipelines.spark.jvm.classes import first_class

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FILE_MANAGER: Final = "spark.sql.streaming.checkpointFileManagerClass"
_PACKAGE: Final = "org.apache.spark.sql.execution.streaming"
_CLASSES: Final = (
    f"{_PACKAGE}.FileSystemBasedCheckpointFileManager",
    f"{_PACKAGE}.checkpointing.FileSystemBasedCheckpointFileManager",  # from Spark 4.1 on
)


@contextlib.contextmanager
def local_files(session: SparkSession, *locations: str) -> Iterator[None]:
    """Choose the manager for the query that is started in this block.

    `locations` are its checkpoint and its table, with their schemes: unless all are local, Spark's
    choice stays, and so does a class that the user has set. The query has its own copy of the
    session's settings from its start on, which Delta uses for the commits too.
    """
    given = session.conf.get(FILE_MANAGER, None)
    found = None
    if given is None and all(location.startswith("file:") for location in locations):
        found = first_class(session, _CLASSES)
    if found is None:
        yield
        return
    session.conf.set(FILE_MANAGER, found)
    try:
        yield
    finally:
        session.conf.unset(FILE_MANAGER)
