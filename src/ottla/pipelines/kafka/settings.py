"""`KafkaSettings`: how to reach one Kafka cluster, for librdkafka's clients and for Spark."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ottla.pipelines.errors import PipelineError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

# The source's own: a task that reaches the end of the log waits this long for more records,
# 500 ms by default, though it has all records of its batch.
FETCH_WAIT_MS: Final = 10


@dataclass(frozen=True, slots=True)
class KafkaSettings:
    """The bootstrap servers and client settings of one cluster, by librdkafka's names."""

    bootstrap_servers: str
    settings: tuple[tuple[str, str], ...] = ()

    def for_librdkafka(self) -> dict[str, str]:
        """Return the configuration of a confluent_kafka client."""
        return {"bootstrap.servers": self.bootstrap_servers, **dict(self.settings)}

    def for_spark(self) -> dict[str, str]:
        """Return the options of Spark's Kafka source, `kafka.<name of the Java client>`."""
        return {
            "kafka.bootstrap.servers": self.bootstrap_servers,
            "kafka.fetch.max.wait.ms": str(FETCH_WAIT_MS),
        }


def read_settings(
    bootstrap_servers: str | Iterable[str], kafka: Mapping[str, Any] | None = None
) -> KafkaSettings:
    """Check bootstrap servers and client settings.

    Raises PipelineError for an address without a port, and for a setting that is unknown.
    """
    joined = (
        bootstrap_servers if isinstance(bootstrap_servers, str) else ",".join(bootstrap_servers)
    )
    if not re.fullmatch(r"[^,\s]+:\d+(\s*,\s*[^,\s]+:\d+)*", joined):
        raise PipelineError(f"bootstrap_servers={joined!r}: write host:port, say localhost:9092")
    if kafka:
        raise PipelineError(f"kafka= does not know {next(iter(kafka))!r}")
    return KafkaSettings(joined)
