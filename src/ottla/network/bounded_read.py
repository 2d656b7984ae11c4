"""What blocks, such as a request of HTTP, in threads of its own and within a time.

A thread that hangs, as in the name service, cannot be ended: there are a few at most, and a broker
that stops does not wait for them.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Final, Protocol, TypeVar

from ottla.security.sasl.signed_token import KeysError

READ_WITHIN_MS: Final = 10_000
MAX_THREADS: Final = 2

T = TypeVar("T")


class Reader(Protocol):
    """Reads once."""

    def read(self) -> bytes:
        """Blocks. Raises KeysError."""

    def give_up(self) -> None:
        """Ends `read`, from another thread."""


class BoundedReads:
    """For the event loop's thread only."""

    def __init__(self, name: str) -> None:
        """`name` is that of the threads."""
        self._name = name
        self._threads = 0

    async def read(self, reader: Reader, parse: Callable[[bytes], T]) -> T:
        """What `parse`, in the thread too, makes of what is read. Raises KeysError, also if it
        takes more than READ_WITHIN_MS.
        """
        if self._threads >= MAX_THREADS:
            raise KeysError("earlier attempts still hang")
        loop = asyncio.get_running_loop()
        done: asyncio.Future[tuple[T] | KeysError] = loop.create_future()

        def settle(result: tuple[T] | KeysError) -> None:
            self._threads -= 1
            if not done.done():
                done.set_result(result)

        def run() -> None:
            result: tuple[T] | KeysError = KeysError("a bug")
            try:
                result = (parse(reader.read()),)
            except KeysError as error:
                result = error
            finally:
                with suppress(RuntimeError):  # the loop has been closed
                    loop.call_soon_threadsafe(settle, result)

        try:
            threading.Thread(target=run, name=self._name, daemon=True).start()
        except RuntimeError as error:  # the machine has no more: the next attempt may find one
            raise KeysError(str(error)) from None
        self._threads += 1
        try:
            async with asyncio.timeout(READ_WITHIN_MS / 1000):
                result = await done
        except TimeoutError:
            raise KeysError(f"it took more than {READ_WITHIN_MS} ms") from None
        finally:
            reader.give_up()
        if isinstance(result, KeysError):
            raise result
        return result[0]
