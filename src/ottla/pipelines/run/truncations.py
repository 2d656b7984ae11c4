"""The truncations of a batch: which of its records they leave, and what is noted before the write.

Only the last truncation counts, of each topic where the keys of the table have it. The records
before it are left out, so the sink gets those after it, and the place before which its table is
truncated. The batch is kept while it is written: it is read once to find the truncation, and once
to write the rest.

A truncation takes rows that others have written. So the rows of a table, or of a topic in it, must
all be of that topic: a query of several topics, and a table with commits of another one, are
refused unless each key has its topic.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from ottla.pipelines.errors import PipelineError
from ottla.pipelines.target.commit_metadata import read_metadata
from ottla.pipelines.target.truncation import (
    NOTE,
    Noted,
    after,
    later,
    noted,
    placed,
    read_truncations,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from ottla.pipelines.checkpoint.document import Folder
    from ottla.pipelines.target.keyed_table import KeyedTable
    from ottla.pipelines.target.port import Batch, Sink

log: Final = logging.getLogger("ottla.pipelines")


@contextlib.contextmanager
def truncated(
    rows: DataFrame,
    keyed: KeyedTable | None,
    batch: Batch,
    checkpoint: Folder,
    sink: Sink | None = None,
    topic_ids: Mapping[str, str] | None = None,
) -> Iterator[tuple[DataFrame, Batch]]:
    """Give the rows to write of a batch, and the batch with its truncation.

    `sink`: that of the rows, which says what it has; None: nothing but the batches before this one.
    `topic_ids`: the ids of the topics that are read.

    Raises PipelineError.
    """
    if keyed is None or not keyed.has_truncations:
        yield rows, batch
        return
    kept = rows.persist()
    try:
        # Without `order_by` the table has what was read before, and nothing older comes.
        note = None if keyed.order_by is None else noted(checkpoint, keyed)
        ids = dict(topic_ids or {})
        before = {} if note is None else _before(note, batch, sink, ids, checkpoint)
        last = placed(kept.schema, keyed, before)
        found, older = read_truncations(kept, keyed, last)
        if found is not None:
            if sink is not None:
                check_alone(keyed, _topics_of(batch, ids), sink.metadata(), sink.name)
            found = later(rows.sparkSession, found, last)
        if keyed.order_by is not None:
            places = before if found is None else found.places
            if places != before or not (note is None or _is_settled(note, batch, ids)):
                now = Noted(batch.query_id, batch.number, ids, keyed.order, places, before)
                NOTE.write(checkpoint, now)
        # What was counted stays: a sink that writes again reads the kept rows, and counts nothing.
        of_it = replace(batch, truncation=found, truncated=older, forget_counted=lambda: None)
        yield after(kept, keyed, found or last), of_it
    finally:
        kept.unpersist()


def _before(
    note: Noted, batch: Batch, sink: Sink | None, ids: Mapping[str, str], checkpoint: Folder
) -> dict[str, str]:
    """Return the places of truncations that are in the table before a batch is written."""
    is_there = _is_before(note, batch) or note.places == note.before
    if not is_there and sink is not None:
        held = sink.held(note.id).batch
        is_there = held is not None and held >= note.batch
    places = note.places if is_there else note.before
    found = note.of_topics(ids, places)
    if len(found) < len(places):
        log.warning(
            "The topics are others than those whose last truncation is in %s/%s: it leaves out no "
            "records of these",
            checkpoint.location,
            NOTE.name,
        )
    return found


def _is_before(note: Noted, batch: Batch) -> bool:
    """Tell whether a note is of an earlier batch of the same query, which the target has."""
    return note.id == batch.query_id and note.batch < batch.number


def _is_settled(note: Noted, batch: Batch, ids: Mapping[str, str]) -> bool:
    """Tell whether a note stays true whatever becomes of a batch without a truncation."""
    is_there = _is_before(note, batch) or note.places == note.before
    return is_there and note.topics == ids


def _topics_of(batch: Batch, ids: Mapping[str, str]) -> set[str]:
    """Return the topics that the query of a batch reads."""
    metadata = read_metadata(batch.metadata)
    return {*ids, *(() if metadata is None else metadata.offsets)}


def check_alone(
    keyed: KeyedTable | None, topics: Collection[str], commits: Iterable[str], name: str
) -> None:
    """Refuse truncations of a table whose commits have another topic's rows.

    `topics`: those that the query reads. `commits`: their metadata. Raises PipelineError. Pure.
    """
    if keyed is None or not keyed.has_truncations or keyed.own_topic is not None:
        return
    for text in commits:
        metadata = read_metadata(text)
        for other in () if metadata is None else sorted({*metadata.offsets} - {*topics}):
            raise PipelineError(
                f"A truncation of {_listed(topics)} would take the rows of topic {other!r}, too, "
                f"which another query ({metadata and metadata.query}) has written to the table "
                f"{name}: {_OWN_ROWS}, or write each topic to a table of its own"
            )


_OWN_ROWS: Final = (
    "give each key its topic, as Kafka's column topic in a new table's keys, so that a truncation "
    "takes the rows of its own"
)


def check_one_topic(keyed: KeyedTable | None, topics: Collection[str]) -> None:
    """Refuse truncations where they would take the rows of other topics that the query reads.

    Raises PipelineError. Pure.
    """
    if keyed is None or not keyed.has_truncations or keyed.own_topic is not None:
        return
    if len(topics) > 1:
        raise PipelineError(
            f"The query reads {_listed(topics)}, and a truncation of one of them would take the "
            f"rows of the others, too: {_OWN_ROWS}, or write each topic to a table of its own, "
            "with a query of its own"
        )


def _listed(topics: Collection[str]) -> str:
    return ", ".join(map(repr, sorted(topics))) or "its topic"


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
