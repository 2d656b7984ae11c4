"""A batch frame into a table: one commit for each completed call.

`<checkpoint>/ottla-calls.json`, one JSON object, replaced as a whole before and after each write:

    {"version": 1, "id": "<of this checkpoint>", "table": "<Delta's table id>", "call": n,
     "done": false}

A crash leaves `"done": false`: the next call finishes the call that was cut off. With
`exactly-once` it writes the frame under the same number, and Delta skips it if the commit was
made; with `at-least-once` it writes the frame again; with `at-most-once` it writes nothing.
"""

from __future__ import annotations

import logging
import os
import uuid
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Final

from ottla.pipelines.checkpoint.checkpoint import Checkpoint
from ottla.pipelines.checkpoint.document import Document
from ottla.pipelines.checkpoint.lease import Lease
from ottla.pipelines.checkpoint.next_batch import set_back
from ottla.pipelines.delivery import DeliveryGuarantee
from ottla.pipelines.errors import PipelineError
from ottla.pipelines.run.plan import check_path, key_notices
from ottla.pipelines.spark.jvm.files import Files
from ottla.pipelines.target.commit_metadata import CommitMetadata
from ottla.pipelines.target.constraints import ROW, is_marked, mark, refused
from ottla.pipelines.target.port import NO_VERSION, Batch, Sink

if TYPE_CHECKING:
    from ottla.pipelines.run.specification import Specification

log: Final = logging.getLogger("ottla.pipelines")

FILE: Final = "ottla-calls.json"


@dataclass(frozen=True, slots=True)
class Written:
    """A completed call; it behaves like a query that has ended, so that code can handle both.

    `version` is the table's version that holds the rows, None when nothing was written or the
    target has no versions.
    """

    table: str
    version: int | None
    name: str = ""
    isActive: bool = False  # noqa: N815 - Spark's name

    def awaitTermination(self, timeout: float | None = None) -> bool:  # noqa: N802 - Spark's name
        """Return True: all rows are written."""
        return True

    def stop(self) -> None:
        """Do nothing: all rows are written."""

    def exception(self) -> None:
        """Return None: a call that fails raises."""


@dataclass(frozen=True, slots=True)
class _Call:
    id: str
    table: str
    call: int = 0
    done: bool = False


def write_frame(specification: Specification, sink: Sink) -> Written:
    """Write a batch frame to a table, as its delivery promises.

    Raises PipelineError: an argument that is for streams only, a table or a checkpoint that does
    not fit, another call under way on this checkpoint.
    """
    if specification.trigger or specification.group or specification.dead_letters:
        raise PipelineError(
            "trigger, group and dead_letters are for streaming frames; this frame is not "
            "streaming: leave them out"
        )
    if specification.expect:
        raise PipelineError(
            "expect is for streaming frames: filter this frame with where() before it is written"
        )
    spark = specification.frame.sparkSession
    checkpoint = Checkpoint(Files(spark, os.fspath(specification.checkpoint)))
    check_path(specification, checkpoint, sink)
    if checkpoint.planned() is not None:
        raise PipelineError(
            f"The checkpoint {specification.checkpoint} belongs to a streaming query: give batch "
            "frames one of their own"
        )
    notices = [*sink.check(), *key_notices(sink.keyed)]
    lease = Lease(checkpoint.files)
    with lease.kept():
        for notice in notices:
            log.warning("%s", notice)
        sink.make()
        _check_rows(specification, sink)
        lease.check_kept()
        return _write(specification, checkpoint.files, sink)


def _check_rows(specification: Specification, sink: Sink) -> None:
    """Refuse rows that no key can find, and those that the target would change; of a frame that is
    appended, it refuses others itself."""
    frame = specification.frame
    if specification.key_columns:
        marked = sink.constrained(frame)
    elif changing := sink.changing():
        marked = mark(frame, frame.schema, changing)
    else:
        return
    row = refused(marked).first() if is_marked(marked) else None
    if row is not None:
        raise PipelineError(f"A row cannot be written to {sink.name}: {row['reason']}: {row[ROW]}")


def _write(specification: Specification, files: Files, sink: Sink) -> Written:
    table_id = sink.table_id()
    before = _KEPT.read(files)
    call = _next(before, table_id)
    if before == call:
        log.warning(
            "The last call on the checkpoint %s was cut off: this call finishes it",
            specification.checkpoint,
        )
        if specification.delivery == DeliveryGuarantee.AT_MOST_ONCE:
            log.warning("at-most-once does not write it again: nothing is written")
            _KEPT.write(files, replace(call, done=True))
            return Written(sink.shown, None, sink.short_name)
    _KEPT.write(files, call)
    metadata = CommitMetadata(sink.short_name, call.id, call.call, "", {}, {})
    once = DeliveryGuarantee(specification.delivery).doubles_nothing
    version = sink.write(specification.frame, Batch(call.id, call.call, metadata.text(), once))
    if version is None and before is not None and before != call:
        _KEPT.write(files, before)
        raise PipelineError(
            set_back(
                str(specification.checkpoint),
                f"{sink.name} has the call {call.call} on this checkpoint already, and the "
                "checkpoint has not begun it",
            )
        )
    if version is None:
        log.warning("%s has the rows of that call already: nothing is written", sink.name)
        version = sink.version_of(call.id, call.call)
    _KEPT.write(files, replace(call, done=True))
    return Written(sink.shown, None if version == NO_VERSION else version, sink.short_name)


def _next(before: _Call | None, table_id: str) -> _Call:
    """Return the call to make: the interrupted one, or the next."""
    if before is None or before.table != table_id:
        return _Call(uuid.uuid4().hex, table_id)
    return replace(before, call=before.call + 1, done=False) if before.done else before


_KEPT: Final = Document(
    FILE,
    lambda document: _Call(
        document["id"], document["table"], int(document["call"]), bool(document["done"])
    ),
    asdict,
)
