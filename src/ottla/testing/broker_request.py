"""The kit's client of a cluster, whose failures are those of the kit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from ottla.client.client import Client
from ottla.client.errors import ClientError, RetriableError
from ottla.client.patience import Patience
from ottla.client.question import Question
from ottla.testing.errors import KitError, is_for_the_test
from ottla.testing.fault_rule import KIT_CLIENT_ID

__tracebackhide__ = is_for_the_test

ANSWER_TIMEOUT_S: Final = 10.0


class NoResponseError(KitError):
    """The broker cannot be reached, or did not respond."""


@contextmanager
def kit_client(
    bootstrap: str,
    timeout_s: float = ANSWER_TIMEOUT_S,
    retry_for_s: float = ANSWER_TIMEOUT_S,
    *,
    settings: Mapping[str, str] | None = None,
) -> Iterator[Client]:
    """A client. `timeout_s` is for each response, `retry_for_s` while the cluster changes;
    `settings` are librdkafka's about security. Its ClientError becomes a KitError, or a
    NoResponseError.
    """
    patience = Patience(connect_s=timeout_s, answer_s=timeout_s, retry_for_s=retry_for_s)
    with Client(bootstrap, settings, client_id=KIT_CLIENT_ID, patience=patience) as client:
        try:
            yield client
        except RetriableError as error:
            raise NoResponseError(f"no response from {bootstrap}: {error.reason}") from None
        except ClientError as error:
            raise KitError(error.reason) from None


def ask_broker(
    bootstrap: str,
    request: Any,
    timeout_s: float = ANSWER_TIMEOUT_S,
    *,
    settings: Mapping[str, str] | None = None,
) -> Any:
    """The broker's response to a message of `messages_of`; `bootstrap` is its address. Raises
    NoResponseError.
    """
    version = request.__version__
    question = Question(request.__api_key__, version, lambda _: request, version)
    with kit_client(bootstrap, timeout_s, settings=settings) as client:
        return client.ask_any(question)
