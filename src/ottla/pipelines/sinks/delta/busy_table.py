"""A write that met another commit, tried again within its batch.

Delta refuses a MERGE whose files another job (a MERGE, UPDATE, DELETE or OPTIMIZE) has changed
since the MERGE read them. Nothing of it is in the table then. A query that is started again for
that loses seconds, in which the neighbour commits again. So the statement is run again at once,
after a short wait of random length, on the table as it is now.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable
from typing import Final

from ottla.pipelines.spark.jvm.causes import java_kinds

log: Final = logging.getLogger("ottla.pipelines")

MAX_TRIES: Final = 10
MAX_WAIT_S: Final = 5.0
FIRST_WAIT_S: Final = 0.1
# Not ConcurrentTransactionException, which is a second run of the query, nor a changed schema or
# protocol, for which the batch must be planned again.
_CONFLICTS: Final = tuple(
    f"io.delta.exceptions.{name}Exception"
    for name in ("ConcurrentAppend", "ConcurrentDeleteRead", "ConcurrentDeleteDelete")
)


def tried_again(
    write: Callable[[], int | None],
    find: Callable[[], int | None],
    prepare: Callable[[], None],
    shown: str,
    sleep: Callable[[float], None] = time.sleep,
) -> int | None:
    """Return what `write` returns, which is called up to MAX_TRIES times while it meets others.

    `find` returns the version that has the batch after all, None where none has. `prepare` is
    called before each further try. `shown` names the batch and its table.
    """
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    for number in range(1, MAX_TRIES):
        try:
            return write()
        except (Py4JJavaError, PySparkException) as error:
            if not is_conflict(error):
                raise
            if (version := find()) is not None:
                return version
            log.info("%s met another commit; try %d of %d follows", shown, number + 1, MAX_TRIES)
        sleep(random.uniform(0, min(MAX_WAIT_S, FIRST_WAIT_S * 2.0**number)))
        prepare()
    return write()


def is_conflict(error: BaseException) -> bool:
    """Tell whether a write was refused for another commit, so that nothing of it is there."""
    return any(kind in _CONFLICTS for kind in java_kinds(error))
