"""A broker as a child process: starts it, reads its usage from /proc, ends it by its own id."""

import os
import signal
import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from ottla.testing.child_process import start_child

TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


class ChildDiedError(Exception):
    """The process ended, or did not start in time; the message has its last lines of output."""


def cpu_seconds_in(stat: str) -> float:
    """User and system time of a process and the children it waited for, from /proc/N/stat."""
    fields = stat.rpartition(")")[2].split()
    return sum(int(ticks) for ticks in fields[11:15]) / TICKS_PER_SECOND


class Child:
    """One child process, which cannot outlive this one. Ctrl-C reaches it only through us."""

    def __init__(
        self, command: Sequence[str], log: Path, environment: Mapping[str, str] | None = None
    ) -> None:
        self.log = log
        log.parent.mkdir(parents=True, exist_ok=True)
        self.started = time.monotonic()
        self.process = start_child(
            command, output=log, environment={**os.environ, **(environment or {})}
        )

    @property
    def pid(self) -> int:
        return self.process.pid

    def cpu_seconds(self) -> float:
        """CPU time so far: user and system, all threads."""
        return cpu_seconds_in(Path(f"/proc/{self.pid}/stat").read_text())

    def rss_bytes(self) -> int:
        """Resident memory now."""
        return int(Path(f"/proc/{self.pid}/statm").read_text().split()[1]) * PAGE_BYTES

    def peak_rss_bytes(self) -> int:
        """The most resident memory that it has had."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        return int(status.partition("VmHWM:")[2].split()[0]) * 1024

    def last_words(self, lines: int = 12) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])

    def wait_for_port(self, port: int, wait_ms: int) -> None:
        """Wait until the port accepts connections. Raises ChildDiedError if it does not."""
        limit = time.monotonic() + wait_ms / 1000
        while time.monotonic() < limit:
            if self.process.poll() is not None:
                raise ChildDiedError(
                    f"it ended with {self.process.returncode}:\n{self.last_words()}"
                )
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
            except OSError:
                time.sleep(0.005)
            else:
                return
        raise ChildDiedError(f"port {port} did not open in {wait_ms} ms:\n{self.last_words()}")

    def stop(self, wait_ms: int = 120_000) -> int:
        """SIGTERM, and SIGKILL after `wait_ms`; return the exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(wait_ms / 1000)
            except subprocess.TimeoutExpired:
                self.process.kill()
        return self.process.wait()

    def kill(self) -> None:
        """SIGKILL, as in a crash."""
        self.process.kill()
        self.process.wait()
