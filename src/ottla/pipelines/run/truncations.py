"""The truncations of a batch: which of its records they leave, and what is noted before the write.

Only the last truncation counts. The records before it are left out, so the sink gets those after
it, and the place before which its table is truncated. The batch is kept while it is written: it is
read once to find the truncation, and once to write the rest.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from ottla.pipelines.errors import PipelineError
from ottla.pipelines.target.truncation import after, last_truncation, later, note, noted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from ottla.pipelines.checkpoint.document import Folder
    from ottla.pipelines.target.keyed_table import KeyedTable
    from ottla.pipelines.target.port import Batch


@contextlib.contextmanager
def truncated(
    rows: DataFrame, keyed: KeyedTable | None, batch: Batch, checkpoint: Folder
) -> Iterator[tuple[DataFrame, Batch]]:
    """Give the rows to write of a batch, and the batch with its truncation.

    Raises PipelineError.
    """
    if keyed is None or not keyed.has_truncations:
        yield rows, batch
        return
    kept = rows.persist()
    try:
        found = last_truncation(kept, keyed)
        # Without `order_by` the table has what was read before, and nothing older comes.
        last = None if keyed.order_by is None else noted(checkpoint, rows.schema, keyed)
        if found is not None:
            found = later(rows.sparkSession, found, last)
            if keyed.order_by is not None and found != last:
                note(checkpoint, found)
        # What was counted stays: a sink that writes again reads the kept rows, and counts nothing.
        of_it = replace(batch, truncation=found, forget_counted=lambda: None)
        yield after(kept, keyed, found or last), of_it
    finally:
        kept.unpersist()


def check_one_partition(keyed: KeyedTable | None, partitions: Mapping[str, Iterable[int]]) -> None:
    """Refuse truncations where nothing says which records of other partitions are older.

    `partitions`: those of each topic that is read. Raises PipelineError. Pure.
    """
    if keyed is None or not keyed.has_truncations or keyed.order_by is not None:
        return
    found = [f"{len(set(them))} of {name}" for name, them in partitions.items()]
    if sum(len(set(them)) for them in partitions.values()) > 1:
        raise PipelineError(
            "A truncation is a record of one partition, and the query reads several "
            f"({', '.join(found)}), whose records nothing orders: name the column that orders them "
            "in order_by, such as the lsn of the database; or have Debezium write the table into "
            "a topic of one partition"
        )
