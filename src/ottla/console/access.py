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
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from ottla.client.client import Client
from ottla.client.errors import RefusedError, UnsupportedError
from ottla.client.patience import Patience
from ottla.client.security import principal_of
from ottla.console.errors import VisitError
from ottla.console.kept_rests import KeptRests
from ottla.wording.errors import ReportedError

if TYPE_CHECKING:
    from ottla.client.admin.asked_journeys import Journeys

PATIENCE: Final = Patience(connect_s=2.0, silent_s=1.5, answer_s=8.0, retry_for_s=8.0)
"""Nobody looks at an empty page for half a minute."""
MAX_IDLE: Final = 4
"""Clients that stay connected."""
SOON_AGAIN_S: Final = 5.0
SHARE: Final = 5
"""An answer is kept at least so many times as long as it took."""
MAX_KEPT_S: Final = 60.0
"""For that reason."""
MAX_KEPT: Final = 64
"""Answers."""
MAX_ASKED_SOON: Final = 8
"""Questions beside the pages, at a time."""

T = TypeVar("T")
Lent = TypeVar("Lent", "Client", "Journeys")


class Access:
    """Use from any thread."""

    def __init__(self, bootstrap: str, settings: Mapping[str, Any], client_id: str) -> None:
        """`settings`: librdkafka's."""
        self.bootstrap = bootstrap
        self.settings = {**settings, "bootstrap.servers": bootstrap, "client.id": client_id}
        self.principal = principal_of(settings)
        self.rests = KeptRests()
        self._client_id = client_id
        self._idle: deque[Client] = deque()
        self._idle_journeys: deque[Journeys] = deque()
        self._is_closed = False
        self._kept: dict[str, _Kept] = {}
        self._soon: dict[str, _Soon] = {}
        self._asked_soon = 0
        self._lock = Lock()

    @contextmanager
    def client(self) -> Iterator[Client]:
        """A client for this thread. One whose connection failed is not lent again."""
        with self._lent(self._idle, self._new_client) as client:
            yield client

    @contextmanager
    def journeys(self) -> Iterator[Journeys]:
        """The same for journeys: a page that follows a message asks every second."""
        with self._lent(self._idle_journeys, self._new_journeys) as journeys:
            yield journeys

    def _new_client(self) -> Client:
        return Client(self.bootstrap, self.settings, client_id=self._client_id, patience=PATIENCE)

    def _new_journeys(self) -> Journeys:
        # The first page does without them, and comes sooner.
        from ottla.client.admin.asked_journeys import Journeys

        return Journeys(self.bootstrap, self.settings, client_id=self._client_id)

    @contextmanager
    def _lent(self, idle: deque[Lent], make: Callable[[], Lent]) -> Iterator[Lent]:
        try:
            lent = idle.popleft()
        except IndexError:
            lent = make()
        is_well = False
        try:
            yield lent
            is_well = True
        except ReportedError as error:
            # Any other exception may have left half a response in the connection.
            is_well = isinstance(error, RefusedError | UnsupportedError | VisitError)
            raise
        finally:
            if is_well and not self._is_closed and len(idle) < MAX_IDLE:
                idle.append(lent)
            else:
                lent.close()

    def kept(self, name: str, for_s: float, ask: Callable[[], T]) -> T:
        """The answer to the question of this name, asked again only once it is older than `for_s`:
        several tabs of one page ask the cluster once. What takes long is asked less often, for a
        few times as long as it took. Who comes while it is asked waits for the same answer, or the
        same error: one after the other would wait for brokers that are away.
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
                kept.error, began_s = None, time.monotonic()
                try:
                    kept.answer = ask()
                except ReportedError as error:
                    kept.error, kept.failed_s = error, time.monotonic()
                    raise
                now_s = time.monotonic()
                kept.until_s = now_s + max(for_s, min((now_s - began_s) * SHARE, MAX_KEPT_S))
            return cast(T, kept.answer)

    def kept_soon(self, name: str, for_s: float, ask: Callable[[Client], T]) -> T | None:
        """What was answered to the question of this name before, None if nothing was; nobody waits.
        An answer older than `for_s` is asked for again in a thread, with a client of its own. If
        the cluster does not respond, the answer from before stays. Few are asked at a time.
        """
        with self._lock:
            kept = self._soon.get(name)
            if kept is None:
                while len(self._soon) >= MAX_KEPT:
                    del self._soon[next(iter(self._soon))]
                kept = self._soon[name] = _Soon()
            is_free = not kept.is_asked and self._asked_soon < MAX_ASKED_SOON
            if is_free and not self._is_closed and time.monotonic() >= kept.until_s:
                self._asked_soon += 1
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
            with self._lock:
                self._asked_soon -= 1

    def forget(self) -> None:
        """Something was changed: the next page asks again. What is being asked now is not kept."""
        with self._lock:
            self._kept.clear()
            self._soon = {name: _Soon(each.answer) for name, each in self._soon.items()}

    def close(self) -> None:
        """Clients that are lent are closed once they come back."""
        self._is_closed = True
        while self._idle:
            self._idle.popleft().close()
        while self._idle_journeys:
            self._idle_journeys.popleft().close()


class _Soon:
    """The newest answer, and until when it is good."""

    def __init__(self, answer: object = None) -> None:
        self.answer = answer
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
