"""Accepts the connections of a listener with TLS: the handshake, bounded in time and number.

A connection is admitted before its handshake, and gets its protocol after it.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import ssl
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from ottla.network.newcomers import HANDSHAKE_WITHIN_MS, Newcomers
from ottla.network.refusals import Refusals
from ottla.network.tls_transport import accept, is_direct
from ottla.runtime.background import Background
from ottla.security.listener_tls import first_tls, load_tls, replaced_tls
from ottla.security.tls import TlsError, TlsOptions, state_of_files
from ottla.wording.plural import plural

logger = logging.getLogger("ottla.tls")

LOOK_AT_FILES_MS: Final = 5_000
RETRY_ACCEPT_MS: Final = 1_000
"""After the process had no free file number."""
_NO_TLS: Final = ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "HTTPS_PROXY_REQUEST", "PACKET_LENGTH")
_SAYS: Final = {
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": "it has shown no certificate, and ssl.client.auth is "
    "required here",
    "CERTIFICATE_VERIFY_FAILED": "its certificate is refused",
    "UNSUPPORTED_PROTOCOL": "it wants a version of TLS that ssl.enabled.protocols does not have",
    "NO_SHARED_CIPHER": "it has no cipher suite in common with this listener",
    "TLSV1_ALERT_UNKNOWN_CA": "it does not trust the authority of this broker's certificate",
    "SSLV3_ALERT_CERTIFICATE_UNKNOWN": "it does not trust this broker's certificate",
    "SSLV3_ALERT_BAD_CERTIFICATE": "it refuses this broker's certificate",
}
DAY_S: Final = 24 * 3600
EXPIRES_SOON_DAYS: Final = 30


class TlsAcceptor:
    """Of one listener. For the event loop's thread only."""

    def __init__(
        self,
        name: str,
        options: TlsOptions,
        newcomers: Newcomers,
        refusals: Refusals,
        *,
        arrive: Callable[[str, Callable[[], object], Callable[[], object]], object],
        release: Callable[[str], None],
        new_protocol: Callable[[Callable[[], None]], asyncio.BaseProtocol],
        now_ms: Callable[[], int],
        is_between_brokers: bool = False,
    ) -> None:
        """Reads the certificates. Raises TlsError. `now_ms`: since 1970.

        `arrive` admits a connection from an address: it calls the first function, now or later, or
        the second one, which closes it. `release` says that one that was admitted has ended; once
        the protocol has called what it was given, the protocol does it.
        """
        self._name = name
        self._newcomers = newcomers
        self._arrive = arrive
        self._release = release
        self._new_protocol = new_protocol
        self._state = state_of_files(options.files)
        self._tls = load_tls(options, is_between_brokers=is_between_brokers)
        self._now_ms = now_ms
        self._warn_again_s = 0
        self._sockets: list[socket.socket] = []
        self._tasks = Background(logger, f"the TLS of listener {name}")
        self._handshakes: set[asyncio.Task[None]] = set()
        self._refusals = refusals
        self._change = asyncio.Lock()
        """Two changes at once: the one that ends last might be the older one."""
        is_direct()  # imported here rather than while others are answered

    @property
    def certificate_ends_s(self) -> int | None:
        """When this listener's certificate expires, in s since 1970; None if that is not known."""
        return self._tls.ends_s

    @property
    def options(self) -> TlsOptions:
        """Those in force."""
        return self._tls.options

    def start(self, bound: Sequence[socket.socket], backlog: int) -> None:
        """Accepts connections on these sockets."""
        for each in bound:
            listening = socket.socket(fileno=os.dup(each.fileno()))
            listening.setblocking(False)
            listening.listen(backlog)
            self._sockets.append(listening)
            self._tasks.spawn(self._accept(listening))
        self.warn_of_expiry()
        self._tasks.spawn(self._follow_files())

    def stop(self) -> None:
        """Accepts no more; ends handshakes that are under way."""
        self._tasks.cancel()
        for task in self._handshakes:
            _cancel_soon(task)
        for each in self._sockets:
            each.close()
        self._sockets.clear()

    async def _accept(self, listening: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                accepted, address = await loop.sock_accept(listening)
            except ConnectionError:
                continue
            except OSError as error:
                logger.error("cannot accept a connection: %s", error.strerror or error)
                await asyncio.sleep(RETRY_ACCEPT_MS / 1000)
                continue
            accepted.setblocking(False)
            host = str(address[0])
            self._arrive(host, partial(self._begin, accepted, host), accepted.close)
            # asyncio's sock_accept waits for nothing while there are connections.
            await asyncio.sleep(0)

    def _begin(self, accepted: socket.socket, host: str) -> None:
        task = asyncio.get_running_loop().create_task(self._shake_hands(accepted, host))
        self._handshakes.add(task)
        self._newcomers.add(task, partial(_cancel_soon, task))
        task.add_done_callback(self._shook_hands)

    def _shook_hands(self, task: asyncio.Task[None]) -> None:
        self._handshakes.discard(task)
        self._newcomers.remove(task)

    async def _shake_hands(self, accepted: socket.socket, host: str) -> None:
        has_begun = False

        def begun() -> None:
            nonlocal has_begun
            has_begun = True

        transport: asyncio.BaseTransport | None = None
        try:
            transport = await accept(
                lambda: self._new_protocol(begun),
                accepted,
                self._tls.context,
                HANDSHAKE_WITHIN_MS / 1000,
            )
        except ssl.SSLError as error:
            self._refusals.say(host, why(error))
        except OSError as error:
            if isinstance(error, ConnectionAbortedError | TimeoutError):
                self._refusals.say(
                    host, f"its TLS handshake took more than {HANDSHAKE_WITHIN_MS} ms"
                )
            # Otherwise it has left.
        finally:
            if not has_begun:
                self._release(host)
                if transport is None:
                    accepted.close()

    async def _follow_files(self) -> None:
        """New connections get what the files have now; those that are open keep what they have."""
        while True:
            await asyncio.sleep(LOOK_AT_FILES_MS / 1000)
            await self.look_at_files()
            self.warn_of_expiry()

    def warn_of_expiry(self) -> None:
        """Once a day, from EXPIRES_SOON_DAYS before."""
        ends_s, now_s = self.certificate_ends_s, self._now_ms() // 1000
        if ends_s is None or now_s < self._warn_again_s:
            return
        left_days = (ends_s - now_s) // DAY_S
        if left_days >= EXPIRES_SOON_DAYS:
            return
        self._warn_again_s = now_s + DAY_S
        date = time.strftime("%Y-%m-%d", time.gmtime(ends_s))
        if ends_s <= now_s:
            logger.error(
                "the certificate of listener %s expired on %s: clients refuse it", self._name, date
            )
        else:
            logger.warning(
                "the certificate of listener %s expires in %s, on %s: clients will refuse it",
                self._name,
                plural(left_days, "day"),
                date,
            )

    async def look_at_files(self) -> None:
        """Reads the certificates again if a file has changed."""
        async with self._change:
            await self._replace(self._tls.options, is_first=False)

    async def change(self, options: TlsOptions, *, is_first: bool = False) -> bool:
        """Uses these for new connections, unless they must not replace what is in force; returns
        whether they are in force then. `is_first`: nothing has been used yet.
        """
        async with self._change:
            return await self._replace(options, is_first=is_first)

    async def _replace(self, options: TlsOptions, *, is_first: bool) -> bool:
        state = await asyncio.to_thread(state_of_files, options.files)
        if state == self._state and options == self._tls.options:
            return True
        if options == self._tls.options:
            self._state = state
        try:
            replace = first_tls if is_first else replaced_tls
            self._tls = await asyncio.to_thread(replace, options, self._tls)
        except TlsError as error:
            logger.error("listener %s keeps its old certificates: %s", self._name, error)
            return False
        self._state = state
        self._warn_again_s = 0
        logger.info("listener %s has read its changed certificates", self._name)
        return True

    async def check(self, options: TlsOptions) -> None:
        """Raises TlsError if these must not replace what is in force."""
        await asyncio.to_thread(replaced_tls, options, self._tls)


def _cancel_soon(handshake: asyncio.Task[None]) -> None:
    # Not at once: a task that is cancelled before its first step runs none of its code. Then the
    # connection would be counted for ever, and its socket stay open.
    handshake.get_loop().call_soon(handshake.cancel)


def why(error: ssl.SSLError) -> str:
    """Why a handshake failed, in the words of the settings."""
    reason = error.reason or ""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"{_SAYS['CERTIFICATE_VERIFY_FAILED']}: {error.verify_message}"
    if any(reason.startswith(each) for each in _NO_TLS):
        return "it does not speak TLS: its security.protocol must be SSL or SASL_SSL here"
    return _SAYS.get(reason, reason.lower().replace("_", " ") or str(error))
