"""Both clusters, as the client and librdkafka reach them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from ottla.client.client import Client
from ottla.client.metadata import NO_ID, Topic
from ottla.client.patience import Patience

ANSWER_WITHIN_S: Final = 10.0
CLIENT_ID: Final = "ottla-mirror"


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two clusters. `settings`: librdkafka's, with bootstrap.servers."""

    bootstrap: str
    settings: Mapping[str, Any]

    def client(self, on_wait: Callable[[str], None] | None = None) -> Client:
        """A client for one thread."""
        return Client(
            self.bootstrap,
            self.settings,
            client_id=CLIENT_ID,
            patience=Patience(answer_s=ANSWER_WITHIN_S),
            on_wait=on_wait,
        )


def id_of(topic: Topic) -> str | None:
    """None if the brokers have no ids."""
    return None if topic.id == NO_ID else str(topic.id)
