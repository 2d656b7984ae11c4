"""What all pages of one console share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from threading import BoundedSemaphore
from typing import TYPE_CHECKING, Final

from ottla.console.access import Access
from ottla.console.sessions import Session, Sessions
from ottla.console.workers import Workers

if TYPE_CHECKING:
    from ottla.console.login import Login
    from ottla.console.sampler import Sampler
    from ottla.console.schemas import Schemas

MAX_RESENDS: Final = 2


@dataclass(slots=True)
class Console:
    """`access`: of visitors without a login of their own. `is_secure`: browsers reach it over
    TLS.
    """

    access: Access
    read_only: bool = False
    login: Login | None = None
    is_secure: bool = False
    schemas: Schemas | None = None
    """The schema registry, if the console has one. It is asked as the console, for all visitors."""
    sampler: Sampler | None = None
    """What fills the history behind charts, if the console keeps one."""
    cluster_name: str = ""
    port: int = 0
    """A browser keeps one cookie of a name for all ports of a host: each console has its own."""
    sessions: Sessions = field(default_factory=Sessions)
    workers: Workers = field(default_factory=Workers)
    readers: Workers = field(default_factory=lambda: Workers(waiting=16))
    """For tails, searches and exports, so that pages do not wait for them."""
    streams: int = 0
    """Tails, searches and exports that run."""
    resends: BoundedSemaphore = field(default_factory=lambda: BoundedSemaphore(MAX_RESENDS))
    """Who sends all records that match again has them in memory, and holds a page's thread."""
    logins: Workers = field(default_factory=lambda: Workers(2, 8, "logins are tried"))
    """Few at a time: who guesses passwords gets no further than this, and holds up no page."""

    @property
    def cookie(self) -> str:
        """Its name. The prefix makes browsers refuse one that was not set over TLS."""
        name = "__Host-ottla-console" if self.is_secure else "ottla-console"
        return f"{name}-{self.port}"

    def session(self, cookies: Mapping[str, str]) -> tuple[Session | None, bool]:
        """The visitor's session, and whether it begins now. None: he has to log in first."""
        found = self.sessions.find(cookies.get(self.cookie))
        if found is not None or self.login is not None:
            return found, False
        return self.sessions.begin(self.access), True

    def stop(self) -> None:
        """On the loop, while it still serves: no page waits for the cluster any longer."""
        for each in (self.workers, self.readers, self.logins):
            each.stop()

    def close(self) -> None:
        if self.sampler is not None:
            self.sampler.stop()
        self.workers.close()
        self.readers.close()
        self.logins.close()
        self.access.close()
