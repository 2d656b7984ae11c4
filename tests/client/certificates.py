"""A self-signed certificate, and a listener that speaks TLS for one that does not."""

from __future__ import annotations

import asyncio
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

WAIT_S = 20


def self_signed(folder: Path) -> Path:
    """A certificate of 127.0.0.1, with its key beside it: the same name, ending in .key."""
    path = folder / "own.pem"
    curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
    named = ["-subj", "/CN=own", "-addext", "subjectAltName=IP:127.0.0.1"]
    files = ["-keyout", str(path.with_suffix(".key")), "-out", str(path)]
    words = ["openssl", "req", "-x509", *curve, *named, *files]
    subprocess.run(words, check=True, capture_output=True, timeout=WAIT_S)
    return path


def server_context(certificate: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, certificate.with_suffix(".key"))
    return context


@contextmanager
def tls_in_front_of(
    listener: socket.socket, target: tuple[str, int], certificate: Path
) -> Iterator[None]:
    """Takes connections of `listener` with TLS, and passes on what is inside to `target`."""
    runner, ended = asyncio.Runner(), asyncio.Event()
    loop = runner.get_loop()

    async def pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await source.read(1 << 16):
                sink.write(data)
                await sink.drain()
        sink.close()

    async def serve(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        from_target, to_target = await asyncio.open_connection(*target)
        await asyncio.gather(pump(source, to_target), pump(from_target, sink))

    async def listen() -> None:
        server = await asyncio.start_server(serve, sock=listener, ssl=server_context(certificate))
        await ended.wait()
        server.close()

    thread = threading.Thread(target=lambda: runner.run(listen()))
    thread.start()
    try:
        yield
    finally:
        loop.call_soon_threadsafe(ended.set)
        thread.join(WAIT_S)
        assert not thread.is_alive()
        runner.close()
