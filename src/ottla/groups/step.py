"""One step of a coordinator: the time it happens, and what is to be done afterwards.

A decider is called with an event and a Step. It decides from the group's state, and writes down
in the Step what must happen, which the driver then does in this order:

    timers         set and cancelled
    records        appended to the group's partition, then applied; applying is the only way that
                   what is kept changes
    when_appended  called with a new step, once the records are applied (or when_refused, with the
                   reason, when they could not be appended)
    replies        sent when all that was appended so far is committed
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

from ottla.groups.settings import GroupSettings
from ottla.groups.stored import CoordinatorRecord
from ottla.protocol.errors import ErrorCode


class TimerKey(NamedTuple):
    """One timer; setting it again moves it."""

    kind: str
    """"heartbeat" (one a member), "join" or "sync" (one a group)."""
    group: str
    member: str = ""


class HeartbeatExpired(NamedTuple):
    """A member was not heard of for its session timeout."""

    group: str
    member: str


class JoinExpired(NamedTuple):
    """The members had the group's rebalance timeout to join again."""

    group: str


class InitialDelayExpired(NamedTuple):
    """A new group waited for more members; `remaining_ms` is what it may wait still."""

    group: str
    delay_ms: int
    remaining_ms: int


class SyncExpired(NamedTuple):
    """The members had the group's rebalance timeout to ask for their assignment."""

    group: str
    generation: int


TimerEvent: TypeAlias = HeartbeatExpired | JoinExpired | InitialDelayExpired | SyncExpired


class SetTimer(NamedTuple):
    key: TimerKey
    delay_ms: int
    event: TimerEvent


class CancelTimer(NamedTuple):
    key: TimerKey


class Reply(NamedTuple):
    """The answer to a request that waited; the driver knows whose `token` it is."""

    token: Any
    result: Any


class Step:
    """Collects what one event leads to; see the top of this file for the order."""

    __slots__ = (
        "now_ms", "records", "replies", "settings", "timers", "when_appended", "when_refused",
    )  # fmt: skip

    def __init__(self, now_ms: int, settings: GroupSettings) -> None:
        self.now_ms = now_ms
        self.settings = settings
        self.records: list[CoordinatorRecord] = []
        self.replies: list[Reply] = []
        self.timers: list[SetTimer | CancelTimer] = []
        self.when_appended: Callable[[Step], None] | None = None
        self.when_refused: Callable[[Step, ErrorCode], None] | None = None

    def reply(self, token: Any, result: Any) -> None:
        self.replies.append(Reply(token, result))

    def set_timer(self, key: TimerKey, delay_ms: int, event: TimerEvent) -> None:
        self.timers.append(SetTimer(key, delay_ms, event))

    def cancel_timer(self, key: TimerKey) -> None:
        self.timers.append(CancelTimer(key))
