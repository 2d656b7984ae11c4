import tracemalloc
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.turns import calls_of

from ottla.protocol.access import Operation, Resource
from ottla.security.acl import Acl, Entry, Pattern, PatternType, Permission
from ottla.security.authorizer import Asked, Authorizer, Decision, Rule
from ottla.security.principal import Principal

ALLOW, DENY = Permission.ALLOW, Permission.DENY
TOPIC = Resource.TOPIC


def literal(name: str, resource: Resource = TOPIC) -> Pattern:
    return Pattern(resource, name, PatternType.LITERAL)


def prefixed(name: str, resource: Resource = TOPIC) -> Pattern:
    return Pattern(resource, name, PatternType.PREFIXED)


def entry(
    operation: Operation = Operation.READ,
    permission: Permission = ALLOW,
    *,
    principal: str = "User:alice",
    host: str = "*",
) -> Entry:
    return Entry(principal, host, operation, permission)


def authorizer(acls: Sequence[Acl], *, everyone_without_acls: bool = False) -> Authorizer:
    made = Authorizer([Principal("User", "root")], everyone_without_acls=everyone_without_acls)
    for pattern in {each.pattern for each in acls}:
        made.set_entries(pattern, [each.entry for each in acls if each.pattern == pattern])
    return made


def asked(
    operation: Operation = Operation.READ,
    name: str = "orders",
    *,
    principal: str = "User:alice",
    host: str = "10.1.2.3",
    resource: Resource = TOPIC,
) -> Asked:
    return Asked(principal, host, operation, resource, name)


def test_without_acls_only_super_users_may() -> None:
    nothing = authorizer([])
    assert nothing.decide(asked()) == Decision(False, Rule.NO_ACL_ALLOWS)
    assert nothing.decide(asked(principal="User:root")) == Decision(True, Rule.SUPER_USER)


def test_everyone_may_what_no_acl_names() -> None:
    acls = [Acl(literal("orders"), entry(Operation.WRITE, principal="User:bob"))]
    open_to_all = authorizer(acls, everyone_without_acls=True)
    assert open_to_all.decide(asked(name="other")) == Decision(True, Rule.NO_ACL_EVERYONE)
    assert open_to_all.decide(asked()) == Decision(False, Rule.NO_ACL_MATCHES)


def test_the_acl_that_decides_is_named() -> None:
    own, wide = Acl(literal("orders"), entry()), Acl(prefixed("ord"), entry())
    assert authorizer([own, wide]).decide(asked()) == Decision(True, own)
    assert authorizer([wide]).decide(asked()) == Decision(True, wide)
    refusal = Acl(literal("*"), entry(permission=DENY, principal="User:*"))
    assert authorizer([own, wide, refusal]).decide(asked()) == Decision(False, refusal)


def test_a_super_user_may_what_an_acl_denies() -> None:
    refusal = Acl(literal("*"), entry(Operation.ALL, DENY, principal="User:*"))
    assert authorizer([refusal]).decide(asked(principal="User:root")).allowed


def test_what_allows_to_write_allows_to_describe() -> None:
    may_write = authorizer([Acl(literal("orders"), entry(Operation.WRITE))])
    assert may_write.decide(asked(Operation.DESCRIBE)).allowed
    assert not may_write.decide(asked(Operation.READ)).allowed
    may_alter = authorizer([Acl(literal("orders"), entry(Operation.ALTER_CONFIGS))])
    assert may_alter.decide(asked(Operation.DESCRIBE_CONFIGS)).allowed
    assert not may_alter.decide(asked(Operation.DESCRIBE)).allowed


def test_what_denies_to_write_does_not_deny_to_describe() -> None:
    acls = [
        Acl(literal("orders"), entry(Operation.WRITE, DENY)),
        Acl(literal("orders"), entry(Operation.DESCRIBE)),
    ]
    assert authorizer(acls).decide(asked(Operation.DESCRIBE)).allowed


@pytest.mark.parametrize(
    ("host", "client", "is_for"),
    [
        ("10.1.2.3", "10.1.2.3", True),
        ("10.1.2.3", "10.1.2.30", False),
        ("10.0.0.0/8", "10.255.0.1", True),
        ("10.0.0.0/8", "11.0.0.1", False),
        ("10.1.2.3/8", "10.9.9.9", True),
        ("0.0.0.0/0", "::1", False),
        ("2001:db8::/32", "2001:db8::17", True),
        ("2001:db8::/32", "2001:db9::17", False),
        ("0:0:0:0:0:0:0:1", "::1", True),
        ("fe80::/10", "fe80::1%eth0", True),
        ("10.0.0.0/8", "::ffff:10.1.1.1", True),
        ("*", "", True),
        ("10.0.0.0/8", "", False),
        ("somewhere", "10.1.2.3", False),
    ],
)
def test_hosts_are_addresses_or_ranges(host: str, client: str, is_for: bool) -> None:
    found = authorizer([Acl(literal("orders"), entry(host=host))])
    assert found.decide(asked(host=client)).allowed is is_for


def test_a_change_of_an_acl_counts_at_once() -> None:
    found = authorizer([Acl(literal("orders"), entry())])
    assert found.allows(*asked())
    found.set_entries(literal("orders"), [])
    assert not found.allows(*asked())
    assert list(found.acls()) == []


def test_on_any_topic() -> None:
    def may(*acls: Acl, principal: str = "User:alice") -> bool:
        found = authorizer(acls)
        return found.allows_on_any(principal, "10.1.2.3", Operation.WRITE, TOPIC)

    write, refuse = entry(Operation.WRITE), entry(Operation.WRITE, DENY)
    assert not may()
    assert may(principal="User:root")
    assert may(Acl(literal("orders"), write))
    assert may(Acl(prefixed("or"), write))
    assert may(Acl(literal("*"), write))
    assert not may(Acl(literal("orders"), entry(Operation.READ)))
    assert not may(Acl(literal("orders"), write), Acl(literal("orders"), refuse))
    assert not may(Acl(literal("orders"), write), Acl(prefixed("or"), refuse))
    assert not may(Acl(literal("orders"), write), Acl(literal("*"), refuse))
    assert may(Acl(literal("orders"), write), Acl(prefixed("orders-"), refuse))
    assert may(Acl(prefixed("or"), write), Acl(prefixed("orders"), refuse))


NAMES = ("*", "a", "ab", "abc", "b", "hardcode")
PRINCIPALS = ("User:alice", "User:bob", "User:*", "Group:alice")
HOSTS = ("*", "10.0.0.1", "10.0.0.0/24")
OPERATIONS = tuple(Operation)
RESOURCES = (Resource.TOPIC, Resource.GROUP)
patterns = st.builds(
    Pattern, st.sampled_from(RESOURCES), st.sampled_from(NAMES), st.sampled_from(PatternType)
)
entries = st.builds(
    Entry,
    st.sampled_from(PRINCIPALS),
    st.sampled_from(HOSTS),
    st.sampled_from(OPERATIONS),
    st.sampled_from(Permission),
)
bindings = st.lists(st.builds(Acl, patterns, entries), max_size=8)
questions = st.builds(
    Asked,
    st.sampled_from(("User:alice", "User:carol", "User:root")),
    st.sampled_from(("10.0.0.1", "10.0.0.9", "10.0.1.1")),
    st.sampled_from(OPERATIONS),
    st.sampled_from(RESOURCES),
    st.sampled_from(("a", "ab", "abcd", "x", "b")),
)


def is_for(acl: Acl, question: Asked) -> bool:
    """Whether the ACL names the principal, the host and the operation, read off Kafka's rule."""
    entry, operation = acl.entry, question.operation
    host = {"*": True, "10.0.0.1": question.host == "10.0.0.1"}.get(
        entry.host, question.host.startswith("10.0.0.")
    )
    covers = entry.operation in (operation, Operation.ALL)
    if entry.permission is ALLOW and operation is Operation.DESCRIBE:
        covers = covers or entry.operation.name in {"READ", "WRITE", "DELETE", "ALTER"}
    if entry.permission is ALLOW and operation is Operation.DESCRIBE_CONFIGS:
        covers = covers or entry.operation is Operation.ALTER_CONFIGS
    return entry.principal in (question.principal, "User:*") and host and covers


def naive(acls: Sequence[Acl], question: Asked, everyone_without_acls: bool) -> bool:
    if question.principal == "User:root":
        return True
    named = [each for each in acls if each.pattern.matches(question.resource, question.name)]
    if any(each.entry.permission is DENY and is_for(each, question) for each in named):
        return False
    if any(each.entry.permission is ALLOW and is_for(each, question) for each in named):
        return True
    return not named and everyone_without_acls


@given(bindings, bindings, st.lists(questions, min_size=1, max_size=6), st.booleans())
def test_decides_as_a_list_of_all_acls_would(
    before: list[Acl], acls: list[Acl], asking: list[Asked], everyone: bool
) -> None:
    found = authorizer(before, everyone_without_acls=everyone)
    for question in asking:
        found.allows(*question)
    for pattern in {each.pattern for each in (*before, *acls)}:
        found.set_entries(pattern, [each.entry for each in acls if each.pattern == pattern])
    assert set(found.acls()) == set(acls)
    for question in asking:
        decision = found.decide(question)
        assert decision.allowed is naive(acls, question, everyone)
        assert found.allows(*question) is decision.allowed
        if isinstance(decision.because, Acl):
            assert decision.because in acls
            assert decision.allowed is (decision.because.entry.permission is ALLOW)


def test_thousands_of_acls_cost_no_more_than_one() -> None:
    def made(count: int) -> Authorizer:
        return authorizer(
            [Acl(literal(f"topic-{number}"), entry()) for number in range(count)]
            + [Acl(literal("orders"), entry(principal=f"User:{number}")) for number in range(count)]
            + [Acl(prefixed(f"prefix-{number:05}"), entry()) for number in range(count)]
        )

    one, many = made(1), made(700)
    few = calls_of(lambda: one.decide(asked()))
    assert calls_of(lambda: many.decide(asked())) <= few
    assert many.decide(asked(name="prefix-00500-a")).allowed


def test_long_names_are_not_kept() -> None:
    decider = authorizer([Acl(prefixed("x"), entry())])
    tracemalloc.start()
    try:
        for number in range(200):
            name = f"{'x' * 30_000}{number}"
            assert decider.allows("User:alice", "10.1.2.3", Operation.READ, TOPIC, name)
        kept_bytes, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept_bytes < 1_000_000
