"""Who is visiting: a cookie with a random name, and the token that each of its forms carries.

Sessions are in memory: after a restart of the console everybody logs in again.
"""

from __future__ import annotations

import hmac
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from ottla.console.access import Access

MAX_SESSIONS: Final = 1000
"""Above, the one that was used least recently ends."""
IDLE_S: Final = 12 * 3600
MAX_MESSAGES: Final = 8


@dataclass(slots=True)
class Session:
    """One browser. `access`: how its pages ask the cluster; `user`: whose own access that is."""

    name: str
    access: Access
    token: str = field(default_factory=lambda: secrets.token_urlsafe(24))
    user: str | None = None
    used_s: float = 0.0
    messages: list[str] = field(default_factory=list)
    """What the next page says first."""

    def owns(self, token: str) -> bool:
        """Whether a form with this token is one of this session's."""
        return hmac.compare_digest(self.token.encode(), token.encode())

    def say(self, message: str) -> None:
        """Shown at the top of the next page."""
        self.messages = [*self.messages, message][-MAX_MESSAGES:]


class Sessions:
    """All sessions, the least recently used first."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._by_name: OrderedDict[str, Session] = OrderedDict()

    def find(self, name: str | None) -> Session | None:
        """The session of a cookie; None if there is none or it has ended."""
        session = self._by_name.get(name or "")
        if session is None:
            return None
        if self._now() - session.used_s > IDLE_S:
            self.end(session)
            return None
        session.used_s = self._now()
        self._by_name.move_to_end(session.name)
        return session

    def has(self, session: Session) -> bool:
        """Whether it goes on; to ask is no visit."""
        is_known = self._by_name.get(session.name) is session
        return is_known and self._now() - session.used_s <= IDLE_S

    def begin(self, access: Access, user: str | None = None) -> Session:
        while len(self._by_name) >= MAX_SESSIONS:
            self.end(next(iter(self._by_name.values())))
        session = Session(secrets.token_urlsafe(24), access, user=user, used_s=self._now())
        self._by_name[session.name] = session
        return session

    def end(self, session: Session) -> None:
        self._by_name.pop(session.name, None)
        if session.user is not None:
            session.access.close()
