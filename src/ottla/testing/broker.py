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
from ottla.testing.secured import Secured
from ottla.testing.timed import Timed
from ottla.testing.topics import Topics

if TYPE_CHECKING:
    from ottla.testing.security import Security

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

    def advance_over_locks(self, _: str) -> int:
        """Raises KitError."""
        return self.advance()


class Broker(Secured, Timed):
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
        self._has_begun = False
        options = [word for pair in (config or {}).items() for word in ("-c", _setting(*pair))]
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
        from ottla.security.development.secure_folder import PROTOCOL
        from ottla.testing.security import CERTIFIED, SecuredClients

        try:
            self._clients = SecuredClients(security, self._folder / "secure")
        except BaseException:
            shutil.rmtree(self._folder, ignore_errors=True)
            raise
        port, other = free_ports(2)
        listeners = {PROTOCOL: f"{HOST}:{port}"}
        if security.certificates:
            listeners[CERTIFIED] = self._certified = f"{HOST}:{other}"
        return listeners[PROTOCOL], self._clients.options(listeners)

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


def _setting(name: str, value: object) -> str:
    return f"{name}={str(value).lower() if isinstance(value, bool) else value}"
