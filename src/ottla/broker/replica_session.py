"""A follower's side of a fetch session: what the leader has still to be told (KIP-227).

Pure. The first request names every partition; within the session only what changed is sent, and
what is asked no more is named as forgotten. A leader without room for sessions answers with id 0,
and every request is a full one then. As Kafka's FetchSessionHandler.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple, TypeAlias
from uuid import UUID

from ottla.protocol.errors import ErrorCode
from ottla.replication.follower import Question

Key: TypeAlias = tuple[UUID, int]
"""Topic id and partition."""

NO_SESSION: Final = 0
INITIAL_EPOCH: Final = 0
LAST_EPOCH: Final = 2**31 - 1


class Request(NamedTuple):
    """What stands in the next request."""

    session_id: int
    session_epoch: int
    asked: dict[Key, Question]
    forgotten: list[Key]


class ReplicaSession:
    """The session with one leader over one connection."""

    def __init__(self) -> None:
        self._id = NO_SESSION
        self._epoch = INITIAL_EPOCH
        self._told: dict[Key, Question] = {}
        """What the leader knows, as of the last request."""

    def asked(self, key: Key) -> Question | None:
        """What the answer for this partition is an answer to."""
        return self._told.get(key)

    def __len__(self) -> int:
        return len(self._told)

    def request(self, changed: Mapping[Key, Question | None]) -> Request:
        """The next request, when `changed` is new since the last one; None: ask no more."""
        told, forgotten = self._told, []
        asked: dict[Key, Question] = {}
        for key, question in changed.items():
            if question is None:
                if told.pop(key, None) is not None:
                    forgotten.append(key)
            elif told.get(key) != question:
                asked[key] = told[key] = question
        if not told:
            # No request is sent for nothing; the next one replaces the session.
            self._begin(self._id)
        if self._epoch == INITIAL_EPOCH:
            return Request(self._id, INITIAL_EPOCH, dict(told), [])
        return Request(self._id, self._epoch, asked, forgotten)

    def answered(self, code: ErrorCode, session_id: int) -> bool:
        """Whether the response holds answers; if not, the next request begins a session anew."""
        if code is not ErrorCode.none:
            self._begin(NO_SESSION if code is ErrorCode.fetch_session_id_not_found else self._id)
            return False
        if self._epoch != INITIAL_EPOCH and session_id != self._id:
            # The leader ended the session, for all was forgotten or it was evicted.
            self._begin(NO_SESSION)
            return session_id == NO_SESSION
        self._id = session_id
        if session_id == NO_SESSION:
            self._epoch = INITIAL_EPOCH
        else:
            self._epoch = 1 if self._epoch == LAST_EPOCH else self._epoch + 1
        return True

    def lost(self) -> None:
        """The connection is gone; what the leader took in is unknown."""
        self._begin(NO_SESSION)

    def _begin(self, session_id: int) -> None:
        self._id, self._epoch = session_id, INITIAL_EPOCH
