"""What a principal may do, by the ACLs: pure, and it says which ACL decided.

The rule is Kafka's (StandardAuthorizerData, KIP-11, KIP-290): a super user may do everything; else
a matching ACL that denies decides, else one that allows; where none matches, the answer is no,
unless no ACL at all names the resource and `allow.everyone.if.no.acl.found` is true.

Look-ups are by the resource's name, by each length that a prefix has, and by "*", then by the
principal and "User:*"; so their cost does not grow with the number of ACLs. Decisions are
remembered until an ACL changes.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from enum import Enum
from typing import Final, NamedTuple, TypeAlias

from ottla.protocol.access import Operation, Resource
from ottla.security.acl import ANY_NAME, ANY_PRINCIPAL, Acl, Entry, Pattern, PatternType, Permission
from ottla.security.principal import Principal

MAX_REMEMBERED: Final = 10_000
"""Decisions; beyond it all are forgotten."""
MAX_REMEMBERED_CHARACTERS: Final = 300
"""Of a resource's name, which a client chooses: a group may have one of 32 KB. A decision about a
longer one is made each time.
"""


class Rule(Enum):
    """What decided where no ACL did."""

    SUPER_USER = "a super user may do everything"
    NO_ACL_MATCHES = "ACLs name this resource, and none of them allows it"
    NO_ACL_ALLOWS = "no ACL names this resource"
    NO_ACL_EVERYONE = "no ACL names this resource, and allow.everyone.if.no.acl.found is true"


class Decision(NamedTuple):
    allowed: bool
    because: Acl | Rule


class Asked(NamedTuple):
    """The question to an authorizer. The principal is a text: "User:alice"."""

    principal: str
    host: str
    operation: Operation
    resource: Resource
    name: str


_Entries: TypeAlias = dict[str, tuple[Entry, ...]]
"""The entries of one pattern, by principal."""


class Authorizer:
    """Decides by ACLs, which may change."""

    def __init__(
        self, super_users: Iterable[Principal] = (), *, everyone_without_acls: bool = False
    ) -> None:
        """`everyone_without_acls` is `allow.everyone.if.no.acl.found`."""
        self._super_users = frozenset(str(user) for user in super_users)
        self._everyone_without_acls = everyone_without_acls
        self._patterns: dict[Pattern, _Entries] = {}
        self._prefixes: defaultdict[Resource, Counter[int]] = defaultdict(Counter)
        """How many prefixes there are, by their length."""
        self._prefix_lengths: dict[Resource, tuple[int, ...]] = {}
        """The longest first."""
        self._remembered: dict[tuple[str, str, Operation, Resource, str], bool] = {}

    def __len__(self) -> int:
        """The number of ACLs."""
        return sum(1 for _ in self.acls())

    def acls(self) -> Iterator[Acl]:
        """All ACLs, those of a pattern together."""
        for pattern, by_principal in self._patterns.items():
            for entries in by_principal.values():
                for entry in entries:
                    yield Acl(pattern, entry)

    def is_super_user(self, principal: str) -> bool:
        """Whether the settings allow it everything."""
        return principal in self._super_users

    def set_entries(self, pattern: Pattern, entries: Iterable[Entry]) -> None:
        """From now on the pattern has exactly these entries; with none, no ACL names it."""
        by_principal: defaultdict[str, list[Entry]] = defaultdict(list)
        for entry in dict.fromkeys(entries):
            by_principal[entry.principal].append(entry)
        self._remembered.clear()
        was_there = self._patterns.pop(pattern, None) is not None
        if by_principal:
            self._patterns[pattern] = {each: tuple(of) for each, of in by_principal.items()}
        if pattern.type is PatternType.PREFIXED and was_there != bool(by_principal):
            lengths = self._prefixes[pattern.resource]
            lengths[len(pattern.name)] += -1 if was_there else 1
            self._prefix_lengths[pattern.resource] = tuple(sorted(+lengths, reverse=True))

    def allows(
        self, principal: str, host: str, operation: Operation, resource: Resource, name: str
    ) -> bool:
        """Whether the principal may do the operation on the resource with this name."""
        asked = (principal, host, operation, resource, name)
        if len(name) > MAX_REMEMBERED_CHARACTERS:
            return self.decide(Asked(*asked)).allowed
        found = self._remembered.get(asked)
        if found is None:
            if len(self._remembered) >= MAX_REMEMBERED:
                self._remembered.clear()
            found = self._remembered[asked] = self.decide(Asked(*asked)).allowed
        return found

    def decide(self, asked: Asked) -> Decision:
        """The same, with what decided: of several ACLs one with the closest pattern."""
        if asked.principal in self._super_users:
            return Decision(True, Rule.SUPER_USER)
        allowing: Acl | None = None
        is_named = False
        for pattern, by_principal in self._matching(asked.resource, asked.name):
            is_named = True
            for entry in _of(by_principal, asked.principal):
                if entry.permission is Permission.ALLOW and allowing is not None:
                    continue
                if not entry.covers(asked.operation) or not entry.is_for(asked.host):
                    continue
                if entry.permission is Permission.DENY:
                    return Decision(False, Acl(pattern, entry))
                allowing = Acl(pattern, entry)
        if allowing is not None:
            return Decision(True, allowing)
        if is_named:
            return Decision(False, Rule.NO_ACL_MATCHES)
        if self._everyone_without_acls:
            return Decision(True, Rule.NO_ACL_EVERYONE)
        return Decision(False, Rule.NO_ACL_ALLOWS)

    def allows_on_any(
        self, principal: str, host: str, operation: Operation, resource: Resource
    ) -> bool:
        """Whether the principal may do the operation on at least one resource of this type, real or
        not (Authorizer.authorizeByResourceType, KIP-679). Here implied operations do not count.
        """
        if self.allows(principal, host, operation, resource, "hardcode"):
            return True
        allowed: list[Pattern] = []
        denied: set[Pattern] = set()
        for pattern, by_principal in self._patterns.items():
            if pattern.resource is not resource:
                continue
            for entry in _of(by_principal, principal):
                if entry.operation not in (operation, Operation.ALL) or not entry.is_for(host):
                    continue
                if entry.permission is Permission.ALLOW:
                    allowed.append(pattern)
                else:
                    denied.add(pattern)
        everything = Pattern(resource, ANY_NAME, PatternType.LITERAL)
        if everything in denied:
            return False
        return any(each == everything or not _is_denied(each, denied) for each in allowed)

    def _matching(self, resource: Resource, name: str) -> Iterator[tuple[Pattern, _Entries]]:
        patterns = self._patterns
        literal = Pattern(resource, name, PatternType.LITERAL)
        found = patterns.get(literal)
        if found is not None:
            yield literal, found
        for length in self._prefix_lengths.get(resource, ()):
            if length <= len(name):
                prefix = Pattern(resource, name[:length], PatternType.PREFIXED)
                found = patterns.get(prefix)
                if found is not None:
                    yield prefix, found
        if name != ANY_NAME:
            everything = Pattern(resource, ANY_NAME, PatternType.LITERAL)
            found = patterns.get(everything)
            if found is not None:
                yield everything, found


def _of(by_principal: _Entries, principal: str) -> Iterator[Entry]:
    yield from by_principal.get(principal, ())
    if principal != ANY_PRINCIPAL:
        yield from by_principal.get(ANY_PRINCIPAL, ())


def _is_denied(pattern: Pattern, denied: set[Pattern]) -> bool:
    """Whether everything that the pattern matches is denied."""
    if pattern in denied:
        return True
    name = pattern.name
    return any(
        pattern._replace(name=name[:length], type=PatternType.PREFIXED) in denied
        for length in range(1, len(name) + 1)
    )
