"""Which ACLs DescribeAcls and DeleteAcls are about (AclBindingFilter, KIP-290): pure."""

from __future__ import annotations

from typing import Final, NamedTuple

from ottla.protocol.access import Operation, Resource
from ottla.security.acl import ANY_NAME, Acl, PatternType, Permission

UNKNOWN: Final = 0
ANY: Final = 1
"""Of a resource, pattern, operation or permission."""
MATCH: Final = 2
"""A pattern type: every pattern that matches the resource with the filter's name."""


class AclFilter(NamedTuple):
    """Codes as in the protocol; None for a name, principal or host means any."""

    resource: int
    name: str | None
    pattern: int
    principal: str | None
    host: str | None
    operation: int
    permission: int

    @property
    def is_unknown(self) -> bool:
        """Whether a code has no meaning here: Kafka refuses the request."""
        known = (
            (self.resource, {ANY, *Resource}),
            (self.pattern, {ANY, MATCH, *PatternType}),
            (self.operation, {ANY, *Operation}),
            (self.permission, {ANY, *Permission}),
        )
        return any(code not in codes for code, codes in known)

    def matches(self, acl: Acl) -> bool:
        """Whether the filter is about this ACL."""
        pattern, entry = acl
        return (
            self.resource in (ANY, pattern.resource)
            and self._matches_name(acl)
            and self.principal in (None, entry.principal)
            and self.host in (None, entry.host)
            and self.operation in (ANY, entry.operation)
            and self.permission in (ANY, entry.permission)
        )

    def _matches_name(self, acl: Acl) -> bool:
        pattern = acl.pattern
        if self.pattern not in (ANY, MATCH, pattern.type):
            return False
        if self.name is None or self.name == pattern.name:
            return True
        if self.pattern != MATCH:
            return False
        if pattern.type is PatternType.PREFIXED:
            return self.name.startswith(pattern.name)
        return pattern.name == ANY_NAME
