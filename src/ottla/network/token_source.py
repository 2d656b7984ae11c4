"""This broker's own token of OAUTHBEARER, for connections to other brokers (KIP-768).

From a file, or from the issuer by client credentials (RFC 6749, section 4.4), as Kafka's
OAuthBearerLoginCallbackHandler. It is got when a connection needs it, and again when its time to
be refreshed has come; until it expires, it serves if no other can be had. Kafka limits the silence
of the issuer only; here the whole request has a limit, as all connections to brokers wait for it.
"""

from __future__ import annotations

import asyncio
import base64
import http.client
import json
import logging
import time
from collections.abc import Callable
from random import random
from typing import Final
from urllib.parse import quote_plus

from ottla.config.listener_tokens import TokenLogin
from ottla.network.bounded_read import BoundedReads, Reader
from ottla.network.key_reader import SILENCE_MS, KeyFile, KeyRequest
from ottla.protocol.sasl_client import SaslError
from ottla.security.sasl.own_token import OwnToken, read_token
from ottla.security.sasl.signed_token import KeysError

logger = logging.getLogger("ottla.tokens")

MAX_SAID_CHARACTERS: Final = 200


class TokenRequest(KeyRequest):
    """One POST for a token."""

    def __init__(self, login: TokenLogin) -> None:
        silence_ms = max(login.connect_ms or 0, login.read_ms or 0) or SILENCE_MS
        super().__init__(login.url, login.authorities, silence_ms)
        self._login = login

    def ask(self, connection: http.client.HTTPConnection, target: str) -> None:
        login = self._login
        text = f"{login.client_id}:{login.client_secret}"
        body = "grant_type=client_credentials"
        if login.scope:
            body += f"&scope={quote_plus(login.scope)}"
        headers = {
            "Accept": "application/json",
            "Authorization": f"Basic {base64.b64encode(text.encode()).decode()}",
            "Cache-Control": "no-cache",
            "Content-Type": "application/x-www-form-urlencoded",
        }
        connection.request("POST", target, body=body.encode(), headers=headers)

    def why(self, text: bytes) -> str:
        try:
            said = json.loads(text)
            words = [str(said[name]) for name in ("error", "error_description") if name in said]
        except (ValueError, TypeError, RecursionError):
            return ""
        return f" ({' - '.join(words)[:MAX_SAID_CHARACTERS]})" if words else ""


def new_request(login: TokenLogin) -> Reader:
    """Reads the file, or asks the issuer."""
    return KeyFile(login.url) if login.url.startswith("file:") else TokenRequest(login)


class TokenSource:
    """For the event loop's thread only."""

    def __init__(
        self,
        login: TokenLogin,
        *,
        now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
        new_reader: Callable[[TokenLogin], Reader] = new_request,
    ) -> None:
        self._login = login
        self._now_ms = now_ms
        self._new_reader = new_reader
        self._reads = BoundedReads("own-token")
        self._token: OwnToken | None = None
        self._refresh_ms = 0
        self._getting: asyncio.Task[None] | None = None
        self._failure: SaslError | None = None
        self._again_ms = 0
        """After a failure, the next attempt."""
        self._pause_ms = login.retry_ms

    async def token(self) -> str:
        """Raises SaslError."""
        if self._token is None or self._now_ms() >= self._refresh_ms:
            await self._refresh()
        token = self._token
        if token is None or token.expires_ms <= self._now_ms():
            raise self._failure or SaslError(f"the token from {self._login.url} has expired")
        return token.text

    async def get(self) -> str:
        """Another token. Raises SaslError."""
        try:
            return await self._reads.read(self._new_reader(self._login), self._token_in)
        except KeysError as error:
            raise SaslError(f"no token from {self._login.url}: {error}") from None

    def _token_in(self, text: bytes) -> str:
        if self._login.url.startswith("file:"):
            if not text.isascii():
                raise KeysError("it is no token")
            return text.decode()
        try:
            answer = json.loads(text)
            token = answer.get("access_token") if isinstance(answer, dict) else None
        except (ValueError, RecursionError):
            token = None
        if not isinstance(token, str):
            raise KeysError("its answer has no access_token")
        return token

    async def _refresh(self) -> None:
        if self._failure is not None and self._now_ms() < self._again_ms:
            return
        if self._getting is None:
            self._getting = asyncio.get_running_loop().create_task(self._get_another())
            self._getting.add_done_callback(self._got)
        # Several connections may wait for it; the first to give up must not cancel it.
        await asyncio.shield(self._getting)

    def _got(self, task: asyncio.Task[None]) -> None:
        self._getting = None

    async def _get_another(self) -> None:
        try:
            token = read_token(await self.get())
        except SaslError as error:
            if str(error) != str(self._failure):
                logger.warning("%s; trying again", error)
            self._failure = error
            self._again_ms = self._now_ms() + self._pause_ms
            self._pause_ms = min(self._pause_ms * 2, self._login.max_retry_ms)
            return
        self._failure, self._pause_ms = None, self._login.retry_ms
        self._token = token
        self._refresh_ms = self._login.refresh.at_ms(token, self._now_ms(), random())
