"""Leader epochs and offline replicas, which librdkafka's admin client does not hand out.

One Metadata request (key 3, version 12) over a plain connection. Where the listener wants TLS or a
password there is no answer to it, and what it would have told stays unknown.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from ottla.cli.cluster_client import answered
from ottla.cli.failures import Failed
from ottla.cli.plain_connection import connected
from ottla.protocol.errors import DecodeError
from ottla.protocol.messages import messages_of

METADATA: Final = 3
VERSION: Final = 12
ANSWER_TIMEOUT_S: Final = 10.0


class Epoch(NamedTuple):
    """A partition's leader epoch, and those of its replicas whose brokers are not there."""

    leader_epoch: int
    offline: tuple[int, ...]


def epochs_of(bootstrap: str, names: Sequence[str]) -> dict[tuple[str, int], Epoch]:
    """By topic and partition; empty where no broker answers a plain connection."""
    try:
        with connected(bootstrap, ANSWER_TIMEOUT_S) as connection:
            return read_epochs(answered(connection, question(names)))
    except (Failed, OSError, EOFError, DecodeError):
        return {}


def question(names: Sequence[str]) -> Any:
    """The Metadata request."""
    build = messages_of(METADATA, VERSION, "request")
    topics = tuple(build.MetadataRequestTopic(name=name) for name in names)
    return build.MetadataRequest(topics=topics, allow_auto_topic_creation=False)


def read_epochs(response: Any) -> dict[tuple[str, int], Epoch]:
    return {
        (topic.name, each.partition_index): Epoch(each.leader_epoch, tuple(each.offline_replicas))
        for topic in response.topics
        for each in topic.partitions
    }
