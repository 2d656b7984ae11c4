"""The console that `ottla serve --console` runs beside its broker: a child, which ends with it.

If the broker is killed, the child notices that it has another parent, and stops.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from ottla.cli.failures import Failed

if TYPE_CHECKING:
    from ottla.node.node import Node

NEEDED: Final = ("starlette", "uvicorn", "jinja2")
EXTRA: Final = "pip install 'ottla[console]'"
WITH_PARENT: Final = "--stop-with-parent"
STOP_WITHIN_S: Final = 10.0
LOOK_EVERY_S: Final = 1.0


def check_installed() -> None:
    """Raises Failed if the extra is not installed."""
    for name in NEEDED:
        if find_spec(name) is None:
            raise Failed(f"the console needs {name}, which is not installed.", EXTRA)


@asynccontextmanager
async def console_beside(node: Node) -> AsyncIterator[None]:
    """Runs it; it prints its own address. If it cannot start or ends, the broker goes on."""
    reached = next(iter(node.endpoints))
    host = f"[{reached.host}]" if ":" in reached.host else reached.host
    async with _running(["--bootstrap", f"{host}:{reached.port}"]):
        yield


def secured_beside(
    opened: Callable[[Node], AbstractAsyncContextManager[None]],
    profile: Callable[[], str | None],
    warn: Callable[[str], None],
) -> Callable[[Node], AbstractAsyncContextManager[None]]:
    """The same for a broker with users. Once `opened`, there is a profile, whose name `profile`
    gives. Everybody on this machine reaches the console, so who visits it logs in as a user of the
    broker, and sees and does what that user may.
    """

    @asynccontextmanager
    async def both(node: Node) -> AsyncIterator[None]:
        async with opened(node):
            name = await asyncio.to_thread(profile)
            if name is None:
                warn("without a profile there is no console.")
                yield
                return
            async with _running(["--profile", name, "--sasl-login"]):
                yield

    return both


@asynccontextmanager
async def _running(words: Sequence[str]) -> AsyncIterator[None]:
    """The process of a console with these options."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "ottla", "console", *words, WITH_PARENT),
        stdin=asyncio.subprocess.DEVNULL,
        # Ctrl-C is for the broker, which then stops it.
        start_new_session=True,
    )
    try:
        yield
    finally:
        if process.returncode is None:
            process.terminate()
            try:
                await asyncio.wait_for(process.wait(), STOP_WITHIN_S)
            except TimeoutError:
                process.kill()
                await process.wait()


def stop_with_parent() -> None:
    """From now on this process stops once its parent has ended."""
    parent = os.getppid()

    def look() -> None:
        while os.getppid() == parent:
            time.sleep(LOOK_EVERY_S)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=look, daemon=True).start()
