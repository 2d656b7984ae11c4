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
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
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
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "ottla", "console", "--bootstrap", f"{host}:{reached.port}"),
        WITH_PARENT,
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
