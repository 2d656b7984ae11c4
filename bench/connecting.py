"""Opens connections to a secured listener, from processes of their own.

`python -m bench.connecting ADDRESS SETTING=VALUE ...`: the settings are librdkafka's. Each line on
stdin, "COUNT close" or "COUNT keep", opens so many connections one after the other, each with TLS,
SCRAM and one request. "close" closes each before the next, "keep" keeps them open until the process
ends. Prints "ready" first, then the seconds that each line took.
"""

import sys
import time
from contextlib import ExitStack
from typing import Self

from bench.client_process import WAIT_SECONDS, ClientProcess
from bench.secured import Secured
from ottla.client.addresses import Address
from ottla.client.connection import Connection, open_connection
from ottla.client.security import Security, security_of

CLOSE = "close"
KEEP = "keep"


class Connecting:
    """A context manager with processes that connect at the same time."""

    def __init__(self, secured: Secured, processes: int) -> None:
        settings = [f"{name}={value}" for name, value in secured.client.items()]
        self._words = [secured.address, *settings]
        self._count = processes
        self._processes: list[ClientProcess] = []
        self._running = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as started:
            for _ in range(self._count):
                process = ClientProcess("a client", "bench.connecting", self._words)
                self._processes.append(started.enter_context(process))
            for process in self._processes:
                process.wait_ready()
            self._running = started.pop_all()
        return self

    def connect(self, count: int, how: str) -> float:
        """Open `count` connections by all processes together; the seconds until the last."""
        for process in self._processes:
            process.tell(f"{count // len(self._processes)} {how}")
        return max(float(process.line()) for process in self._processes)

    def __exit__(self, *_: object) -> None:
        self._running.close()


def _connected(address: Address, security: Security) -> Connection:
    return open_connection(address, security, "bench", WAIT_SECONDS, WAIT_SECONDS)


def main() -> None:
    address, *words = sys.argv[1:]
    host, port = address.rsplit(":", 1)
    at = Address(host, int(port))
    security = security_of(dict(word.split("=", 1) for word in words))
    _connected(at, security).close()
    print("ready", flush=True)
    with ExitStack() as kept:
        for line in sys.stdin:
            count, how = line.split()
            began = time.monotonic()
            for _ in range(int(count)):
                connection = _connected(at, security)
                if how == CLOSE:
                    connection.close()
                else:
                    kept.callback(connection.close)
            print(time.monotonic() - began, flush=True)


if __name__ == "__main__":
    main()
