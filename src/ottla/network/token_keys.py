"""The public keys of a token's issuer, kept up to date.

They are read in a thread of their own, at the start, in intervals, and when a token comes that is
signed with an unknown key; a read that fails is tried again. Keys once read stay until others have
been read: an issuer that is down keeps nobody out.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from ottla.network.bounded_read import BoundedReads, Reader
from ottla.runtime.background import Background
from ottla.security.sasl.signed_token import KeysError, SigningKeys, read_keys

logger = logging.getLogger("ottla.tokens")

MIN_AGAIN_MS: Final = 10_000
"""From one read on behalf of a token to the next: anybody can send tokens with unknown keys."""


class TokenKeys:
    """Of one listener. For the event loop's thread only."""

    def __init__(
        self,
        where: str,
        new_reader: Callable[[], Reader],
        *,
        refresh_ms: int,
        retry_ms: int,
        max_retry_ms: int,
        monotonic_ms: Callable[[], int],
    ) -> None:
        """`where` names the keys in the log. After a failure: a read after `retry_ms`, then after
        twice as long, and so on up to `max_retry_ms`.
        """
        self.keys: SigningKeys | None = None
        self.failure = ""
        """Why the last read failed; empty: it did not."""
        self._where = where
        self._new_reader = new_reader
        self._refresh_ms = refresh_ms
        self._retry_ms = retry_ms
        self._max_retry_ms = max_retry_ms
        self._monotonic_ms = monotonic_ms
        self._text = b""
        self._reads = BoundedReads("token-keys")
        self._asked_ms: int | None = None
        """When a token last asked for a read."""
        self._asked = asyncio.Event()
        self._reading: asyncio.Future[None] | None = None
        self._tasks = Background(logger, f"the keys of {where}")

    async def read(self) -> None:
        """Reads once. Raises KeysError."""
        reading = self._reading or asyncio.get_running_loop().create_future()
        self._reading = reading
        try:
            text, keys = await self._reads.read(self._new_reader(), _with_keys)
            if text != self._text:
                self.keys, self._text = keys, text
                logger.info("%s has %d keys for tokens", self._where, len(keys))
        except KeysError as error:
            if str(error) != self.failure:
                until = "" if self.keys is not None else "; until then all tokens are refused"
                logger.warning(
                    "cannot read the keys of tokens from %s: %s; trying again%s",
                    self._where,
                    error,
                    until,
                )
            self.failure = str(error)
            raise
        else:
            self.failure = ""
        finally:
            self._reading = None
            reading.set_result(None)

    def follow(self) -> None:
        """Reads at once, and again and again until `close`."""
        self._tasks.keep(self._follow)

    def close(self) -> None:
        self._tasks.cancel()

    def again(self) -> Awaitable[None] | None:
        """Reads the keys again; done when they have been. None: they were read just now."""
        if self._reading is not None:
            return asyncio.shield(self._reading)
        now_ms = self._monotonic_ms()
        if self._asked_ms is not None and now_ms < self._asked_ms + MIN_AGAIN_MS:
            return None
        self._asked_ms = now_ms
        # Before the task runs: all that ask now wait for the same read.
        self._reading = asyncio.get_running_loop().create_future()
        self._asked.set()
        return asyncio.shield(self._reading)

    async def _follow(self) -> None:
        pause_ms = self._retry_ms
        while True:
            self._asked.clear()
            try:
                await self.read()
            except KeysError:
                wait_ms, pause_ms = pause_ms, min(pause_ms * 2, self._max_retry_ms)
            else:
                wait_ms, pause_ms = self._refresh_ms, self._retry_ms
            try:
                async with asyncio.timeout(wait_ms / 1000):
                    await self._asked.wait()
            except TimeoutError:
                continue


def _with_keys(text: bytes) -> tuple[bytes, SigningKeys]:
    return text, read_keys(text)
