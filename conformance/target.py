"""The broker under test: one of our own, started here, or any at a given address."""

import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

from bench.child import Child, free_port

# What the suites expect of a broker. Two of librdkafka's tests (0102, 0118) take for granted that
# consumers which subscribe one after the other are in a group's first generation together; without
# a wait for that they are a race, which Apache Kafka loses as well.
SETTINGS: Mapping[str, str] = {
    "num.partitions": "4",
    "auto.create.topics.enable": "true",
    "group.initial.rebalance.delay.ms": "500",
}
START_WAIT_MS = 30_000


class Target:
    """A broker's address, and its data folder where that is known. As a context manager."""

    def __init__(self, bootstrap: str | None, data: Path | None) -> None:
        self._scratch: tempfile.TemporaryDirectory[str] | None = None
        self._child: Child | None = None
        self._own = bootstrap is None
        self.bootstrap = bootstrap or f"127.0.0.1:{free_port()}"
        self.data = data

    @property
    def host(self) -> str:
        return self.bootstrap.rpartition(":")[0]

    @property
    def port(self) -> int:
        return int(self.bootstrap.rpartition(":")[2])

    def __enter__(self) -> "Target":
        if self._own:
            self._scratch = tempfile.TemporaryDirectory(prefix="ottla-", ignore_cleanup_errors=True)
            self.data = Path(self._scratch.name) / "data"
            self._start()
        return self

    def _start(self) -> None:
        assert self._scratch is not None
        command = [str(Path(sys.executable).with_name("ottla")), "serve"]
        command += ["--listen", self.bootstrap, "--data", str(self.data)]
        for name, value in SETTINGS.items():
            command += ["--config", f"{name}={value}"]
        self._child = Child(command, Path(self._scratch.name) / "broker.log")
        self._child.wait_for_port(self.port, START_WAIT_MS)

    def died(self) -> str | None:
        """The broker's last words, if it is ours and has ended."""
        if self._child is None or self._child.process.poll() is None:
            return None
        return self._child.last_words()

    def log(self) -> str:
        """What our broker has written; empty for a broker of somebody else."""
        return self._child.log.read_text(errors="replace") if self._child else ""

    def stop(self) -> None:
        """Stop a broker of ours, cleanly, and keep its data folder until the `with` ends."""
        if self._child is not None:
            self._child.stop()
            self._child = None

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()
        if self._scratch is not None:
            self._scratch.cleanup()
