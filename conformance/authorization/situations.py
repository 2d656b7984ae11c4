"""What the client may do in each situation: nothing, one thing, everything but one thing ...

Together the situations with one operation, and those with all but one, show which permissions a
request needs, and which of them suffice: neither side is believed to know them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from conformance.authorization.given import (
    GROUPS,
    NEW_TOPICS,
    TOPICS,
    TRANSACTIONS,
    Given,
)
from ottla.protocol.access import CLUSTER_NAME, OPERATIONS_OF, Operation, Resource
from ottla.security.acl import Acl, Entry, Pattern, PatternType, Permission

CLIENT: Final = "alice"
BOSS: Final = "boss"
"""A super user."""
PRINCIPAL: Final = f"User:{CLIENT}"
ALLOW, DENY = Permission.ALLOW, Permission.DENY
LITERAL, PREFIXED = PatternType.LITERAL, PatternType.PREFIXED
WORDS: Final = {
    Resource.TOPIC: (*TOPICS, *NEW_TOPICS),
    Resource.GROUP: GROUPS,
    Resource.TRANSACTIONAL_ID: TRANSACTIONS,
}

Acls = Callable[[Given], list[Acl]]


class Situation(NamedTuple):
    """What there is when the client asks."""

    name: str
    acls: Acls
    user: str = CLIENT
    every_version: bool = False
    """Not only the first and the last version of each request."""


def acl(
    pattern: Pattern,
    operation: Operation,
    permission: Permission = ALLOW,
    principal: str = PRINCIPAL,
    host: str = "*",
) -> Acl:
    return Acl(pattern, Entry(principal, host, operation, permission))


def each_name(given: Given, resource: Resource) -> list[Pattern]:
    """Each resource of this type that the requests name."""
    names = (
        [CLUSTER_NAME] if resource is Resource.CLUSTER else list(map(given.name, WORDS[resource]))
    )
    return [Pattern(resource, name, LITERAL) for name in names]


RESOURCES: Final = (
    Resource.TOPIC,
    Resource.GROUP,
    Resource.TRANSACTIONAL_ID,
    Resource.CLUSTER,
)


def nothing(given: Given) -> list[Acl]:
    return []


def only(operation: Operation, resource: Resource) -> Acls:
    """This operation, on each resource of the type."""
    return lambda given: [acl(each, operation) for each in each_name(given, resource)]


def everything(given: Given) -> list[Acl]:
    return [
        acl(each, Operation.ALL) for resource in RESOURCES for each in each_name(given, resource)
    ]


def all_but(operation: Operation, resource: Resource) -> Acls:
    """Everything, and this operation is denied."""
    return lambda given: [
        *everything(given),
        *(acl(each, operation, DENY) for each in each_name(given, resource)),
    ]


def by_prefix(given: Given) -> list[Acl]:
    names = dict.fromkeys(RESOURCES, f"{given.prefix}-")
    names[Resource.CLUSTER] = CLUSTER_NAME
    kinds = {Resource.CLUSTER: LITERAL}
    return [
        acl(Pattern(each, names[each], kinds.get(each, PREFIXED)), Operation.ALL)
        for each in RESOURCES
    ]


def denied_by_prefix(given: Given) -> list[Acl]:
    return [
        *everything(given),
        *(each._replace(entry=each.entry._replace(permission=DENY)) for each in by_prefix(given)),
    ]


def by_a_longer_prefix(given: Given) -> list[Acl]:
    """Prefixes with which no name begins."""
    return [
        acl(Pattern(each, f"{given.prefix}-none", PREFIXED), Operation.ALL)
        for each in RESOURCES
        if each is not Resource.CLUSTER
    ]


def every_name(given: Given) -> list[Acl]:
    """The wildcard; the cluster is named, as it has one name."""
    kinds = {Resource.CLUSTER: CLUSTER_NAME}
    return [acl(Pattern(each, kinds.get(each, "*"), LITERAL), Operation.ALL) for each in RESOURCES]


def every_name_denied(given: Given) -> list[Acl]:
    return [
        *everything(given),
        *(each._replace(entry=each.entry._replace(permission=DENY)) for each in every_name(given)),
    ]


def of(principal: str = PRINCIPAL, host: str = "*", permission: Permission = ALLOW) -> Acls:
    """Everything for this principal from this host."""
    return lambda given: [
        acl(each.pattern, Operation.ALL, permission, principal, host) for each in everything(given)
    ]


def _both(*parts: Acls) -> Acls:
    return lambda given: [each for part in parts for each in part(given)]


def _single_operations() -> Iterator[Situation]:
    for resource in RESOURCES:
        for operation in OPERATIONS_OF[resource]:
            name = f"{operation.name} on {resource.name}"
            yield Situation(f"only {name}", only(operation, resource))
            yield Situation(f"all but {name}", all_but(operation, resource))


SITUATIONS: Final[Sequence[Situation]] = (
    Situation("no ACL", nothing, every_version=True),
    Situation("everything", everything, every_version=True),
    Situation("everything by prefix", by_prefix),
    Situation("denied by prefix", denied_by_prefix),
    Situation("a longer prefix", by_a_longer_prefix),
    Situation("every name", every_name),
    Situation("every name denied", every_name_denied),
    Situation("everybody", of("User:*")),
    Situation("everybody denied", _both(everything, of("User:*", permission=DENY))),
    Situation("another one", of("User:bob")),
    Situation("from this address", of(host="127.0.0.1")),
    Situation("from another address", of(host="192.0.2.1")),
    Situation("from this network", of(host="127.0.0.0/8")),
    Situation("from another network", of(host="192.0.2.0/24")),
    Situation("a super user without ACLs", nothing, BOSS),
    Situation("a super user who is denied", of(f"User:{BOSS}", permission=DENY), BOSS),
    *_single_operations(),
)
"""On brokers that refuse what no ACL allows."""
FOR_EVERYONE: Final[Sequence[Situation]] = (
    Situation("no ACL", nothing, every_version=True),
    Situation("everything", everything, every_version=True),
    Situation("denied", of(permission=DENY)),
    Situation("denied by prefix", denied_by_prefix),
    Situation("a longer prefix", by_a_longer_prefix),
    Situation("another one", of("User:bob")),
    Situation("another one is denied", of("User:bob", permission=DENY)),
    Situation("from another address", of(host="192.0.2.1")),
    Situation("only DESCRIBE on TOPIC", only(Operation.DESCRIBE, Resource.TOPIC)),
    Situation("only READ on GROUP", only(Operation.READ, Resource.GROUP)),
    Situation("only DESCRIBE on CLUSTER", only(Operation.DESCRIBE, Resource.CLUSTER)),
    Situation("a super user who is denied", of(f"User:{BOSS}", permission=DENY), BOSS),
)
"""On brokers with `allow.everyone.if.no.acl.found=true`."""
