"""One broker that a test controls: Kafka's behaviour, and time, faults and retention on demand."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from ottla.testing.broker_process import BrokerProcess
from ottla.testing.control_socket import ControlSocket
from ottla.testing.errors import KitError
from ottla.testing.topics import Topics

_MS: Final = {"days": 86_400_000, "hours": 3_600_000, "minutes": 60_000, "seconds": 1_000}


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


class Broker(Topics):
    """`with Broker(config={"num.partitions": 3}) as broker:`, or `.start()` and `.end()`.

    It keeps its data in a temporary folder, or in `data`. `process` has what a broker's process
    can do: `kill`, `stop`, `start`, `pause`, `resume`, `said`.
    """

    def __init__(
        self, config: Mapping[str, object] | None = None, *, data: Path | None = None
    ) -> None:
        super().__init__()
        # Short: a Unix socket's path has 107 bytes at most.
        self._folder = Path(tempfile.mkdtemp(prefix="ottla-"))
        self._control = ControlSocket(self._folder / "control")
        options = [word for pair in (config or {}).items() for word in ("-c", _setting(*pair))]
        self.process = BrokerProcess(
            data or self._folder / "data", options, program=controlled_program(self._control)
        )

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
        except BaseException:
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

    def now_ms(self) -> int:
        """The broker's time, in ms since 1970."""
        return int(self._control.ask("now_ms"))

    def advance(
        self, *, days: float = 0, hours: float = 0, minutes: float = 0, seconds: float = 0
    ) -> int:
        """Let so much time pass for the broker at once; returns its time, in ms since 1970.

        Everything that the broker waits for elapses: retention, session timeouts, transaction
        timeouts. Clients keep the machine's time. So a record that a client stamps afterwards is
        old for the broker, unless the topic has `message.timestamp.type=LogAppendTime` or the
        client gives `broker.now_ms()` as the timestamp.
        """
        given = {"days": days, "hours": hours, "minutes": minutes, "seconds": seconds}
        by_ms = round(sum(amount * _MS[unit] for unit, amount in given.items()))
        if by_ms <= 0:
            raise KitError(f"time only goes forward: advance needs more than 0, not {by_ms} ms")
        return int(self._control.ask("advance", by_ms=by_ms))


def _setting(name: str, value: object) -> str:
    return f"{name}={str(value).lower() if isinstance(value, bool) else value}"
