"""Finds the broker that can answer, asks it, and asks again while that may help.

Any broker forwards what only the controller can answer; a group and a transactional id have a
coordinator, a partition has a leader. A client is for one thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from operator import attrgetter
from threading import Timer
from typing import Any, Final, Self

from ottla.client.addresses import Address
from ottla.client.connections import Connect, Connections
from ottla.client.coordinators import (
    MOVING,
    Coordinated,
    FoundCoordinator,
    coordinator_question,
    coordinators_question,
    read_coordinators,
)
from ottla.client.errors import (
    AdvertisedError,
    Needs,
    NoAnswerError,
    RefusedError,
    RetriableError,
    UnreachableError,
    UnsupportedError,
)
from ottla.client.metadata import Broker, Metadata, metadata_question, read_metadata
from ottla.client.patience import PATIENCE, Patience, Retry
from ottla.client.question import Question
from ottla.client.security import principal_of
from ottla.protocol.errors import ErrorCode

CLIENT_ID: Final = "ottla"
CodeOf = Callable[[Any], ErrorCode]

CLUSTER_NEEDS: Final = {46: Needs("Describe"), 50: Needs("Describe"), 60: Needs("Describe")}
"""By request type: ListPartitionReassignments, DescribeUserScramCredentials, DescribeCluster. The
others change something.
"""
COORDINATED_NEEDS: Final = {22: "Write", 26: "Write", 47: "Delete"}
"""On the group or the transactional id: InitProducerId, EndTxn, OffsetDelete."""
PASSING: Final = frozenset(
    {
        ErrorCode.not_controller,
        ErrorCode.coordinator_load_in_progress,
        ErrorCode.request_timed_out,
        ErrorCode.unknown_server_error,
    }
)
"""The controller is changing; a retry will succeed soon."""


class Client:
    """A client of one cluster. Every method that asks raises ClientError."""

    def __init__(
        self,
        bootstrap: str,
        settings: Mapping[str, Any] | None = None,
        *,
        client_id: str = CLIENT_ID,
        patience: Patience = PATIENCE,
        on_wait: Callable[[str], None] | None = None,
        connect: Connect | None = None,
    ) -> None:
        """`bootstrap`: `HOST:PORT,HOST:PORT`. `settings`: librdkafka's, of which those about
        security count; they are read with the first connection. `on_wait` is called from another
        thread with a line for the user when a request waits for the cluster.

        `connect`: by default `open_connection`. Raises AddressError.
        """
        self.bootstrap = bootstrap
        self.patience = patience
        self.principal = principal_of(settings or {})
        """Who the brokers take it for; None if that is not known here."""
        self._on_wait = on_wait
        if connect is None:
            # Imported late: it imports what every connection needs first.
            from ottla.client.connection import open_connection

            connect = open_connection
        self._connections = Connections(bootstrap, settings or {}, client_id, patience, connect)
        self._brokers: dict[int, Broker] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._connections.close()

    # Any broker

    def ask_any(self, question: Question, within_s: float | None = None) -> Any:
        """The response of the first broker that responds."""
        wait_s = within_s or self.patience.answer_s
        return self._connections.ask(None, lambda connection: connection.ask(question, wait_s))

    def ask_any_bytes(self, key: int, body: bytes) -> bytes:
        """The same for a request that is not one of Kafka's messages: the body of the response."""
        wait_s = self.patience.answer_s
        return bytes(
            self._connections.ask(None, lambda connection: connection.ask_bytes(key, body, wait_s))
        )

    def metadata(self, topics: Sequence[str] | None = None) -> Metadata:
        """What one broker knows about the cluster and these topics; None: all. Raises
        AdvertisedError if no advertised address can be reached: all other requests use those.
        """
        found = read_metadata(self.ask_any(metadata_question(topics)))
        advertised = [broker.address for broker in found.brokers.values()]
        if advertised and not self._connections.reach(advertised):
            raise AdvertisedError(self.bootstrap, advertised)
        self._brokers = found.brokers
        return found

    # A certain broker

    def ask_broker(self, broker: int, question: Question, within_s: float | None = None) -> Any:
        """The response of this broker. Raises NoAnswerError if it is not live."""
        known = self._brokers.get(broker)
        if known is not None:
            try:
                return self.ask_at(known.address, question, within_s)
            except UnreachableError:
                pass  # it may have come back at another address
        self.metadata([])
        if broker not in self._brokers:
            raise NoAnswerError(f"broker {broker} is not live.")
        return self.ask_at(self._brokers[broker].address, question, within_s)

    def ask_at(self, address: Address, question: Question, within_s: float | None = None) -> Any:
        """The response of the broker at this address."""
        wait_s = within_s or self.patience.answer_s
        return self._connections.ask(address, lambda connection: connection.ask(question, wait_s))

    def ask_at_bytes(self, address: Address, key: int, body: bytes) -> bytes:
        """The same for a request that is not one of Kafka's messages: the body of the response."""
        wait_s = self.patience.answer_s
        return bytes(
            self._connections.ask(
                address, lambda connection: connection.ask_bytes(key, body, wait_s)
            )
        )

    def is_answering(self, address: Address) -> bool:
        """Whether a broker at this address responds now."""
        return self._connections.is_answering(address)

    def certificate_ends_s(self, address: Address) -> int | None:
        """When the certificate of the broker at this address expires, in s since 1970; None if
        there is none, or it was not verified.
        """
        return self._connections.certificate_ends_s(address)

    # The controller

    def ask_controller(
        self, question: Question, doing: str, code_of: CodeOf = attrgetter("error_code")
    ) -> Any:
        """The response to a request that only the controller can answer. `doing` names the action
        for the error message, such as "move partitions"; `code_of` the error of the response as a
        whole.

        While the controller changes, responses may fail for some seconds; so it is asked again.
        """
        retry = Retry(self.patience)
        ask: Callable[[Question, float], Any] = self.ask_any
        wait_s = self.patience.retry_for_s
        with self._noticed(f"Waiting up to {wait_s:g} s for a controller ..."):
            while True:
                try:
                    response = ask(question, retry.left_s)
                except NoAnswerError:
                    # Whichever broker was asked, it is the controller that does not respond.
                    if retry.is_over:
                        raise NoAnswerError(
                            f"cannot {doing}: no response from a controller within {wait_s:g} s."
                        ) from None
                except RetriableError:
                    if retry.is_over:
                        raise
                else:
                    code = code_of(response)
                    if code is ErrorCode.none:
                        return response
                    if code not in PASSING or retry.is_over:
                        message = getattr(response, "error_message", None)
                        needs = CLUSTER_NEEDS.get(question.key, Needs("Alter"))
                        raise RefusedError(doing, code, message, needs)
                    # Apache Kafka with ZooKeeper does not forward.
                    is_other = code is ErrorCode.not_controller
                    ask = self._ask_named_controller if is_other else self.ask_any
                retry.wait()

    def _ask_named_controller(self, question: Question, within_s: float) -> Any:
        controller = self.metadata([]).controller
        if controller is None:
            return self.ask_any(question, within_s)
        return self.ask_broker(controller, question, within_s)

    # Coordinators

    def find_coordinators(self, kind: Coordinated, keys: Sequence[str]) -> list[FoundCoordinator]:
        """The coordinators of groups or transactional ids, or why they have none now."""
        try:
            return read_coordinators(self.ask_any(coordinators_question(kind, keys)))
        except UnsupportedError:
            return [
                found
                for key in keys
                for found in read_coordinators(self.ask_any(coordinator_question(kind, key)), key)
            ]

    def coordinators(self, kind: Coordinated, keys: Sequence[str]) -> dict[Broker, list[str]]:
        """The keys by their coordinator, once each has one. Raises RefusedError."""
        retry = Retry(self.patience)
        while True:
            found: dict[Broker, list[str]] = {}
            refused = None
            for each in self.find_coordinators(kind, keys):
                if each.error is ErrorCode.none:
                    found.setdefault(each.broker, []).append(each.key)
                else:
                    refused = each
            if refused is None:
                return found
            if refused.error not in MOVING or retry.is_over:
                doing = f"find the coordinator of {refused.key!r}"
                needs = Needs("Describe", refused.key)
                raise RefusedError(doing, refused.error, refused.message, needs)
            retry.wait()

    def ask_coordinator(
        self,
        kind: Coordinated,
        key: str,
        question: Question,
        doing: str,
        *,
        passing: Iterable[ErrorCode] = (),
    ) -> Any:
        """The response of the key's coordinator; it has a field `error_code`. Asked again while
        another broker becomes the coordinator, and on the errors in `passing`.
        """
        retry, again = Retry(self.patience), MOVING.union(passing)
        while True:
            ((coordinator, _),) = self.coordinators(kind, [key]).items()
            response = self.ask_at(coordinator.address, question)
            code = response.error_code
            if code is ErrorCode.none:
                return response
            if code not in again or retry.is_over:
                operation = COORDINATED_NEEDS.get(question.key, "Read")
                message = getattr(response, "error_message", None)
                raise RefusedError(doing, code, message, Needs(operation, key))
            retry.wait()

    def ask_coordinators(
        self,
        kind: Coordinated,
        keys: Iterable[str],
        question: Callable[[Sequence[str]], Question],
        items: Callable[[Any], Iterable[tuple[str, Any]]],
        code_of: CodeOf = attrgetter("error_code"),
    ) -> dict[str, tuple[Broker, Any]]:
        """What the coordinators respond about each key, and who they are. `question` is asked about
        some of the keys, and `items` finds theirs in the response; `code_of` an item's error. Asked
        again about those whose coordinator moves.
        """
        wanted = list(dict.fromkeys(keys))
        found: dict[str, tuple[Broker, Any]] = {}
        missing, retry = wanted, Retry(self.patience)
        while missing:
            again = []
            for broker, some in self.coordinators(kind, missing).items():
                for key, item in items(self.ask_at(broker.address, question(some))):
                    if code_of(item) in MOVING and not retry.is_over:
                        again.append(key)
                    else:
                        found[key] = (broker, item)
            missing = again
            if missing:
                retry.wait()
        return {key: found[key] for key in wanted if key in found}

    @contextmanager
    def _noticed(self, line: str) -> Iterator[None]:
        """Tells the user what is waited for when it takes longer than a moment."""
        if self._on_wait is None:
            yield
            return
        notice = Timer(self.patience.notice_s, self._on_wait, [line])
        notice.start()
        try:
            yield
        finally:
            notice.cancel()
