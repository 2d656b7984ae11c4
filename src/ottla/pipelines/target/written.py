"""A look at a table after the commit of a batch: others may have committed just before it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.pipelines.checkpoint.next_batch import Planned, Refuse, decide
from ottla.pipelines.errors import PipelineError
from ottla.pipelines.target.keyed_table import harm

if TYPE_CHECKING:
    from ottla.pipelines.checkpoint.next_batch import Held
    from ottla.pipelines.target.keyed_table import KeyedTable
    from ottla.pipelines.target.port import Batch


def check_written(batch: Batch, held: Held, keyed: KeyedTable | None) -> None:
    """Check that a table still has the batches before one that was just written, and is its own.

    Raises PipelineError; the batch is in the table.
    """
    planned = Planned(batch.checkpoint, batch.number, ends="", promised=batch.number)
    answer = decide(planned, held)
    if isinstance(answer, Refuse):
        raise PipelineError(
            f"{answer.sentence}. Its batch {batch.number} was written before that was noticed: "
            f"{harm(keyed)}"
        )
