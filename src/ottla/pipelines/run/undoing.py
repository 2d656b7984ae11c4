"""A batch that was refused as a whole: a delivery that notes batches before forgets that."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence

from ottla.pipelines.failures.known import Known
from ottla.pipelines.failures.sentences import passes_by_itself
from ottla.pipelines.spark.jvm.causes import causes_of


@contextlib.contextmanager
def undoing(undo: Callable[[], None], failures: Sequence[Known]) -> Iterator[None]:
    """Call `undo` when the block fails for a row that the target refuses, such as by a constraint.

    The target, which has these failures, has refused all of the batch then.
    """
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (Py4JError, PySparkException) as error:
        waited_for = passes_by_itself(causes_of(error), failures)
        if waited_for is not None and waited_for.rejects_rows:
            undo()
        raise
