"""Asks a cluster for journeys, with one client for all questions of a command."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Final, Self

from ottla.client.admin.journeys import ask_journey
from ottla.client.admin.own_requests import NotOttlaError
from ottla.client.client import CLIENT_ID, Client
from ottla.client.errors import ClientError, RetriableError
from ottla.client.patience import Patience
from ottla.journey.answers import joined

Document = dict[str, Any]

PATIENCE: Final = Patience(answer_s=30.0, retry_for_s=5.0)
"""A search for a key reads a few hundred MiB at most; leadership may move meanwhile."""
ASKED_AGAIN_S: Final = 60.0
"""A broker that is not Ottla's writes an error into its log each time; one of Ottla's that is just
stopping closes connections, too.
"""
COMPUTING: Final = Patience(answer_s=5.0, retry_for_s=5.0)
"""For Kafka's own requests: each is answered at once."""


class Journeys:
    """The journeys of a cluster. Use it as a context manager."""

    def __init__(
        self,
        bootstrap: str,
        settings: Mapping[str, Any] | None = None,
        *,
        client_id: str = CLIENT_ID,
    ) -> None:
        """The arguments are those of `Client`."""
        self.bootstrap = bootstrap
        self._client = Client(bootstrap, settings, client_id=client_id, patience=PATIENCE)
        self._computing = Client(bootstrap, settings, client_id=client_id, patience=COMPUTING)
        self._why_computed = ""
        """The brokers are not Ottla's, as one has said by closing the connection."""
        self._computed_until_s = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._client.close()
        self._computing.close()

    def ask(self, question: Document) -> Document:
        """The document of the partition's leader, or of all leaders together; on brokers that are
        not Ottla's, what can be computed. Raises ClientError.
        """
        if time.monotonic() >= self._computed_until_s:
            try:
                return ask_journey(self._client, question, joined)
            except NotOttlaError as error:
                self._why_computed = error.message
                self._computed_until_s = time.monotonic() + ASKED_AGAIN_S
        # Imported late: it needs much that a journey of Ottla's does not.
        from ottla.client.admin.computed_journey import computed_journey

        try:
            return computed_journey(self._computing, question)
        except RetriableError:  # it is no broker at all
            raise ClientError(self._why_computed) from None


def asked_journey(bootstrap: str, question: Document) -> Document:
    """The answer to one question."""
    with Journeys(bootstrap) as journeys:
        return journeys.ask(question)
