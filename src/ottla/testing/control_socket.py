"""Asks a controlled broker's process for operations; see `controlled.control_server`."""

from __future__ import annotations

import json
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ottla.testing.errors import KitError, is_for_the_test

__tracebackhide__ = is_for_the_test

TIMEOUT_S: Final = 60.0


@dataclass(frozen=True, slots=True)
class ControlSocket:
    """The socket of one broker. Each call is a connection of its own, so any thread or process may
    use it.
    """

    path: Path

    def is_open(self) -> bool:
        """Whether a broker answers here now."""
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(TIMEOUT_S)
            return connection.connect_ex(str(self.path)) == 0

    def ask(self, operation: str, **arguments: Any) -> Any:
        """The operation's result. Raises KitError with the broker's reason if it refuses."""
        line = json.dumps({"operation": operation, "arguments": arguments}).encode() + b"\n"
        try:
            with socket.socket(socket.AF_UNIX) as connection:
                connection.settimeout(TIMEOUT_S)
                connection.connect(str(self.path))
                connection.sendall(line)
                with connection.makefile("rb") as answers:
                    answer = answers.readline()
        except OSError as error:
            raise KitError(f"cannot ask the broker to {operation}: {error}") from None
        if not answer:
            raise KitError(f"the broker failed or ended when asked to {operation}")
        found = json.loads(answer)
        if "error" in found:
            raise KitError(found["error"])
        return found["result"]
