"""How `ottla cluster start` prints what happens to the cluster that it runs, and how it ends."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from ottla.cli.screen import note, say, write
from ottla.cli.secured_broker import introduction
from ottla.cli.wrapping import printable
from ottla.security.development.secure_folder import SecureFolder


class Printed:
    """The reporter of a cluster: one line for each thing that happens."""

    def process_is_up(self, name: str, address: str, remark: str) -> None:
        write(f"{name:<10}  {address:<21}  {remark}".rstrip() + "\n", flush=True)

    def cluster_is_ready(self, data: Path, bootstrap: str, secured: SecureFolder | None) -> None:
        if secured is not None:
            for line in introduction(secured, bootstrap, note):
                write(f"{line}\n")
        say(f"Ready. Data and logs are in {data}. Ctrl-C stops it.")
        if secured is None:
            write(f"  export OTTLA_BOOTSTRAP={bootstrap}\n")
        sys.stdout.flush()

    def note(self, text: str) -> None:
        for line in text.splitlines():
            note(printable(line))


@contextmanager
def interrupted_by_signals() -> Iterator[None]:
    """SIGTERM and SIGHUP act like Ctrl-C, and Ctrl-C also works in the background, where shells
    ignore it.

    `nohup` keeps its meaning.
    """

    def interrupt(_number: int, _frame: FrameType | None) -> NoReturn:
        raise KeyboardInterrupt

    before: dict[signal.Signals, Any] = {}
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
            before[number] = signal.signal(number, interrupt)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        with suppress(OSError):
            sys.stdout.flush()
