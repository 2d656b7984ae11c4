"""An ACL: a principal may, or may not, do an operation from a host on some resources.

Kafka's AclBinding: the resources are those of one type with a name (LITERAL; "*" is every name), or
with names that begin so (PREFIXED, KIP-290). The host is an address, "*", or a range in CIDR
notation (KIP-1276). An ACL that allows READ, WRITE, DELETE or ALTER allows DESCRIBE as well, one
that allows ALTER_CONFIGS also DESCRIBE_CONFIGS; one that denies implies nothing (AclEntry,
StandardAuthorizerData.findResult).
"""

from __future__ import annotations

from enum import IntEnum
from functools import lru_cache
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final, NamedTuple, TypeVar

from ottla.protocol.access import Operation, Resource

ANY_NAME: Final = "*"
ANY_HOST: Final = "*"
ANY_PRINCIPAL: Final = "User:*"

IMPLIED_BY: Final = {
    Operation.DESCRIBE: frozenset(
        {Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER}
    ),
    Operation.DESCRIBE_CONFIGS: frozenset({Operation.ALTER_CONFIGS}),
}
"""What else allows an operation, where something does."""


class Permission(IntEnum):
    """Codes of Kafka's AclPermissionType."""

    DENY = 2
    ALLOW = 3


class PatternType(IntEnum):
    """Codes of Kafka's PatternType, without those of filters."""

    LITERAL = 3
    PREFIXED = 4


class Pattern(NamedTuple):
    """The resources that an ACL is for."""

    resource: Resource
    name: str
    type: PatternType

    def matches(self, resource: Resource, name: str) -> bool:
        """Whether the resource with this name is one of them."""
        if resource is not self.resource:
            return False
        if self.type is PatternType.PREFIXED:
            return name.startswith(self.name)
        return self.name in (name, ANY_NAME)

    def __str__(self) -> str:
        return f"{word(self.resource)}:{self.type.name}:{self.name}"


class Entry(NamedTuple):
    """Who may do what; Kafka's AccessControlEntry."""

    principal: str
    host: str
    operation: Operation
    permission: Permission

    def covers(self, operation: Operation) -> bool:
        """Whether it decides on this operation."""
        if self.operation is operation or self.operation is Operation.ALL:
            return True
        if self.permission is Permission.DENY:
            return False
        return self.operation in IMPLIED_BY.get(operation, ())

    def is_for(self, host: str) -> bool:
        """Whether it decides on clients at this address."""
        return self.host == ANY_HOST or self.host == host or in_range(host, self.host)

    def __str__(self) -> str:
        verb = "allowed" if self.permission is Permission.ALLOW else "denied"
        return f"{self.principal} is {verb} {word(self.operation)} from {self.host}"


class Acl(NamedTuple):
    """Kafka's AclBinding."""

    pattern: Pattern
    entry: Entry

    def __str__(self) -> str:
        return f"{self.entry} on {self.pattern}"


CodeT = TypeVar("CodeT", bound=IntEnum)


def word(code: IntEnum) -> str:
    """A code's name as Kafka writes it in the tree and in its tools: "IdempotentWrite"
    (SecurityUtils.toPascalCase).
    """
    return code.name.title().replace("_", "")


def code_of(codes: type[CodeT], text: str) -> CodeT:
    """The code with this name, in any case. Raises ValueError."""
    for code in codes:
        if text.upper() == word(code).upper():
            return code
    raise ValueError(f"{text!r} is none of {', '.join(map(word, codes))}")


@lru_cache(maxsize=4096)
def _range(text: str) -> IPv4Network | IPv6Network | None:
    try:
        return ip_network(text, strict=False)
    except ValueError:
        return None


@lru_cache(maxsize=4096)
def in_range(host: str, text: str) -> bool:
    """Whether a host's address is this address, or in this range of addresses. Addresses are
    compared as numbers; an IPv4 address within IPv6 is an IPv4 address, as in Java.
    """
    found = _range(text)
    if found is None:
        return False
    try:
        address = ip_address(host.partition("%")[0])
    except ValueError:
        return False
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    return address in found


def is_host(text: str) -> bool:
    """Whether an ACL may have this host: "*", an address or a range. Kafka takes any text without a
    slash; one that is no address would never match.
    """
    return text == ANY_HOST or "/" not in text or _range(text) is not None
