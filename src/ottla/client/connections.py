"""The open connections of a client, and which broker is asked if any will do."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, Protocol

from ottla.client.addresses import Address, addresses
from ottla.client.errors import (
    ClientError,
    ClosedError,
    RetriableError,
    SecurityError,
    UnreachableError,
    UnsupportedError,
)
from ottla.client.patience import Patience
from ottla.client.question import Question
from ottla.client.security import Security, security_of


class OpenConnection(Protocol):
    """A connection to one broker; see `Connection`."""

    address: Address
    certificate_ends_s: int | None

    def ask(self, question: Question, within_s: float) -> Any: ...
    def ask_bytes(self, key: int, body: bytes, within_s: float) -> bytes: ...
    def check(self, within_s: float) -> None: ...
    def close(self) -> None: ...


Connect = Callable[[Address, Security, str, float, float], OpenConnection]
"""As `open_connection`."""


class Connections:
    """Connections stay open between requests. Every method raises ClientError."""

    def __init__(
        self,
        bootstrap: str,
        settings: Mapping[str, Any],
        client_id: str,
        patience: Patience,
        connect: Connect,
    ) -> None:
        """The arguments are those of `Client`. Raises AddressError."""
        self._bootstrap = bootstrap
        self._addresses = addresses(bootstrap)
        self._settings = settings
        self._client_id = client_id
        self._patience = patience
        self._connect = connect
        self._open: dict[Address, OpenConnection] = {}
        # Addresses that did not respond are tried last.
        self._silent: set[Address] = set()

    def ask(self, address: Address | None, ask: Callable[[OpenConnection], Any]) -> Any:
        """What `ask` returns for a connection to the broker at this address; None: to any."""
        while True:
            before = set(self._open)
            connection = self._any() if address is None else self._at(address)
            try:
                return ask(connection)
            except UnsupportedError:
                raise  # nothing was sent
            except BaseException as error:
                self._drop(connection)
                # The broker has ended what was idle: that says nothing about the request.
                if isinstance(error, ClosedError) and connection.address in before:
                    continue
                if isinstance(error, RetriableError):
                    self._silent.add(connection.address)
                raise

    def reach(self, advertised: Sequence[Address]) -> bool:
        """Whether one of these addresses can be reached. Those that are known are asked, too, if
        any broker will do.
        """
        self._addresses += [each for each in advertised if each not in self._addresses]
        if not self._open.keys().isdisjoint(advertised):
            return True
        return self._first_of(advertised, self._patience.silent_s, []) is not None

    def is_answering(self, address: Address) -> bool:
        """Whether a broker at this address responds: on the open connection, or else a new one."""
        if address in self._open:
            try:
                self._open[address].check(self._patience.silent_s)
            except RetriableError:
                self._drop(self._open[address])
            else:
                return True
        try:
            self._connected(address, self._patience.silent_s).close()
        except RetriableError:
            return False
        except SecurityError:
            pass  # it refuses this client: that is a response
        return True

    def certificate_ends_s(self, address: Address) -> int | None:
        """When the certificate of the broker at this address expires, in s since 1970; None if that
        is not known.
        """
        if self._security.tls is None:
            return None
        if address not in self._open:
            self._open[address] = self._connected(address, self._patience.silent_s)
        return self._open[address].certificate_ends_s

    def close(self) -> None:
        for connection in self._open.values():
            connection.close()
        self._open.clear()

    def _at(self, address: Address) -> OpenConnection:
        if address not in self._open:
            self._open[address] = self._connected(address, self._patience.answer_s)
        return self._open[address]

    def _any(self) -> OpenConnection:
        """A connection to a broker that responds; those that did not are tried last."""
        for address in self._addresses:
            if address in self._open and self._is_good(self._open[address]):
                return self._open[address]
        failures: list[ClientError] = []
        *others, last = sorted(self._addresses, key=self._silent.__contains__)
        found = self._first_of(others, self._patience.silent_s, failures) or self._first_of(
            [last], self._patience.answer_s, failures
        )
        if found is None:
            raise self._worst(failures)
        return found

    def _is_good(self, connection: OpenConnection) -> bool:
        """Whether to use an open connection: its broker responds, or is the only one."""
        if len(self._addresses) == 1:
            return True
        try:
            connection.check(self._patience.silent_s)
        except RetriableError as error:
            self._drop(connection)
            if not isinstance(error, ClosedError):
                self._silent.add(connection.address)
            return False
        return True

    def _first_of(
        self, tried: Iterable[Address], answer_s: float, failures: list[ClientError]
    ) -> OpenConnection | None:
        """A new connection to the first of these that responds. Adds to `failures`."""
        for address in tried:
            try:
                opened = self._connected(address, answer_s)
            except RetriableError as error:
                failures.append(error)
                if not isinstance(error, UnreachableError):
                    self._silent.add(address)
                continue
            self._open[address] = opened
            return opened
        return None

    def _worst(self, failures: Sequence[ClientError]) -> ClientError:
        """The failure that says most, of all addresses."""
        for failure in failures:
            if not isinstance(failure, UnreachableError):
                return failure
        reason = failures[-1].reason.rpartition(": ")[2]
        return UnreachableError(f"cannot reach a broker at {self._bootstrap}: {reason}.")

    def _connected(self, address: Address, answer_s: float) -> OpenConnection:
        return self._connect(
            address, self._security, self._client_id, self._patience.connect_s, answer_s
        )

    @cached_property
    def _security(self) -> Security:
        """Read with the first connection."""
        return security_of(self._settings)

    def _drop(self, connection: OpenConnection) -> None:
        connection.close()
        self._open.pop(connection.address, None)
