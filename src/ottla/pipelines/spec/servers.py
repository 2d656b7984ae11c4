"""`bootstrap_servers` and the table `kafka` of `[source]` and `[sink]`. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ottla.pipelines.errors import PipelineError
from ottla.pipelines.kafka.settings import KafkaSettings, read_settings
from ottla.pipelines.spec.fields import Fields


def read_servers(
    fields: Fields, settings: Mapping[str, Any], source: KafkaSettings | None = None
) -> KafkaSettings | None:
    """Return how the brokers are reached, None where that is a problem.

    Without `bootstrap_servers` it is as in `source`, whose settings hold where these have none.
    """
    servers = fields.value("bootstrap_servers")
    if isinstance(servers, list):
        servers = ",".join(map(str, servers))
    if servers is None and source is not None:
        servers, settings = source.bootstrap_servers, {**dict(source.settings), **settings}
        if not servers:
            return None  # a problem of the source
    if servers is None:
        fields.problem("bootstrap_servers", "is missing, such as 'localhost:9092'")
        return None
    if not isinstance(servers, str):
        fields.problem("bootstrap_servers", "write 'host:port,host:port' or a list of these")
        return None
    try:
        return read_settings(servers, settings)
    except PipelineError as error:
        message = str(error)
        about = "kafka" if message.startswith("kafka") else "bootstrap_servers"
        fields.problem(about, message)
        return None
