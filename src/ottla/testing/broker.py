"""One broker that a test controls: Kafka's behaviour, and time, faults and retention on demand."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

from ottla.testing.broker_process import BrokerProcess
from ottla.testing.control_socket import ControlSocket
from ottla.testing.errors import KitError, is_for_the_test
from ottla.testing.ports import HOST, free_ports
from ottla.testing.timed import Timed
from ottla.testing.topics import Topics

if TYPE_CHECKING:
    from ottla.testing.security import SecuredClients, Security

__tracebackhide__ = is_for_the_test

FREE: Final = "127.0.0.1:0"
"""The process chooses a port at its first start."""


def controlled_program(control: ControlSocket) -> tuple[str, ...]:
    """Python's arguments that start a controlled broker; the options of `ottla serve` follow."""
    return ("-m", "ottla.testing.controlled", "--control", str(control.path))


class SharedBroker(Topics):
    """A broker that someone else started, and that other tests use now or later. It can be given
    faults; but not more time, which would pass for all of them.
    """

    def __init__(self, bootstrap: str, control: ControlSocket) -> None:
        super().__init__()
        self._bootstrap = bootstrap
        self._control = control

    @property
    def bootstrap(self) -> str:
        """The address for clients, host and port."""
        return self._bootstrap

    def controls(self) -> Sequence[ControlSocket]:
        """Its socket."""
        return [self._control]

    def now_ms(self) -> int:
        """The broker's time, in ms since 1970."""
        return int(self._control.ask("now_ms"))

    def advance(self, **_: float) -> int:
        """Raises KitError."""
        raise KitError(
            "time would pass for every test on this broker:"
            " give this test its own with @pytest.mark.ottla, or use ottla.testing.Broker"
        )


class Broker(Timed):
    """`with Broker(config={"num.partitions": 3}) as broker:`, or `.start()` and `.end()`.

    It keeps its data in a temporary folder, or in `data`. `process` has what a broker's process
    can do: `kill`, `stop`, `start`, `pause`, `resume`, `said`. With `security` it has TLS, users
    and ACLs, and `client` has the settings with which one of the users connects.
    """

    def __init__(
        self,
        config: Mapping[str, object] | None = None,
        *,
        data: Path | None = None,
        security: Security | None = None,
    ) -> None:
        super().__init__()
        # Short: a Unix socket's path has 107 bytes at most.
        self._folder = Path(tempfile.mkdtemp(prefix="ottla-"))
        self._control = ControlSocket(self._folder / "control")
        self._certified = ""
        self._has_begun = False
        options = [word for pair in (config or {}).items() for word in ("-c", _setting(*pair))]
        self._clients: SecuredClients | None = None
        bootstrap = FREE
        if security is not None:
            bootstrap, secured = self._secure(security)
            options += secured
        self.process = BrokerProcess(
            data or self._folder / "data",
            options,
            bootstrap,
            program=controlled_program(self._control),
        )

    def _secure(self, security: Security) -> tuple[str, list[str]]:
        """The address for clients, and the options of the process."""
        # Imported late: most brokers of tests are not secured.
        from ottla.testing.security import SecuredClients

        try:
            self._clients = SecuredClients(security, self._folder / "secure")
        except BaseException:
            shutil.rmtree(self._folder, ignore_errors=True)
            raise
        port, other = free_ports(2)
        self._certified = f"{HOST}:{other}"
        certified = other if self._clients.has_certificates else None
        return f"{HOST}:{port}", self._clients.options(port, certified)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        _type: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self.end()

    def start(self) -> Self:
        """Start the process and wait until it is ready; raises KitError with its log otherwise."""
        try:
            self.process.start()
            if self._clients is not None and not self._has_begun:
                self._clients.begin(self.bootstrap)
                self._has_begun = True
        except BaseException:
            self.process.end()
            shutil.rmtree(self._folder, ignore_errors=True)
            raise
        return self

    def end(self) -> None:
        """Stop the process and delete the temporary folder. The kit's clients end too."""
        self._producer = None
        try:
            self.process.end()
        finally:
            shutil.rmtree(self._folder, ignore_errors=True)

    @property
    def bootstrap(self) -> str:
        """The address for clients, host and port."""
        return self.process.bootstrap

    def controls(self) -> Sequence[ControlSocket]:
        """Its own socket."""
        return [self._control]

    @property
    def kit_settings(self) -> Mapping[str, str]:
        return {} if self._clients is None else self._clients.kit_settings()

    @property
    def _secured(self) -> SecuredClients:
        if self._clients is None:
            raise KitError("this broker has no users: Broker(security=Security(...))")
        return self._clients

    @property
    def authority(self) -> Path:
        """The certificate, in PEM, of the authority that clients of a secured broker trust."""
        return self._secured.authority

    def client(self, user: str, password: str | None = None) -> dict[str, str]:
        """librdkafka's settings with which this user connects; `password`: another one than that of
        the user, or of a user that the broker does not know. Raises KitError.
        """
        settings = self._secured.settings(user, password)
        return {"bootstrap.servers": self.bootstrap, **settings}

    def certified_client(self, name: str) -> dict[str, str]:
        """librdkafka's settings with which the client with this certificate connects: it is
        `User:CN=<name>`. Raises KitError.
        """
        settings = self._secured.certified_settings(name)
        return {"bootstrap.servers": self._certified, **settings}

    def add_user(self, name: str, password: str) -> None:
        """Make a user, or give it another password."""
        self._secured.add_user(self.bootstrap, name, password)

    def delete_user(self, name: str) -> None:
        """Delete a user; its connections stay open."""
        self._secured.delete_user(self.bootstrap, name)

    def add_acls(self, *acls: str) -> None:
        """Add ACLs, each as after `ottla acl add`: `broker.add_acls("app Read topic orders")`. They
        are in force when this returns. Raises KitError.
        """
        self._secured.change_acls(self.bootstrap, acls, adds=True)

    def delete_acls(self, *acls: str) -> None:
        """Delete ACLs, named as for `add_acls`."""
        self._secured.change_acls(self.bootstrap, acls, adds=False)


def _setting(name: str, value: object) -> str:
    return f"{name}={str(value).lower() if isinstance(value, bool) else value}"
