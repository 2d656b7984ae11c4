"""The client at the other end of a connection: its principal, address and listener."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from ottla.protocol.primitives import Buffer
from ottla.security.broker_proof import Meeting
from ottla.security.principal import ANONYMOUS, Principal


@dataclass(slots=True)
class ClientSession:
    """One connection, as request handlers see it."""

    connection_id: int
    """Unique per broker; fetch sessions and the journey use it."""
    host: str
    """The client's IP address."""
    listener: str
    """The listener's name; Metadata lists other brokers with their endpoints of the same name."""
    advertised_host: str
    """The host and port that this listener advertises, as in Metadata responses."""
    advertised_port: int
    principal: Principal = ANONYMOUS
    broker_id: int | None = None
    """The broker that has proven to be at the other end; see `broker_identity`."""
    meeting: Meeting | None = field(default=None, repr=False, compare=False)
    """What that broker must prove next."""
    throttle_ms: int = field(default=0, repr=False, compare=False)
    """For how long no request of it is taken after the one that has just been answered."""
    is_own: bool = False
    """These are requests of this broker to itself."""
    contexts: dict[Any, Any] = field(default_factory=dict, repr=False, compare=False)
    """The dispatcher's request contexts, by route: requests with the same context share it."""
    queued: Sequence[Buffer] = field(default=(), repr=False, compare=False)
    """The frames of the requests behind the one that is being answered."""
    arrived: Callable[[], None] | None = field(default=None, repr=False, compare=False)
    """A request that waits sets this to learn of frames that are queued behind it."""
    ended: Callable[[], None] | None = field(default=None, repr=False, compare=False)
    """Called once the connection has ended."""
    has_ended: bool = field(default=False, repr=False, compare=False)
    """The connection has. Its request may go on for one more turn of the event loop."""

    @property
    def address(self) -> str:
        """The client's address, as Kafka shows it: "/127.0.0.1"."""
        return f"/{self.host}"


IN_PROCESS: Final = ClientSession(0, "", "", "", 0, is_own=True)
"""The session of requests that a broker sends to itself."""
