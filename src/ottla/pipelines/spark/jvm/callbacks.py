"""The way on which Spark calls this process for each batch.

py4j waits for Spark with `select`, which takes no descriptor above 1,023. In a process with as many
open files its thread ends, and what Spark asks is never answered: a query would start for ever.
"""

from __future__ import annotations

from typing import Final

from ottla.pipelines.errors import PipelineError
from ottla.pipelines.spark.jvm.attributes import gateway

MAX_DESCRIPTOR: Final = 1023
"""FD_SETSIZE - 1."""


def check_callbacks() -> None:
    """Raise PipelineError if Spark's calls will not be answered, once they may come."""
    found = gateway()
    server = None if found is None else vars(found).get("_callback_server")
    if server is None or server.server_socket is None:
        return
    if server.server_socket.fileno() > MAX_DESCRIPTOR:
        raise PipelineError(
            f"This process had more than {MAX_DESCRIPTOR} open files or connections when its first "
            "query was started, and py4j, through which Spark calls a query's batches, cannot wait "
            "for Spark then. Start a query in a new process, before so many are open"
        )
