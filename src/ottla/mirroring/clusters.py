"""Both clusters, as the client and librdkafka reach them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from confluent_kafka import TopicPartition as PartitionAt

from ottla.client.client import Client
from ottla.client.errors import ClientError, RefusedError
from ottla.client.metadata import NO_ID, Topic
from ottla.client.patience import Patience
from ottla.client.permission_hint import permission_hint
from ottla.client.security import principal_of
from ottla.client.topic_partition import TopicPartition

ANSWER_WITHIN_S: Final = 10.0
CLIENT_ID: Final = "ottla-mirror"


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two clusters. `settings`: librdkafka's, with bootstrap.servers."""

    bootstrap: str
    settings: Mapping[str, Any]
    name: str
    """"source" or "target", for messages."""

    def client(self, on_wait: Callable[[str], None] | None = None) -> SideClient:
        """A client for one thread."""
        return SideClient(self, on_wait)


class SideClient(Client):
    """A client that knows which of the two clusters it asks."""

    def __init__(self, side: Side, on_wait: Callable[[str], None] | None = None) -> None:
        self._side = side
        try:
            super().__init__(
                side.bootstrap,
                side.settings,
                client_id=CLIENT_ID,
                patience=Patience(answer_s=ANSWER_WITHIN_S),
                on_wait=on_wait,
            )
        except ClientError as error:
            error.cluster = side.name
            raise

    @contextmanager
    def asked(self) -> Iterator[None]:
        """What fails within names the side, and the permission that is missing."""
        try:
            yield
        except ClientError as error:
            at_side(self._side, error)
            raise

    def lacks(self, *permission: str) -> str:
        """That this permission is missing: operation, kind, name. Ends with the command to add it,
        without a point behind it.
        """
        hint = permission_hint(principal_of(self._side.settings), permission)
        return f"the {self._side.name} refuses it. {hint}"


E = TypeVar("E", bound=ClientError)


def at_side(side: Side, error: E) -> E:
    """The same error, which says which cluster it is of, and the permission that is missing."""
    error.cluster = side.name
    error.message = f"{error.message.removesuffix('.')}, at the {side.name}."
    if isinstance(error, RefusedError):
        error.hint = error.hint or permission_hint(principal_of(side.settings), error.lacking)
    return error


def id_of(topic: Topic) -> str | None:
    """None if the brokers have no ids."""
    return None if topic.id == NO_ID else str(topic.id)


def partition_at(
    partition: TopicPartition, offset: int, epoch: int | None, metadata: str = ""
) -> PartitionAt:
    """For librdkafka."""
    # Its binding takes no None, and reads -1 as None.
    known = -1 if epoch is None else epoch
    return PartitionAt(*partition, offset, metadata=metadata, leader_epoch=known)
