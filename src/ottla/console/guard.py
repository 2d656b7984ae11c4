"""What every request passes first, and what every response carries.

- Host must name this console: a page of somebody else's whose name resolves to this address (DNS
  rebinding) is refused.
- What changes something (any method but GET and HEAD) must come from a page of this console: by
  Origin, or where a browser sends none, by Sec-Fetch-Site. `endpoint` asks for the form's token as
  well.
- A page of somebody else's may have a link here, but no picture or script: it could begin an export
  of a topic, whose records it would not see.
- Nothing that a page shows can run: no inline script and no inline style (Content-Security-Policy),
  nothing from another host, no frame around it.
"""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})
SAFE_METHODS: Final = frozenset({"GET", "HEAD"})
POLICY: Final = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)
HEADERS: Final = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches it."""
    if host in LOOPBACK:
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def host_name(authority: str) -> str | None:
    """The host of `HOST:PORT`, in lower case and without brackets; None if it is neither."""
    try:
        split = urlsplit(f"//{authority}")
        _ = split.port
    except ValueError:
        return None
    if not split.hostname or split.username is not None or split.path:
        return None
    return split.hostname.rstrip(".")


class Guard:
    """Wraps the application."""

    def __init__(self, app: ASGIApp, hosts: Iterable[str]) -> None:
        """`hosts`: the names by which browsers may call the console."""
        self._app = app
        self._hosts = {host.lower() for host in hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
                headers.setdefault("cache-control", "no-store")
            await send(message)

        refusal = self.refusal(scope["method"], Headers(scope=scope))
        if refusal is None:
            await self._app(scope, receive, send_guarded)
        else:
            await PlainTextResponse(refusal, 403)(scope, receive, send_guarded)

    def refusal(self, method: str, headers: Headers) -> str | None:
        """Why the request is refused; None if it is not."""
        authority = headers.get("host", "")
        name = host_name(authority)
        if name is None or name not in self._hosts:
            return (
                f"This console is not called {authority!r}.\n"
                "Use the address that it printed, or start it with --allow-host NAME.\n"
            )
        if method in SAFE_METHODS:
            is_others = headers.get("sec-fetch-site") in ("cross-site", "same-site")
            if is_others and headers.get("sec-fetch-dest", "document") != "document":
                return "Pages of others may link to this console, and load nothing from it.\n"
            return None
        origin = headers.get("origin")
        if origin is not None:
            if origin.lower().partition("://")[2] == authority.lower():
                return None
            return "This form does not come from this console.\n"
        if headers.get("sec-fetch-site", "same-origin") in ("same-origin", "none"):
            return None
        return "This form does not come from this console.\n"
