"""Opens connections to a secured listener, from processes of their own.

`python -m bench.connecting ADDRESS SETTING=VALUE ...`: the settings are librdkafka's. Each line on
stdin, "COUNT close" or "COUNT keep", opens so many connections one after the other, each with TLS,
SCRAM and one request. "close" closes each before the next, "keep" keeps them open until the process
ends. Prints "ready" first, then the seconds that each line took.
"""

import subprocess
import sys
import time
from contextlib import ExitStack
from typing import IO, Self

from bench.measure import ClientError
from bench.secured import Secured
from ottla.client.addresses import Address
from ottla.client.connection import Connection, open_connection
from ottla.client.security import Security, security_of

WAIT_SECONDS = 300.0
CLOSE = "close"
KEEP = "keep"


class Connecting:
    """A context manager with processes that connect at the same time."""

    def __init__(self, secured: Secured, processes: int) -> None:
        settings = [f"{name}={value}" for name, value in secured.client.items()]
        self._command = [sys.executable, "-m", "bench.connecting", secured.address, *settings]
        self._processes: list[subprocess.Popen[str]] = []
        self._count = processes

    def __enter__(self) -> Self:
        for _ in range(self._count):
            started = subprocess.Popen(
                self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
            self._processes.append(started)
        for each in self._processes:
            _line(each)
        return self

    def connect(self, count: int, how: str) -> float:
        """Open `count` connections by all processes together; the seconds until the last."""
        for each in self._processes:
            told = _stdin(each)
            told.write(f"{count // len(self._processes)} {how}\n")
            told.flush()
        return max(float(_line(each)) for each in self._processes)

    def __exit__(self, *_: object) -> None:
        for each in self._processes:
            _stdin(each).close()
        for each in self._processes:
            try:
                each.wait(10)
            except subprocess.TimeoutExpired:
                each.kill()
                each.wait()
            assert each.stdout is not None
            each.stdout.close()


def _stdin(process: subprocess.Popen[str]) -> IO[str]:
    assert process.stdin is not None
    return process.stdin


def _line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        raise ClientError(f"a client ended with {process.wait(WAIT_SECONDS)}")
    return line


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
