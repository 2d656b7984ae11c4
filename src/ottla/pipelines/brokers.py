"""Asking a broker before Spark does: Spark itself waits for minutes and says little."""

from __future__ import annotations

import difflib
from typing import Any, Final

from ottla.pipelines.errors import PipelineError

_TIMEOUT_S: Final = 10


def check_topic(bootstrap_servers: str, name: str) -> None:
    """Raise PipelineError unless a broker answers and has the topic."""
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import AdminClient

    admin: Any = AdminClient({"bootstrap.servers": bootstrap_servers, "log_level": 0})
    try:
        topics = admin.list_topics(timeout=_TIMEOUT_S).topics
    except KafkaException as error:
        raise PipelineError(
            f"No broker answers at {bootstrap_servers} within {_TIMEOUT_S} s. Is one running? "
            "Type: ottla serve"
        ) from error
    if name not in topics:
        near = difflib.get_close_matches(name, topics, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"type: ottla topic create {name}"
        raise PipelineError(f"There is no topic {name!r} on {bootstrap_servers}: {hint}")
