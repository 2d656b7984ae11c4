import json

import pytest

from ottla.protocol.access import Operation, Resource
from ottla.security.acl import Acl, Entry, Pattern, PatternType, Permission
from ottla.security.acl_filter import ANY, MATCH, UNKNOWN, AclFilter
from ottla.security.acl_tree import (
    AclNodeError,
    path_of,
    pattern_at,
    read_change,
    read_entries,
    write_change,
    write_entries,
)

LITERAL = Pattern(Resource.TOPIC, "orders", PatternType.LITERAL)
PREFIXED = Pattern(Resource.TRANSACTIONAL_ID, "or:d", PatternType.PREFIXED)
ENTRY = Entry("User:CN=a,O=é/b", "10.0.0.0/8", Operation.IDEMPOTENT_WRITE, Permission.DENY)


def test_the_paths_are_kafkas() -> None:
    assert path_of(LITERAL) == "/kafka-acl/Topic/orders"
    assert path_of(PREFIXED) == "/kafka-acl-extended/prefixed/TransactionalId/or:d"
    for pattern in (LITERAL, PREFIXED):
        assert pattern_at(path_of(pattern)) == pattern
    for path in ("/kafka-acl", "/kafka-acl/Topic", "/kafka-acl/Wrong/a", "/kafka-acl-changes/a"):
        assert pattern_at(path) is None


def test_entries_are_written_as_kafka_writes_them() -> None:
    data = write_entries([ENTRY])
    assert json.loads(data) == {
        "version": 1,
        "acls": [
            {
                "principal": "User:CN=a,O=é/b",
                "permissionType": "Deny",
                "operation": "IdempotentWrite",
                "host": "10.0.0.0/8",
            }
        ],
    }
    assert read_entries(data) == [ENTRY]
    assert read_entries(b"") == []


@pytest.mark.parametrize(
    "data", [b"{", b"[]", b"{}", b'{"version":2,"acls":[]}', b'{"version":1,"acls":[{"host":"*"}]}']
)
def test_other_content_is_an_error(data: bytes) -> None:
    with pytest.raises(AclNodeError):
        read_entries(data)


@pytest.mark.parametrize("pattern", [LITERAL, PREFIXED])
def test_changes_name_the_pattern(pattern: Pattern) -> None:
    assert read_change(pattern.type, write_change(pattern)) == pattern


def test_the_changes_of_literal_patterns_are_as_before_prefixes() -> None:
    assert write_change(LITERAL) == b"TOPIC:orders"


@pytest.mark.parametrize("kind", PatternType)
@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"\xff", b"Wrong:a"])
def test_other_changes_are_errors(kind: PatternType, data: bytes) -> None:
    with pytest.raises(AclNodeError):
        read_change(kind, data)


ANYTHING = AclFilter(ANY, None, ANY, None, None, ANY, ANY)


@pytest.mark.parametrize(
    ("pattern", "changes", "matches"),
    [
        (LITERAL, {}, True),
        (LITERAL, {"name": "orders"}, True),
        (LITERAL, {"name": "order"}, False),
        (LITERAL, {"resource": Resource.GROUP}, False),
        (LITERAL, {"pattern": PatternType.PREFIXED}, False),
        (LITERAL, {"principal": "User:b"}, False),
        (LITERAL, {"host": "*"}, False),
        (LITERAL, {"operation": Operation.ALL}, False),
        (LITERAL, {"permission": Permission.ALLOW}, False),
        (LITERAL._replace(name="*"), {"name": "orders"}, False),
        (LITERAL._replace(name="*"), {"name": "orders", "pattern": MATCH}, True),
        (PREFIXED, {"name": "or:dx", "pattern": MATCH}, True),
        (PREFIXED, {"name": "or", "pattern": MATCH}, False),
        (PREFIXED, {"name": "or:d", "pattern": PatternType.PREFIXED}, True),
    ],
)
def test_filters_match_as_kafkas(
    pattern: Pattern, changes: dict[str, object], matches: bool
) -> None:
    found = ANYTHING._replace(**changes)  # type: ignore[arg-type]
    assert found.matches(Acl(pattern, ENTRY)) is matches


def test_unknown_codes_are_known_as_such() -> None:
    assert not ANYTHING.is_unknown
    for field in ("resource", "pattern", "operation", "permission"):
        for code in (UNKNOWN, 99):
            changed = ANYTHING._asdict() | {field: code}
            assert AclFilter(**changed).is_unknown
