"""Stands for Toxiproxy: TCP proxies, and the part of its HTTP interface that sarama's tests use.

A proxy can be closed and opened again, delay answers (the toxic `latency`), and reset connections
(the toxic `reset_peer`); `/reset` opens all of them and ends their toxics. Anything else is
refused, so that a test never goes on as if it had been done.
"""

import asyncio
import json
import threading
from collections.abc import Coroutine, Mapping
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final, Self

from ottla.testing.ports import HOST
from ottla.testing.proxy import LOOK_AGAIN_S, Proxy

CALL_WITHIN_S: Final = 30.0
MAX_BODY_BYTES: Final = 1 << 16


class Toxiproxy:
    """A context manager; `url` is where its interface listens. All proxies are open at first."""

    def __init__(self, ports: Mapping[str, tuple[int, int]]) -> None:
        """`ports`: by the proxy's name, where it listens and where its target does."""
        self._resetting: set[int] = set()
        self._proxies = {
            name: Proxy(number, port, (HOST, target), self._is_reset)
            for number, (name, (port, target)) in enumerate(ports.items())
        }
        self._loop = asyncio.new_event_loop()
        self._server = ThreadingHTTPServer((HOST, 0), partial(_Interface, self))
        self.url = f"http://{HOST}:{self._server.server_address[1]}"
        self._threads = [
            threading.Thread(target=self._loop.run_forever, name="toxiproxy", daemon=True),
            threading.Thread(target=self._server.serve_forever, name="toxiproxy-http", daemon=True),
        ]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        self._call(self._start())
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._call(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        for thread in self._threads:
            thread.join()
        self._loop.close()

    def __contains__(self, name: object) -> bool:
        return name in self._proxies

    def told(self, name: str) -> dict[str, object]:
        """The proxy as Toxiproxy describes it; raises KeyError for an unknown name."""
        proxy = self._proxies[name]
        host, port = proxy.target
        return {
            "name": name,
            "listen": f"{HOST}:{proxy.port}",
            "upstream": f"{host}:{port}",
            "enabled": proxy.is_open,
        }

    def switch(self, name: str, *, enabled: bool) -> None:
        """Open the proxy, until it listens; or close it with all its connections."""
        proxy = self._proxies[name]
        self._call(self._open(proxy) if enabled else self._shut(proxy))

    def add_latency(self, name: str, latency_ms: int) -> None:
        """Delay the answers of all connections through the proxy."""
        self._call(self._delay(self._proxies[name], latency_ms / 1000))

    def add_reset(self, name: str) -> None:
        """End all connections through the proxy, present and future, with a TCP reset."""
        self._call(self._begin_resets(self._proxies[name]))

    def reset(self) -> None:
        """Open every proxy and end all toxics."""
        self._call(self._restore())

    def _is_reset(self, caller: int, _owner: int) -> bool:
        return caller in self._resetting

    def _call(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(CALL_WITHIN_S)

    # On the loop's thread, as the proxies require.

    async def _start(self) -> None:
        for proxy in self._proxies.values():
            proxy.open()
        await self._restore()

    async def _close(self) -> None:
        for proxy in self._proxies.values():
            await proxy.close()
        # Tasks that were cancelled end within one or two turns of the loop.
        await asyncio.sleep(0.05)

    @staticmethod
    async def _open(proxy: Proxy) -> None:
        proxy.may_open()
        while not proxy.is_open:
            await asyncio.sleep(LOOK_AGAIN_S)

    @staticmethod
    async def _shut(proxy: Proxy) -> None:
        proxy.shut(stay=True)
        proxy.abort_links(lambda link: True)

    @staticmethod
    async def _delay(proxy: Proxy, delay_s: float) -> None:
        proxy.answer_delay_s = delay_s

    async def _begin_resets(self, proxy: Proxy) -> None:
        self._resetting.add(proxy.owner)
        proxy.resets = True
        proxy.cut_links()

    async def _restore(self) -> None:
        self._resetting.clear()
        for proxy in self._proxies.values():
            proxy.answer_delay_s = 0.0
            proxy.resets = False
            proxy.heal_links()
            await self._open(proxy)


class _Interface(BaseHTTPRequestHandler):
    """The HTTP interface. A refused request gets 400, 404 or 501 and a reason."""

    def __init__(self, proxies: Toxiproxy, *given: Any) -> None:
        self._proxies = proxies
        super().__init__(*given)

    def do_GET(self) -> None:
        match self.path.strip("/").split("/"):
            case ["proxies", name]:
                self._tell(name)
            case _:
                self._answer(501, {"error": "not served"})

    def do_POST(self) -> None:
        match self.path.strip("/").split("/"):
            case ["reset"]:
                self._proxies.reset()
                self._answer(204)
            case ["proxies", name] if name in self._proxies:
                self._proxies.switch(name, enabled=self._body().get("enabled") is not False)
                self._tell(name)
            case ["proxies", name, "toxics"] if name in self._proxies:
                self._add_toxic(name, self._body())
            case ["proxies", _, *_]:
                self._answer(404, {"error": "proxy not found"})
            case _:
                self._answer(501, {"error": "not served"})

    def _add_toxic(self, name: str, toxic: Mapping[str, Any]) -> None:
        # Both act on what the broker answers.
        if (toxic.get("stream") or "downstream") != "downstream" or toxic.get("toxicity", 1) != 1:
            self._answer(400, {"error": "only for all of downstream"})
            return
        attributes = toxic.get("attributes") or {}
        match toxic.get("type"), attributes:
            case "latency", {"latency": int(latency_ms), **rest} if not rest:
                self._proxies.add_latency(name, latency_ms)
            case "reset_peer", _ if not attributes:
                self._proxies.add_reset(name)
            case _:
                self._answer(400, {"error": "invalid toxic"})
                return
        self._answer(200, toxic)

    def _tell(self, name: str) -> None:
        if name in self._proxies:
            self._answer(200, self._proxies.told(name))
        else:
            self._answer(404, {"error": "proxy not found"})

    def _body(self) -> dict[str, Any]:
        size_bytes = min(int(self.headers.get("Content-Length", 0)), MAX_BODY_BYTES)
        found = json.loads(self.rfile.read(size_bytes))
        assert isinstance(found, dict), found
        return found

    def _answer(self, status: int, content: Mapping[str, object] | None = None) -> None:
        self.send_response(status)
        body = b"" if content is None else json.dumps(content).encode()
        if content is not None:
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass
