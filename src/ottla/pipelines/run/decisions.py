"""By what a run decides about its batches, and another run about one that the target has.

See `rejects.decided`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ottla.pipelines.errors import PipelineError
from ottla.pipelines.locations import shown_location
from ottla.pipelines.rejects.decided import DECIDED, Decided, refuse, wrong_query
from ottla.pipelines.target.constraints import mark_again
from ottla.pipelines.target.expectations import unasked

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from ottla.pipelines.rejects.decided import Decision
    from ottla.pipelines.spark.jvm.files import Files
    from ottla.pipelines.target.port import Sink


@dataclass
class Decisions:
    """Of one run. `now`: by what the rows are decided now; None for a target that keeps no rejected
    rows.
    """

    now: Decision | None = None
    _noted: Decision | None = None

    def former(self, files: Files, sink: Sink, query_id: str, number: int) -> Decision | None:
        """Return by what another run decided about this batch, which the target has.

        None where the batch is decided as rows are read now, which the checkpoint then says.
        Raises PipelineError where the rejected rows of that batch cannot be found.
        """
        now = self.now
        if now is None or now == self._noted:
            return None
        found = DECIDED.read(files)
        if found is not None and found.query_id == query_id and found.decision != now:
            held = sink.held(query_id)
            if held.batch is not None and held.batch >= number:
                path = shown_location(files.location)
                if wrong := wrong_query(found.decision, now, path, number, sink.name):
                    raise PipelineError(wrong)
                return found.decision
            found = None
        if found is None or found.query_id != query_id:
            DECIDED.write(files, Decided(query_id, now))
        self._noted = now
        return None


def marked_by(
    former: Decision, frame: DataFrame, files: Files, sink: Sink, number: int
) -> DataFrame:
    """Return the rows of a batch with the marks that another run gave them.

    Raises PipelineError.
    """
    rows = unasked(frame)
    if not former.asked.conditions:
        return rows
    marked = mark_again(rows, former.asked)
    if marked is None:
        path = shown_location(files.location)
        raise PipelineError(refuse(former, path, number, sink.name))
    return marked
