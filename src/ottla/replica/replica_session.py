"""A follower's side of a fetch session: what the next request must name (KIP-227).

Pure. The first request names every partition. Later requests of the session name only changes, and
list partitions that are no longer fetched as forgotten. A leader without room for sessions returns
id 0; then every request is a full one. As Kafka's FetchSessionHandler.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple, TypeAlias
from uuid import UUID

from ottla.protocol.errors import ErrorCode
from ottla.replication.follower import FetchRequest

Key: TypeAlias = tuple[UUID, int]
"""Topic id and partition."""

NO_SESSION: Final = 0
INITIAL_EPOCH: Final = 0
LAST_EPOCH: Final = 2**31 - 1


class Request(NamedTuple):
    """The contents of the next request."""

    session_id: int
    session_epoch: int
    requested: dict[Key, FetchRequest]
    forgotten: list[Key]


class ReplicaSession:
    """The session with one leader over one connection."""

    def __init__(self) -> None:
        self._id = NO_SESSION
        self._epoch = INITIAL_EPOCH
        self._sent: dict[Key, FetchRequest] = {}
        """What the leader knows, as of the last request."""

    def requested(self, key: Key) -> FetchRequest | None:
        """The request that a result for this partition belongs to."""
        return self._sent.get(key)

    def __len__(self) -> int:
        return len(self._sent)

    def request(self, changed: Mapping[Key, FetchRequest | None]) -> Request:
        """The next request. `changed` is new since the last one; None: stop fetching it."""
        sent, forgotten = self._sent, []
        requested: dict[Key, FetchRequest] = {}
        for key, request in changed.items():
            if request is None:
                if sent.pop(key, None) is not None:
                    forgotten.append(key)
            elif sent.get(key) != request:
                requested[key] = sent[key] = request
        if not sent:
            # Nothing to name, so nothing is sent; the next request replaces the session.
            self._begin(self._id)
        if self._epoch == INITIAL_EPOCH:
            return Request(self._id, INITIAL_EPOCH, dict(sent), [])
        return Request(self._id, self._epoch, requested, forgotten)

    def on_response(self, code: ErrorCode, session_id: int) -> bool:
        """Whether the response holds results; if not, the next request starts a new session."""
        if code is not ErrorCode.none:
            self._begin(NO_SESSION if code is ErrorCode.fetch_session_id_not_found else self._id)
            return False
        if self._epoch != INITIAL_EPOCH and session_id != self._id:
            # The leader ended the session, because everything was forgotten or it was evicted.
            self._begin(NO_SESSION)
            return session_id == NO_SESSION
        self._id = session_id
        if session_id == NO_SESSION:
            self._epoch = INITIAL_EPOCH
        else:
            self._epoch = 1 if self._epoch == LAST_EPOCH else self._epoch + 1
        return True

    def lost(self) -> None:
        """The connection was lost; it is unknown what the leader received."""
        self._begin(NO_SESSION)

    def _begin(self, session_id: int) -> None:
        self._id, self._epoch = session_id, INITIAL_EPOCH
