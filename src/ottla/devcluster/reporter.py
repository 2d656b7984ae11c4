"""To whom a cluster for development reports what happens to it."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from ottla.security.development.secure_folder import SecureFolder


class Reporter(Protocol):
    """Texts may hold control characters: the last line of a process's log is in some of them."""

    def process_is_up(self, name: str, address: str, remark: str) -> None:
        """A process accepts requests: `broker 1`, its HOST:PORT, and how long that took."""

    def cluster_is_ready(self, data: Path, bootstrap: str, secured: SecureFolder | None) -> None:
        """All brokers serve. `data` has their folders and logs; `secured` the passwords, if clients
        need one.
        """

    def note(self, text: str) -> None:
        """What happened otherwise, in a sentence: a process exited, a broker was stopped."""
