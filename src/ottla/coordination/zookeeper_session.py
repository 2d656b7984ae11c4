"""One session with a ZooKeeper ensemble, used from the event loop: requests, watches, losses.

kazoo's thread puts responses, watch events and connection states into one queue, in order of
arrival, and wakes the event loop once for many of them. Everything else happens on the loop.

A lost connection. Unanswered requests are lost with it. A read is repeated for as long as the
session may live; a write raises ConnectionLostError, and so does a call made while there is no
connection, if none is made in time. The server keeps a watch for one connection: kazoo does not set
it again, and events in between are lost. So after a reconnection every watch fires once, as if its
node had changed, and its owner reads again.

An ended session. Only the ensemble can end it; then every watch gets Event(EXPIRED) and every call
raises SessionExpiredError. While the ensemble cannot be reached, the state of the session is
unknown: ephemeral nodes stay as long as the ensemble itself is down.
"""

from __future__ import annotations

import asyncio
import enum
import logging
from collections import deque
from collections.abc import Callable
from typing import Any, Final

from kazoo import exceptions as kazoo_errors
from kazoo.protocol import serialization as wire
from kazoo.protocol.states import EventType, KazooState, WatchedEvent

from ottla.coordination.tree import (
    BadVersionError,
    Change,
    ConnectionLostError,
    CoordinationError,
    EphemeralParentError,
    Event,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
    SessionExpiredError,
    Watch,
    parent_of,
)
from ottla.coordination.zookeeper_wire import Answer, Client

_CLOSE_TIMEOUT_S: Final = 2.0

log = logging.getLogger("ottla.zookeeper")

_ERRORS: Final[dict[type[Exception], type[CoordinationError]]] = {
    kazoo_errors.NoNodeError: NoNodeError,
    kazoo_errors.NodeExistsError: NodeExistsError,
    kazoo_errors.BadVersionError: BadVersionError,
    kazoo_errors.NotEmptyError: NotEmptyError,
    kazoo_errors.NoChildrenForEphemeralsError: EphemeralParentError,
    kazoo_errors.SessionExpiredError: SessionExpiredError,
    kazoo_errors.ConnectionClosedError: SessionExpiredError,
    kazoo_errors.ConnectionLoss: ConnectionLostError,
    # The session has moved to another server: this connection is as good as lost.
    kazoo_errors.SessionMovedError: ConnectionLostError,
    kazoo_errors.OperationTimeoutError: ConnectionLostError,
}
_CHANGES: Final = {
    EventType.CREATED: Change.CREATED,
    EventType.DELETED: Change.DELETED,
    EventType.CHANGED: Change.DATA,
    EventType.CHILD: Change.CHILDREN,
}


class State(enum.Enum):
    """A session's state."""

    CONNECTED = "connected"
    SUSPENDED = "suspended"
    """No connection. The next server to answer decides whether the session lives."""
    EXPIRED = "expired"
    """Ended for good."""


def port_error(error: Exception, path: str, *, made: bool = False) -> CoordinationError:
    """The port's error for kazoo's. `made`: for a creation, a missing node is the parent."""
    kind = _ERRORS.get(type(error))
    if kind is None:
        return CoordinationError(f"{path}: {error!r}")
    return kind(parent_of(path) if made and kind is NoNodeError else path)


class _Waiting:
    """A watch in its table."""

    __slots__ = ("armed", "watch")

    def __init__(self, watch: Watch) -> None:
        self.watch = watch
        self.armed = False
        """The read that sets the watch has been answered."""


class WatchTable:
    """Watches by path, all of one kind: on data, or on children."""

    def __init__(self, when_unsure: Change) -> None:
        self._when_unsure = when_unsure
        self._waiting: dict[str, list[_Waiting]] = {}

    def add(self, path: str, watch: Watch) -> _Waiting:
        """Call before sending the read, so that an event before its response finds the watch."""
        waiting = _Waiting(watch)
        self._waiting.setdefault(path, []).append(waiting)
        return waiting

    def forget(self, path: str, waiting: _Waiting) -> None:
        """Remove a watch whose read failed."""
        others = self._waiting.get(path, [])
        if waiting in others:
            others.remove(waiting)
        if not others:
            self._waiting.pop(path, None)

    def fire(self, event: Event) -> None:
        """Fire the watches of this path."""
        for waiting in self._waiting.pop(event.path, ()):
            waiting.watch(event)

    def fire_unsure(self) -> None:
        """Fire all watches that may have missed a change; pending reads set theirs again."""
        missed = [
            (path, each) for path, all_of in self._waiting.items() for each in all_of if each.armed
        ]
        for path, waiting in missed:
            self.forget(path, waiting)
            waiting.watch(Event(self._when_unsure, path))

    def expire(self) -> None:
        """Fire all watches: the session has ended."""
        over, self._waiting = self._waiting, {}
        for all_of in over.values():
            for waiting in all_of:
                waiting.watch(Event(Change.EXPIRED, ""))


class ZooKeeperSession:
    """Sends requests and fires watches. Paths are the ensemble's, with the chroot."""

    def __init__(self, hosts: str, chroot: str, session_timeout_ms: int) -> None:
        self.number = 0
        self.state = State.SUSPENDED
        self.state_callbacks: list[Callable[[State], None]] = []
        self.data_watches = WatchTable(Change.DATA)
        self.child_watches = WatchTable(Change.CHILDREN)
        self._hosts = hosts
        self._chroot_length = len(chroot)
        self._timeout_s = session_timeout_ms / 1000
        self._client = Client(hosts, session_timeout_ms)
        self._loop = asyncio.get_running_loop()
        self._inbox: deque[tuple[Callable[..., None], tuple[Any, ...]]] = deque()
        self._is_drain_due = False
        self._not_suspended = asyncio.Event()
        self._closed = False
        self._in_flight: dict[Answer, asyncio.Future[Any]] = {}

    async def open(self) -> None:
        """Open the session; waits for the first connection without a time limit."""
        self._client.add_listener(self._on_state)
        self._client.start_async()
        await self._not_suspended.wait()
        self.check_alive()

    async def ask(self, request: Any, path: str, *, made: bool = False) -> Any:
        """Send the request now, and return the response. Raises the port's errors."""
        self.check_alive()
        if self.state is not State.CONNECTED:
            raise ConnectionLostError(path)
        try:
            return await self._send(request)
        except kazoo_errors.KazooException as error:
            raise port_error(error, path, made=made) from None

    async def ask_when_connected(self, request: Any, path: str) -> Any:
        """As `ask`, but waits for the connection first: an unsent request is never in doubt.

        Raises ConnectionLostError if that takes longer than the session timeout.
        """
        try:
            async with asyncio.timeout(self._timeout_s):
                await self._not_suspended.wait()
        except TimeoutError:
            raise ConnectionLostError(path) from None
        return await self.ask(request, path)

    async def ask_again(self, request: Any, path: str) -> Any:
        """As `ask`, and again after each reconnection: for reads.

        Raises ConnectionLostError if that takes longer than the session timeout.
        """
        try:
            async with asyncio.timeout(self._timeout_s):
                while True:
                    await self._not_suspended.wait()
                    try:
                        return await self.ask(request, path)
                    except ConnectionLostError:
                        await asyncio.sleep(0)  # lets the loop notice the lost connection
        except TimeoutError:
            raise ConnectionLostError(path) from None

    async def watched(
        self, request: Callable[[Any], Any], path: str, table: WatchTable, watch: Watch | None
    ) -> Any:
        """`ask_again` for a request that sets a watch; `request` builds it from the watcher."""
        self.check_alive()
        if watch is None:
            return await self.ask_again(request(None), path)
        waiting = table.add(path, watch)
        try:
            response = await self.ask_again(request(self._on_watch), path)
        except SessionExpiredError:
            raise  # the watch has fired
        except BaseException:
            table.forget(path, waiting)
            raise
        waiting.armed = True
        return response

    async def close(self) -> None:
        """End the session. Without a connection it ends by itself after the session timeout."""
        if not self._closed:
            self._closed = True
            # Before the ensemble reports that the session's own nodes are deleted.
            self._expire_watches()
            if self.state is State.CONNECTED:
                last = asyncio.ensure_future(self._send(wire.CloseInstance))
                await asyncio.wait([last], timeout=_CLOSE_TIMEOUT_S)
                if not last.cancel() and last.exception() is not None:
                    log.debug("ZooKeeper at %s: %r at the end", self._hosts, last.exception())
            self._over()

    def abandon(self) -> None:
        """For any thread: end the connection, and with it what feeds the session."""
        self._client.give_up()
        self._post(self._over)

    def check_alive(self) -> None:
        """Raises SessionExpiredError if the session has ended."""
        if self.state is State.EXPIRED or self._closed:
            raise SessionExpiredError(str(self.number))

    async def _send(self, request: Any) -> Any:
        answer = Answer(self._on_answer)
        response: asyncio.Future[Any] = self._loop.create_future()
        self._in_flight[answer] = response
        self._client.ask(request, answer)
        try:
            return await response
        finally:
            answer.abandoned = True
            self._in_flight.pop(answer, None)

    # In kazoo's thread.

    def _on_answer(self, answer: Answer, value: Any, error: Exception | None) -> None:
        self._post(self._answered, answer, value, error)

    def _on_watch(self, event: WatchedEvent) -> None:
        if event.type in _CHANGES:  # other types repeat the connection's state
            self._post(self._fire, _CHANGES[event.type], event.path)

    def _on_state(self, state: KazooState) -> None:
        if state == KazooState.LOST:
            # kazoo would continue with a new session, unnoticed, without this one's nodes.
            self._client.give_up()
        self._post(self._entered, state, self._client.client_id)

    def _post(self, what: Callable[..., None], *arguments: Any) -> None:
        self._inbox.append((what, arguments))
        if not self._is_drain_due:
            self._is_drain_due = True
            try:
                self._loop.call_soon_threadsafe(self._drain)
            except RuntimeError:
                self._client.give_up()  # the loop is closed: nobody waits any more

    # On the loop.

    def _drain(self) -> None:
        self._is_drain_due = False
        has_answered = False
        while self._inbox:
            if has_answered and self._inbox[0][0] == self._entered:
                # The caller must see its response first: only that arms its watch, and the new
                # state fires only armed watches.
                self._is_drain_due = True
                self._loop.call_soon(self._drain)
                return
            what, arguments = self._inbox.popleft()
            has_answered = has_answered or what == self._answered
            what(*arguments)

    def _answered(self, answer: Answer, value: Any, error: Exception | None) -> None:
        response = self._in_flight.pop(answer, None)
        if response is not None and not response.done():
            if error is None:
                response.set_result(value)
            else:
                response.set_exception(error)

    def _fire(self, change: Change, full_path: str) -> None:
        event = Event(change, full_path[self._chroot_length :] or "/")
        if change is not Change.CHILDREN:
            self.data_watches.fire(event)
        if change in (Change.CHILDREN, Change.DELETED):
            self.child_watches.fire(event)

    def _entered(self, state: KazooState, client_id: tuple[int, bytes] | None) -> None:
        if self.state is State.EXPIRED:
            return
        if state == KazooState.CONNECTED:
            assert client_id is not None
            back = self.number != 0
            self.number = client_id[0]
            log.info(
                "ZooKeeper at %s: %s, session %#x",
                self._hosts,
                "connected again" if back else "connected",
                self.number,
            )
            self._enter(State.CONNECTED)
            self.data_watches.fire_unsure()
            self.child_watches.fire_unsure()
        elif state == KazooState.SUSPENDED:
            if not self._closed:
                log.warning("ZooKeeper at %s: connection lost", self._hosts)
            self._enter(State.SUSPENDED)
            self._fail_in_flight(kazoo_errors.ConnectionLoss())
        else:
            if not self._closed:
                log.warning("ZooKeeper at %s: session %#x expired", self._hosts, self.number)
            self._over()

    def _over(self) -> None:
        self._client.give_up()
        if self.state is not State.EXPIRED:
            self._enter(State.EXPIRED)
            self._fail_in_flight(kazoo_errors.SessionExpiredError())
            self._expire_watches()

    def _expire_watches(self) -> None:
        self.data_watches.expire()
        self.child_watches.expire()

    def _enter(self, state: State) -> None:
        self.state = state
        if state is State.SUSPENDED:
            self._not_suspended.clear()
        else:
            self._not_suspended.set()
        for callback in list(self.state_callbacks):
            callback(state)

    def _fail_in_flight(self, error: Exception) -> None:
        for answer in list(self._in_flight):
            answer.abandoned = True
            self._answered(answer, None, error)
