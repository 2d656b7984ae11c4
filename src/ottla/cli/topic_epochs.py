"""Leader epochs and offline replicas, which librdkafka's admin client does not hand out.

One Metadata request (key 3, version 12) over a plain connection. Where the listener wants TLS or a
password there is no answer to it, and what it would have told stays unknown.
"""

from __future__ import annotations

import socket
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from ottla.cli.failures import Failed
from ottla.cli.plain_connection import CLIENT_ID, CORRELATION_ID, connected, exactly
from ottla.protocol.errors import DecodeError
from ottla.protocol.frames import read_response, write_request
from ottla.protocol.messages import messages_of

METADATA: Final = 3
VERSION: Final = 12
ANSWER_TIMEOUT_S: Final = 10.0
MOST_ANSWER_BYTES: Final = 64 * 1024 * 1024


class Epoch(NamedTuple):
    """A partition's leader epoch, and those of its replicas whose brokers are not there."""

    leader_epoch: int
    offline: tuple[int, ...]


def epochs_of(bootstrap: str, names: Sequence[str]) -> dict[tuple[str, int], Epoch]:
    """By topic and partition; empty where no broker answers a plain connection."""
    try:
        with connected(bootstrap, ANSWER_TIMEOUT_S) as connection:
            return read_epochs(asked(connection, names))
    except (Failed, OSError, EOFError, DecodeError):
        return {}


def asked(connection: socket.socket, names: Sequence[str]) -> Any:
    """The Metadata response. Raises OSError, EOFError or DecodeError where there is none."""
    build = messages_of(METADATA, VERSION, "request")
    topics = tuple(build.MetadataRequestTopic(name=name) for name in names)
    request = build.MetadataRequest(topics=topics, allow_auto_topic_creation=False)
    connection.sendall(write_request(request, CORRELATION_ID, CLIENT_ID.decode()))
    size = int.from_bytes(exactly(connection, 4), "big", signed=True)
    if not 4 <= size <= MOST_ANSWER_BYTES:
        raise EOFError
    return read_response(METADATA, VERSION, exactly(connection, size))[1]


def read_epochs(response: Any) -> dict[tuple[str, int], Epoch]:
    return {
        (topic.name, each.partition_index): Epoch(each.leader_epoch, tuple(each.offline_replicas))
        for topic in response.topics
        for each in topic.partitions
    }
