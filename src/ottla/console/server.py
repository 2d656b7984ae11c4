"""The process: serves the pages until a signal stops it."""

from __future__ import annotations

import asyncio
import signal
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Final

import uvicorn

from ottla.console.application import application, import_rest_soon
from ottla.console.console import Console
from ottla.console.guard import LOOPBACK, is_loopback
from ottla.wording.errors import ReportedError

MAX_CONNECTIONS: Final = 256
STOP_WITHIN_S: Final = 2
"""Until connections are cut, in which a visitor still gets something."""
CANCEL_AFTER_S: Final = STOP_WITHIN_S + 2
"""Uvicorn would cancel what runs then, and show a traceback of each: nothing should."""
BACKLOG: Final = 128
STOPPING: Final = (signal.SIGINT, signal.SIGTERM)


class ListenError(ReportedError):
    """The address or the certificate cannot be used."""


@dataclass(frozen=True, slots=True)
class Listen:
    """Where browsers reach the console. `names`: by which they may call it, besides the host."""

    host: str
    port: int
    names: Sequence[str] = ()
    certificate: Path | None = None
    key: Path | None = None

    @property
    def hosts(self) -> list[str]:
        """All names that a browser may use."""
        own = LOOPBACK if is_loopback(self.host) else frozenset[str]()
        return sorted({*own, self.host, *self.names} - {"", "0.0.0.0", "::"})


def bound(listen: Listen) -> socket.socket:
    """The socket. Raises ListenError."""
    family = socket.AF_INET6 if ":" in listen.host else socket.AF_INET
    made = socket.socket(family)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((listen.host, listen.port))
        made.listen(BACKLOG)
    except OSError as error:
        made.close()
        reason = (error.strerror or str(error)).lower()
        raise ListenError(
            f"cannot listen on {listen.host}:{listen.port}: {reason}.",
            "Choose another port: ottla console --listen 127.0.0.1:0 takes a free one.",
        ) from None
    return made


def address_of(listen: Listen, port: int) -> str:
    """What to type into a browser."""
    scheme = "https" if listen.certificate else "http"
    host = f"[{listen.host}]" if ":" in listen.host else listen.host
    return f"{scheme}://{host}:{port}/"


class _Server(uvicorn.Server):
    """Ends in peace when a signal stops it: uvicorn's raises the signal again, so that the process
    ends by it, and cancels the requests that wait, with a traceback for each.
    """

    def __init__(self, config: uvicorn.Config, console: Console) -> None:
        super().__init__(config)
        self._console = console

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """A second signal ends nothing sooner: it stops within moments."""
        self.should_exit = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Pages and streams that wait for the cluster are answered that it stops. Who reads his
        answer slowly, or sends his form slowly, is cut off after a while, as if he had left.
        """
        self._console.stop()
        asyncio.get_running_loop().call_later(STOP_WITHIN_S, self._cut)
        await super().shutdown(sockets)

    def _cut(self) -> None:
        for connection in [*self.server_state.connections]:
            connection.transport.abort()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {each: signal.signal(each, self.handle_exit) for each in STOPPING}
        try:
            yield
        finally:
            for each, handler in before.items():
                signal.signal(each, handler)


def server_of(console: Console, listen: Listen) -> uvicorn.Server:
    """The server, to be run with a socket. Raises ListenError."""
    config = uvicorn.Config(
        application(console, listen.hosts),
        log_level="warning",
        access_log=False,
        server_header=False,
        lifespan="off",
        ws="none",
        limit_concurrency=MAX_CONNECTIONS,
        timeout_graceful_shutdown=CANCEL_AFTER_S,
        ssl_certfile=listen.certificate,
        ssl_keyfile=listen.key,
        proxy_headers=False,
    )
    try:
        config.load()
    except OSError as error:  # that of TLS is one, too
        raise ListenError(
            f"cannot listen with the certificate {listen.certificate} and the key {listen.key}: "
            f"{(error.strerror or str(error)).lower()}.",
            "Both are PEM files, and the key is that of the certificate.",
        ) from None
    return _Server(config, console)


def serve(console: Console, listen: Listen, say: Callable[[str], None]) -> None:
    """Serves until SIGINT or SIGTERM. `say` gets the address once it is reached. Raises
    ListenError.
    """
    listening = bound(listen)
    console.port = listening.getsockname()[1]
    try:
        server = server_of(console, listen)
        say(address_of(listen, console.port))
        import_rest_soon()
        server.run(sockets=[listening])
    finally:
        console.close()
        listening.close()
