"""One broker as users run it: an `ottla serve` process on a port of this machine."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from ottla.testing.child_process import pause_child, start_child
from ottla.testing.errors import KitError, ProcessEndedError, is_for_the_test, last_lines

__tracebackhide__ = is_for_the_test

SERVE: Final = ("-m", "ottla", "serve")
READY: Final = re.compile(r"ready on (\S+:\d+)")
START_WITHIN_S: Final = 30.0
STOP_WITHIN_S: Final = 60.0
POLL_S: Final = 0.01


@dataclass(eq=False)
class BrokerProcess:
    """A broker with a data folder; `start` after `kill` or `stop` takes the same port and folder.

    `options` are further arguments of `ottla serve`. Clients connect to `bootstrap`; port 0 becomes
    a free port at the first start. As a context manager it starts and stops the broker.
    """

    data: Path
    options: list[str] = field(default_factory=list)
    bootstrap: str = "127.0.0.1:0"
    process: subprocess.Popen[bytes] | None = None
    errors: Path | None = None
    """The standard error of all starts, appended; beside the data folder."""
    program: Sequence[str] = SERVE
    """Python's arguments; `options` follow them."""
    is_paused: bool = False

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
        """Start the broker and wait until it is ready; raises KitError with its log otherwise."""
        self.launch()
        self.wait_ready()
        return self

    def launch(self) -> None:
        """Start the process and return at once."""
        assert not self.running, "the broker is running already"
        self.is_paused = False
        self.data.parent.mkdir(parents=True, exist_ok=True)
        self.errors = self.data.parent / f"{self.data.name}.stderr"
        self._output = self.data.parent / f"{self.data.name}.stdout"
        self._log_size_before_bytes = self._output.stat().st_size if self._output.exists() else 0
        words = ["--data", str(self.data), *self.options]
        if "--listen" not in self.options and not any(
            word.startswith("listeners=") for word in self.options
        ):
            words = ["--listen", self.bootstrap, *words]
        self.process = start_child(
            [sys.executable, *self.program, *words],
            output=self._output,
            errors=self.errors,
        )

    def wait_ready(self, timeout_s: float = START_WITHIN_S) -> None:
        """Wait until the broker logs that it is ready; raises KitError with its log."""
        until = time.monotonic() + timeout_s
        while not self.is_ready():
            if time.monotonic() > until:
                raise KitError(
                    f"the broker on {self.data} was not ready within {timeout_s:g} s:"
                    f"{last_lines(self.said())}"
                )
            time.sleep(POLL_S)

    def is_ready(self) -> bool:
        """Whether the broker has logged that it is ready; raises ProcessEndedError if it exited."""
        if found := READY.search(self._start_log()):
            if self.bootstrap.endswith(":0"):
                self.bootstrap = found[1]
            return True
        if self.running:
            return False
        lines = self.said().strip().splitlines()
        why = lines[-1] if lines else "no output"
        raise ProcessEndedError(
            f"the broker on {self.data} exited during its start:{last_lines(self.said())}", why
        )

    def _start_log(self) -> str:
        with self._output.open("rb") as output:
            output.seek(self._log_size_before_bytes)
            return output.read(1 << 16).decode(errors="replace")

    @property
    def running(self) -> bool:
        """Whether the process exists; a paused one does."""
        return self.process is not None and self.process.poll() is None

    def said(self) -> str:
        """The broker's log: everything it wrote to standard error since the first start."""
        if self.errors is None or not self.errors.exists():
            return ""
        return self.errors.read_text(errors="replace")

    def kill(self) -> None:
        """SIGKILL: the process ends at once, without a shutdown."""
        assert self.process is not None, "the broker was never started"
        self.process.send_signal(signal.SIGKILL)
        self._wait(STOP_WITHIN_S)

    def stop(self, timeout_s: float = STOP_WITHIN_S) -> int:
        """SIGTERM, the controlled shutdown; returns the exit code, 0 on success."""
        self.ask_to_stop()
        return self._wait(timeout_s)

    def ask_to_stop(self) -> None:
        """SIGTERM without waiting."""
        assert self.process is not None, "the broker was never started"
        if self.running:
            self.process.send_signal(signal.SIGTERM)

    def pause(self) -> None:
        """SIGSTOP: the broker stops working, but its connections stay open."""
        assert self.running, "the broker is not running"
        assert self.process is not None
        pause_child(self.process)
        self.is_paused = True

    def resume(self) -> None:
        """SIGCONT: a paused broker continues as if no time had passed."""
        if self.running:
            assert self.process is not None
            self.process.send_signal(signal.SIGCONT)
        self.is_paused = False

    def end(self) -> None:
        """Kill the process whatever its state; for the end of a test."""
        if not self.running:
            return
        self.resume()
        try:
            self.stop()
        except KitError:
            self.kill()
            raise

    def _wait(self, timeout_s: float) -> int:
        assert self.process is not None
        try:
            return self.process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            raise KitError(
                f"the broker on {self.data} did not stop within {timeout_s:g} s:"
                f"{last_lines(self.said())}"
            ) from None
