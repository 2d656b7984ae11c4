"""A way into the cluster: its addresses, the settings for it, and clients that are kept connected.

A client is for one thread at a time, so a thread borrows one. With logins by SASL each user has an
access of his own, so that the cluster's ACLs hold for what he sees.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from threading import Lock, Thread
from typing import Any, Final, TypeVar, cast

from ottla.client.client import Client
from ottla.client.errors import RefusedError, UnsupportedError
from ottla.client.patience import Patience
from ottla.client.security import principal_of
from ottla.console.errors import VisitError
from ottla.wording.errors import ReportedError

PATIENCE: Final = Patience(connect_s=2.0, silent_s=1.5, answer_s=8.0, retry_for_s=8.0)
"""Nobody looks at an empty page for half a minute."""
MAX_IDLE: Final = 4
"""Clients that stay connected."""
SOON_AGAIN_S: Final = 5.0
MAX_KEPT: Final = 64
"""Answers."""

T = TypeVar("T")


class Access:
    """Use from any thread."""

    def __init__(self, bootstrap: str, settings: Mapping[str, Any], client_id: str) -> None:
        """`settings`: librdkafka's."""
        self.bootstrap = bootstrap
        self.settings = {**settings, "bootstrap.servers": bootstrap, "client.id": client_id}
        self.principal = principal_of(settings)
        self._client_id = client_id
        self._idle: deque[Client] = deque()
        self._is_closed = False
        self._kept: dict[str, _Kept] = {}
        self._soon: dict[str, _Soon] = {}
        self._lock = Lock()

    @contextmanager
    def client(self) -> Iterator[Client]:
        """A client for this thread. One whose connection failed is not lent again."""
        try:
            client = self._idle.popleft()
        except IndexError:
            client = Client(
                self.bootstrap, self.settings, client_id=self._client_id, patience=PATIENCE
            )
        is_well = False
        try:
            yield client
            is_well = True
        except ReportedError as error:
            # Any other exception may have left half a response in the connection.
            is_well = isinstance(error, RefusedError | UnsupportedError | VisitError)
            raise
        finally:
            if is_well and not self._is_closed and len(self._idle) < MAX_IDLE:
                self._idle.append(client)
            else:
                client.close()

    def kept(self, name: str, for_s: float, ask: Callable[[], T]) -> T:
        """The answer to the question of this name, asked again only once it is older than `for_s`:
        several tabs of one page ask the cluster once. Who comes while it is asked waits for the
        same answer, or the same error: one after the other would wait for brokers that are away.
        """
        came_s = time.monotonic()
        with self._lock:
            kept = self._kept.get(name)
            if kept is None:
                while len(self._kept) >= MAX_KEPT:
                    del self._kept[next(iter(self._kept))]
                kept = self._kept[name] = _Kept()
        with kept.lock:
            if kept.error is not None and kept.failed_s >= came_s:
                raise kept.error
            if time.monotonic() >= kept.until_s:
                kept.error = None
                try:
                    kept.answer = ask()
                except ReportedError as error:
                    kept.error, kept.failed_s = error, time.monotonic()
                    raise
                kept.until_s = time.monotonic() + for_s
            return cast(T, kept.answer)

    def kept_soon(self, name: str, for_s: float, ask: Callable[[Client], T]) -> T | None:
        """What was answered to the question of this name before, None if nothing was; nobody waits.
        An answer older than `for_s` is asked for again in a thread, with a client of its own. If
        the cluster does not respond, the answer from before stays.
        """
        with self._lock:
            kept = self._soon.setdefault(name, _Soon())
            if not kept.is_asked and not self._is_closed and time.monotonic() >= kept.until_s:
                kept.is_asked = True
                asking = Thread(target=self._ask_soon, args=(kept, for_s, ask), daemon=True)
                asking.start()
            return cast(T | None, kept.answer)

    def _ask_soon(self, kept: _Soon, for_s: float, ask: Callable[[Client], object]) -> None:
        try:
            with self.client() as client:
                kept.answer = ask(client)
        except ReportedError:
            for_s = SOON_AGAIN_S
        finally:
            kept.until_s = time.monotonic() + for_s
            kept.is_asked = False

    def forget(self) -> None:
        """Something was changed: the next page asks again."""
        with self._lock:
            self._kept.clear()

    def close(self) -> None:
        """Clients that are lent are closed once they come back."""
        self._is_closed = True
        while self._idle:
            self._idle.popleft().close()


class _Soon:
    """The newest answer, and until when it is good."""

    def __init__(self) -> None:
        self.answer: object = None
        self.until_s = 0.0
        self.is_asked = False


class _Kept:
    """An answer, and until when it is good."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.until_s = 0.0
        self.answer: object = None
        self.error: ReportedError | None = None
        self.failed_s = 0.0
