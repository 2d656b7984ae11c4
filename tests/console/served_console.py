"""A console as it is served, and a visitor who speaks plain HTTP to it."""

from __future__ import annotations

import html
import http.client
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import urlencode

from ottla.client.client import Client
from ottla.console.access import Access
from ottla.console.console import Console
from ottla.console.server import Listen, bound, server_of

HOST = "127.0.0.1"
WAIT_S = 30
T = TypeVar("T")
TOKEN = re.compile(r'name="token" value="([^"]+)"')


@dataclass(frozen=True)
class Got:
    """A response."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()

    @property
    def words(self) -> str:
        """What a reader sees."""
        without = re.sub(r"(?s)<(style|script|title).*?</\1>|<[^>]+>", " ", self.text)
        return " ".join(html.unescape(without).split())


class Visitor:
    """A browser without JavaScript: it keeps cookies and follows redirects."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.cookies: dict[str, str] = {}

    def ask(
        self, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] = {}
    ) -> Got:
        """One request, without following."""
        connection = http.client.HTTPConnection(HOST, self.port, timeout=WAIT_S)
        cookies = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        try:
            connection.request(method, path, body, {"Cookie": cookies, **headers})
            response = connection.getresponse()
            found = response.read()
        finally:
            connection.close()
        for line in response.headers.get_all("Set-Cookie", []):
            name, _, value = line.partition(";")[0].partition("=")
            self.cookies[name] = value
        return Got(
            response.status, {name.lower(): value for name, value in response.getheaders()}, found
        )

    def get(self, path: str) -> Got:
        """The page, also where it is elsewhere."""
        found = self.ask("GET", path)
        return self.get(found.headers["location"]) if found.status == 303 else found

    def post(self, path: str, /, **fields: Any) -> Got:
        """What a form leads to."""
        found = self.send(path, **fields)
        return self.get(found.headers["location"]) if found.status == 303 else found

    def send(self, path: str, also: Mapping[str, str] = {}, /, **fields: Any) -> Got:
        """A form with the token of a page, if it has none. `also`: headers."""
        if "token" not in fields and (token := TOKEN.search(self.get("/topics/new").text)):
            fields["token"] = token[1]
        kind = {"Content-Type": "application/x-www-form-urlencoded"}
        return self.ask("POST", path, urlencode(fields).encode(), {**kind, **also})


@contextmanager
def serving(console: Console, listen: Listen | None = None) -> Iterator[Visitor]:
    """A visitor of the console, which is served meanwhile."""
    place = listen or Listen(HOST, 0)
    listening = bound(place)
    server = server_of(console, place)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        yield Visitor(listening.getsockname()[1])
    finally:
        server.should_exit = True
        thread.join(WAIT_S)
        assert not thread.is_alive()
        console.close()
        listening.close()


class FreshAccess(Access):
    """Asks the cluster each time: a test sees what it has done."""

    def kept_soon(self, name: str, for_s: float, ask: Callable[[Client], T]) -> T | None:
        with self.client() as client:
            return ask(client)

    def kept(self, name: str, for_s: float, ask: Callable[[], T]) -> T:
        return ask()


def console_of(bootstrap: str, **options: Any) -> Console:
    return Console(FreshAccess(bootstrap, {}, "tests"), **options)
