"""What each broker stores: DescribeLogDirs (KIP-113).

Every broker knows only its own folders, so each of them is asked.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, NamedTuple

from ottla.client.client import Client
from ottla.client.errors import ClientError, Needs, RefusedError
from ottla.client.question import Question
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages import Messages

DESCRIBE_LOG_DIRS: Final = 35
NEWEST: Final = 4
"""The first with the size of the disk (KIP-827; Apache Kafka 3.3)."""
WITH_ERROR: Final = 3
"""The first with an error of the whole response."""
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
    client: Client,
    *,
    brokers: Collection[int] | None = None,
    partitions: Mapping[str, Sequence[int]] | None = None,
) -> tuple[list[LogDir], dict[int, str]]:
    """The folders of these live brokers (default: all) with their replicas of these partitions
    (default: all); and for brokers that could not be asked, the reason as a part of a sentence.
    """
    found: list[LogDir] = []
    why: dict[int, str] = {}
    for number in sorted(client.metadata([]).brokers):
        if brokers is not None and number not in brokers:
            continue
        try:
            found += _of_broker(client, number, partitions)
        except ClientError as error:
            why[number] = error.reason
    return found, why


def _of_broker(
    client: Client, number: int, partitions: Mapping[str, Sequence[int]] | None
) -> list[LogDir]:
    def build(messages: Messages) -> Any:
        topics = None
        if partitions is not None:
            topics = tuple(
                messages.DescribableLogDirTopic(topic=topic, partitions=tuple(indexes))
                for topic, indexes in partitions.items()
            )
        return messages.DescribeLogDirsRequest(topics=topics)

    question = Question(DESCRIBE_LOG_DIRS, NEWEST, build, 1)
    response = client.ask_broker(number, question, ANSWER_WITHIN_S)
    code = getattr(response, "error_code", ErrorCode.none)
    # Before version 3 an empty answer means no permission (KafkaAdminClient).
    if code is ErrorCode.none and not response.results and response.__version__ < WITH_ERROR:
        code = ErrorCode.cluster_authorization_failed
    if code is not ErrorCode.none:
        raise RefusedError(
            f"read the log folders of broker {number}", code, None, Needs("Describe")
        )
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
