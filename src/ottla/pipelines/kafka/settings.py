"""`KafkaSettings`: how to reach one Kafka cluster, for librdkafka's clients and for Spark."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from ottla.pipelines.errors import PipelineError
from ottla.pipelines.kafka.java_names import check_names, read_pem, to_java

# The source's own: a task that reaches the end of the log waits this long for more records,
# 500 ms by default, though it has all records of its batch.
FETCH_WAIT_MS: Final = 10
MAX_POLL_RECORDS: Final = 5_000
"""After each poll, of 500 records by default, a task of Spark asks the broker for the first and the
last offset (`InternalKafkaConsumer.fetch`): for small records that takes longer than to read them.
A poll has no more than one answer of the broker, 1 MB of each partition as it is in the log.
"""

ISOLATION: Final = "isolation.level"
READ_COMMITTED: Final = "read_committed"
"""librdkafka's default, whose names the settings have. Java's consumer, and so Spark's source, has
read_uncommitted, which also reads the records of aborted transactions."""
READ_UNCOMMITTED: Final = "read_uncommitted"

# Settings of the consumer that no other client of librdkafka takes without a complaint.
_CONSUMER_ONLY: Final = (ISOLATION, "check.crcs", "fetch.")


@dataclass(frozen=True, slots=True)
class KafkaSettings:
    """The bootstrap servers and client settings of one cluster, by librdkafka's names.

    Its `repr` and `str` leave out the values, which may be secret.
    """

    bootstrap_servers: str
    settings: tuple[tuple[str, str], ...] = ()

    def __repr__(self) -> str:
        names = "".join(f", {name}=..." for name, _ in self.settings)
        return f"KafkaSettings({self.bootstrap_servers}{names})"

    @property
    def isolation(self) -> str:
        """Which records of transactions are read: those of committed ones, unless the settings say
        otherwise.
        """
        return dict(self.settings).get(ISOLATION, READ_COMMITTED)

    def for_librdkafka(self) -> dict[str, str]:
        """Return the configuration of a confluent_kafka client of any kind."""
        common = {
            name: value for name, value in self.settings if not name.startswith(_CONSUMER_ONLY)
        }
        return {"bootstrap.servers": self.bootstrap_servers, **common}

    def for_executors(self) -> dict[str, str]:
        """Return the same for a client on another machine: with the text of PEM files.

        Raises PipelineError where a PEM file cannot be read.
        """
        settings = self.for_librdkafka()
        for name in ("ssl.ca", "ssl.certificate", "ssl.key"):
            if text := read_pem(settings, name):
                settings.pop(f"{name}.location", None)
                settings[f"{name}.pem"] = text
        return settings

    def for_spark(self) -> dict[str, str]:
        """Return the options of Spark's Kafka source, `kafka.<name of the Java client>`.

        Raises PipelineError where a PEM file cannot be read.
        """
        java = {
            "bootstrap.servers": self.bootstrap_servers,
            "fetch.max.wait.ms": str(FETCH_WAIT_MS),
            "max.poll.records": str(MAX_POLL_RECORDS),
            ISOLATION: READ_COMMITTED,
            **to_java(dict(self.settings)),
        }
        return {f"kafka.{name}": value for name, value in java.items()}

    def for_spark_producer(self, producer: Mapping[str, str]) -> dict[str, str]:
        """Return the options of Spark's Kafka sink; `producer` as `split_producer` returns it.

        Raises PipelineError where a PEM file cannot be read.
        """
        common = {
            name: value for name, value in self.settings if not name.startswith(_CONSUMER_ONLY)
        }
        java = {"bootstrap.servers": self.bootstrap_servers, **JAVA_BATCHES, **to_java(common)}
        if (most := producer.get("message.max.bytes", "")).isdecimal():
            java["batch.size"] = str(min(int(most), int(JAVA_BATCHES["batch.size"])))
        java |= {
            PRODUCER_NAMES[name]: value for name, value in producer.items() if PRODUCER_NAMES[name]
        }
        return {f"kafka.{name}": value for name, value in java.items()}


# librdkafka's own, for Java's producer, which by itself sends 16 kB at once: that takes twice the
# time.
JAVA_BATCHES: Final = {"linger.ms": "5", "batch.size": "1000000"}

# Settings of producers, by librdkafka's names, and their names in Java's producer. Spark's own sink
# has no transactions.
PRODUCER_NAMES: Final = {
    "compression.type": "compression.type",
    "linger.ms": "linger.ms",
    "batch.size": "batch.size",
    "message.max.bytes": "max.request.size",
    "transaction.timeout.ms": "",
}


def split_producer(kafka: Mapping[str, Any] | None) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the settings of clients of any kind, and those of producers alone.

    Raises PipelineError for a value that is neither text nor a number.
    """
    given = dict(kafka or {})
    producer = {name: _text(name, given.pop(name)) for name in PRODUCER_NAMES if name in given}
    return given, producer


def read_settings(
    bootstrap_servers: str | Iterable[str], kafka: Mapping[str, Any] | None = None
) -> KafkaSettings:
    """Check bootstrap servers and client settings, given by librdkafka's names.

    Raises PipelineError for an address without a port, for a setting that is unknown or that
    Spark's client cannot have, and for a file that cannot be read.
    """
    joined = (
        bootstrap_servers if isinstance(bootstrap_servers, str) else ",".join(bootstrap_servers)
    )
    if not re.fullmatch(r"[^,\s]+:\d+(\s*,\s*[^,\s]+:\d+)*", joined):
        raise PipelineError(f"bootstrap_servers={joined!r}: write host:port, say localhost:9092")
    if kafka is not None and not isinstance(kafka, Mapping):
        raise PipelineError(
            f"kafka= takes a dict such as {{'security.protocol': 'SSL'}}, not "
            f"{type(kafka).__name__}"
        )
    settings = tuple((str(name), _text(str(name), value)) for name, value in (kafka or {}).items())
    check_names(dict(settings))
    to_java(dict(settings))
    return KafkaSettings(joined, settings)


def _text(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str | int | float):
        return str(value)
    raise PipelineError(f"kafka= has {name} as {type(value).__name__}: give text or a number")
