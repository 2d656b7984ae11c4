"""A reporter that keeps what a cluster reports."""

from __future__ import annotations

from pathlib import Path

from ottla.security.development.secure_folder import SecureFolder


class Reports:
    """`notes` in order, the names of `up` processes, and whether all is `ready`."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.up: list[str] = []
        self.ready = False

    def process_is_up(self, name: str, address: str, remark: str) -> None:
        self.up.append(name)

    def cluster_is_ready(self, data: Path, bootstrap: str, secured: SecureFolder | None) -> None:
        self.ready = True

    def note(self, text: str) -> None:
        self.notes.append(text)
