"""What each broker stores (DescribeLogDirs, KIP-113), for which librdkafka has no call.

Every broker knows only its own folders, so each of them is asked.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, NamedTuple

from ottla.cli.client import Connection
from ottla.cli.cluster_client import ask, refusal
from ottla.cli.failures import Failed
from ottla.cli.plain_security import Security, security_of
from ottla.cli.supported_versions import newest_version
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages import messages_of

DESCRIBE_LOG_DIRS: Final = 35
VERSION: Final = 4
"""The first with the size of the disk (KIP-827; Apache Kafka 3.3). Older brokers are asked with
less."""
ANSWER_WITHIN_S: Final = 10.0


class StoredReplica(NamedTuple):
    """One replica in one folder."""

    topic: str
    partition: int
    size_bytes: int
    offset_lag: int
    """How many offsets it is behind the high watermark."""
    is_future: bool
    """Whether it is being copied from another folder of this broker."""


class LogDir(NamedTuple):
    """One of a broker's log folders."""

    broker: int
    path: str
    error: str | None
    total_bytes: int | None
    """Of its disk; None if the broker does not say."""
    usable_bytes: int | None
    replicas: tuple[StoredReplica, ...]

    @property
    def size_bytes(self) -> int:
        return sum(each.size_bytes for each in self.replicas)


def log_dirs(
    connection: Connection,
    *,
    brokers: Collection[int] | None = None,
    partitions: Mapping[str, Sequence[int]] | None = None,
) -> tuple[list[LogDir], dict[int, str]]:
    """The folders of these live brokers (default: all) with their replicas of these partitions
    (default: all); and for brokers that could not be asked, the reason as part of a sentence.
    """
    security = security_of(connection.settings)
    found: list[LogDir] = []
    why: dict[int, str] = {}
    for number, each in sorted(connection.metadata().brokers.items()):
        if brokers is not None and number not in brokers:
            continue
        try:
            found += _of_broker(number, f"{each.host}:{each.port}", partitions, security)
        except Failed as failure:
            why[number] = failure.message.rstrip(".")
    return found, why


def _of_broker(
    number: int, address: str, partitions: Mapping[str, Sequence[int]] | None, security: Security
) -> list[LogDir]:
    version = min(newest_version(address, DESCRIBE_LOG_DIRS, security), VERSION)
    if version < 1:
        raise Failed(f"broker {number} does not support DescribeLogDirs.")
    build = messages_of(DESCRIBE_LOG_DIRS, version, "request")
    topics = None
    if partitions is not None:
        topics = tuple(
            build.DescribableLogDirTopic(topic=topic, partitions=tuple(indexes))
            for topic, indexes in partitions.items()
        )
    response = ask(address, build.DescribeLogDirsRequest(topics=topics), ANSWER_WITHIN_S, security)
    code = getattr(response, "error_code", ErrorCode.none)
    # Before version 3 an empty answer means no permission (KafkaAdminClient).
    if code is ErrorCode.none and not response.results and version < 3:
        code = ErrorCode.cluster_authorization_failed
    if code is not ErrorCode.none:
        raise refusal(f"read the log folders of broker {number}", code, None)
    return [_log_dir(number, result) for result in response.results]


def _log_dir(broker: int, result: Any) -> LogDir:
    failed = result.error_code is not ErrorCode.none
    return LogDir(
        broker,
        result.log_dir,
        result.error_code.name.replace("_", " ") if failed else None,
        _known(getattr(result, "total_bytes", -1)),
        _known(getattr(result, "usable_bytes", -1)),
        tuple(
            StoredReplica(
                topic.name,
                each.partition_index,
                each.partition_size,
                each.offset_lag,
                each.is_future_key,
            )
            for topic in result.topics
            for each in topic.partitions
        ),
    )


def _known(size_bytes: int) -> int | None:
    return size_bytes if size_bytes >= 0 else None
