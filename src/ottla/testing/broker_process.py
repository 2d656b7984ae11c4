"""One broker as its users have it: a process `ottla serve` on a port of this machine."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from ottla.testing.child_process import start_child
from ottla.testing.errors import KitError, ProcessEndedError, last_lines

READY: Final = re.compile(r"ready on (\S+:\d+)")
START_WITHIN_S: Final = 30.0
STOP_WITHIN_S: Final = 60.0
POLL_S: Final = 0.01


@dataclass(eq=False)
class BrokerProcess:
    """A broker with a data folder; `start` after `kill` or `stop` takes the same port and folder.

    `options` are further words of `ottla serve`. `bootstrap` is where clients connect; port 0
    becomes a free port with the first start. Also a context manager, which starts and stops.
    """

    data: Path
    options: list[str] = field(default_factory=list)
    bootstrap: str = "127.0.0.1:0"
    process: subprocess.Popen[bytes] | None = None
    errors: Path | None = None
    """Where standard error of all starts is appended, beside the data folder."""

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
        """Start and wait until it is ready; raises KitError with its log when it is not."""
        self.launch()
        self.wait_ready()
        return self

    def launch(self) -> None:
        """Start the process and return at once."""
        assert not self.running, "the broker is running already"
        self.data.parent.mkdir(parents=True, exist_ok=True)
        self.errors = self.data.parent / f"{self.data.name}.stderr"
        self._output = self.data.parent / f"{self.data.name}.stdout"
        self._said_before = self._output.stat().st_size if self._output.exists() else 0
        words = ["--data", str(self.data), *self.options]
        if "--listen" not in self.options and not any(
            word.startswith("listeners=") for word in self.options
        ):
            words = ["--listen", self.bootstrap, *words]
        self.process = start_child(
            [sys.executable, "-m", "ottla", "serve", *words],
            output=self._output,
            errors=self.errors,
        )

    def wait_ready(self, timeout_s: float = START_WITHIN_S) -> None:
        """Wait for the line that says the broker is ready; raises KitError with its log."""
        until = time.monotonic() + timeout_s
        while not self.is_ready():
            if time.monotonic() > until:
                raise KitError(
                    f"the broker on {self.data} was not ready within {timeout_s:g} s:"
                    f"{last_lines(self.said())}"
                )
            time.sleep(POLL_S)

    def is_ready(self) -> bool:
        """Whether it has said that it is ready; raises ProcessEndedError where it has ended."""
        if found := READY.search(self._printed()):
            if self.bootstrap.endswith(":0"):
                self.bootstrap = found[1]
            return True
        if self.running:
            return False
        lines = self.said().strip().splitlines()
        why = lines[-1] if lines else "it said nothing"
        raise ProcessEndedError(
            f"the broker on {self.data} ended at its start:{last_lines(self.said())}", why
        )

    def _printed(self) -> str:
        with self._output.open("rb") as output:
            output.seek(self._said_before)
            return output.read(1 << 16).decode(errors="replace")

    @property
    def running(self) -> bool:
        """Whether there is a process, be it a paused one."""
        return self.process is not None and self.process.poll() is None

    def said(self) -> str:
        """All that the broker wrote to standard error, its log, since the first start."""
        if self.errors is None or not self.errors.exists():
            return ""
        return self.errors.read_text(errors="replace")

    def kill(self) -> None:
        """SIGKILL: as a power cut is for the process, no goodbye."""
        assert self.process is not None, "the broker was never started"
        self.process.send_signal(signal.SIGKILL)
        self._wait(STOP_WITHIN_S)

    def stop(self, timeout_s: float = STOP_WITHIN_S) -> int:
        """SIGTERM, the controlled shutdown; gives the exit code, 0 when all is well."""
        self.ask_to_stop()
        return self._wait(timeout_s)

    def ask_to_stop(self) -> None:
        """SIGTERM without waiting."""
        assert self.process is not None, "the broker was never started"
        if self.running:
            self.process.send_signal(signal.SIGTERM)

    def pause(self) -> None:
        """SIGSTOP: the broker stands still, and its connections stay open."""
        assert self.running, "the broker is not running"
        assert self.process is not None
        self.process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """SIGCONT: a paused broker goes on as if no time had passed."""
        if self.running:
            assert self.process is not None
            self.process.send_signal(signal.SIGCONT)

    def end(self) -> None:
        """Be rid of the process whatever its state; for the end of a test."""
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
                f"the broker on {self.data} did not end within {timeout_s:g} s:"
                f"{last_lines(self.said())}"
            ) from None
