"""What the client at the other end of a connection may do, and what was denied.

A denial is logged once a minute for each principal, operation and resource (Kafka's audit log has a
line for each), and each is counted.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable
from typing import Final

from ottla.network.client_session import ClientSession
from ottla.protocol.access import CLUSTER_NAME, OPERATIONS_OF, Operation, Resource
from ottla.security.acl import word
from ottla.security.authorizer import Authorizer
from ottla.security.principal import ANONYMOUS

logger = logging.getLogger("ottla.authorizer")

LOG_AGAIN_MS: Final = 60_000
MAX_LOGGED: Final = 10_000
"""Denials whose time is kept; beyond it all are forgotten, and logged again."""
MAX_SHOWN_CHARACTERS: Final = 300
"""Of a resource's name, which the client chooses."""


class Authorization:
    """Asks the authorizer about sessions. Brokers of the cluster may do everything."""

    def __init__(self, authorizer: Authorizer, monotonic_ms: Callable[[], int]) -> None:
        self.authorizer = authorizer
        self.denied: Counter[tuple[Operation, Resource]] = Counter()
        self._monotonic_ms = monotonic_ms
        self._logged_ms: dict[tuple[str, Operation, Resource, str], int] = {}

    def is_broker(self, session: ClientSession) -> bool:
        """Whether a broker of the cluster, or this one itself, is at the other end: it has proven
        which one it is, and if it has authenticated as well, its principal has ClusterAction.
        """
        if session.is_own:
            return True
        if session.broker_id is None:
            return False
        return session.principal == ANONYMOUS or self._has(
            session, Operation.CLUSTER_ACTION, Resource.CLUSTER, CLUSTER_NAME
        )

    def allows(
        self,
        session: ClientSession,
        operation: Operation,
        resource: Resource,
        name: str,
        *,
        log: bool = True,
    ) -> bool:
        """`log` False: a filter asks, nobody was denied what he asked for."""
        if self._has(session, operation, resource, name) or self.is_broker(session):
            return True
        if log:
            self._deny(session, operation, resource, name)
        return False

    def allows_on_any(
        self, session: ClientSession, operation: Operation, resource: Resource
    ) -> bool:
        """Whether the client may do it on at least one resource of this type."""
        principal = str(session.principal)
        return self.authorizer.allows_on_any(
            principal, session.host, operation, resource
        ) or self.is_broker(session)

    def operations(self, session: ClientSession, resource: Resource, name: str) -> int:
        """The bits of all operations on the resource that the client may use (KIP-430)."""
        return sum(
            1 << operation
            for operation in OPERATIONS_OF[resource]
            if self.allows(session, operation, resource, name, log=False)
        )

    def _has(
        self, session: ClientSession, operation: Operation, resource: Resource, name: str
    ) -> bool:
        principal = str(session.principal)
        return self.authorizer.allows(principal, session.host, operation, resource, name)

    def _deny(
        self, session: ClientSession, operation: Operation, resource: Resource, name: str
    ) -> None:
        self.denied[operation, resource] += 1
        principal, now_ms = str(session.principal), self._monotonic_ms()
        name = name[:MAX_SHOWN_CHARACTERS]
        key = principal, operation, resource, name
        last_ms = self._logged_ms.get(key)
        if last_ms is not None and now_ms - last_ms < LOG_AGAIN_MS:
            return
        if len(self._logged_ms) >= MAX_LOGGED:
            self._logged_ms.clear()
        self._logged_ms[key] = now_ms
        logger.warning(
            "%s lacks %s on %s %r: denied, from %s on listener %s",
            principal, word(operation), word(resource), name, session.host, session.listener,
        )  # fmt: skip
