"""A measured client in a process of its own, which is told what to do line by line."""

import subprocess
import sys
from collections.abc import Sequence
from typing import Self

from bench.measure import ClientError

WAIT_SECONDS = 300.0
END_WITHIN_SECONDS = 10.0


class ClientProcess:
    """`python -m MODULE WORDS`, with a pipe to its stdin and one from its stdout. It ends when its
    stdin does, at the latest with the block.
    """

    def __init__(self, name: str, module: str, words: Sequence[str]) -> None:
        """`name`: what a failure calls it."""
        self._name = name
        self._process = subprocess.Popen(
            [sys.executable, "-m", module, *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._input, self._output = self._process.stdin, self._process.stdout

    def tell(self, line: str) -> None:
        self._input.write(f"{line}\n")
        self._input.flush()

    def line(self) -> str:
        """Its next line, without the end. Raises ClientError if it ended instead."""
        line = self._output.readline()
        if not line:
            raise ClientError(f"{self._name} ended with {self._process.wait(WAIT_SECONDS)}")
        return line.rstrip("\n")

    def wait_ready(self) -> None:
        """Raises ClientError if its first line is another one."""
        if (line := self.line()) != "ready":
            raise ClientError(f"{self._name} began with {line!r}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._input.close()
        try:
            self._process.wait(END_WITHIN_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._output.close()
