import pytest

from ottla.protocol.access import Operation, Resource
from ottla.security.acl import (
    Acl,
    Entry,
    Pattern,
    PatternType,
    Permission,
    code_of,
    is_host,
    word,
)


def test_codes_are_written_as_kafka_writes_them() -> None:
    assert word(Operation.IDEMPOTENT_WRITE) == "IdempotentWrite"
    assert word(Resource.TRANSACTIONAL_ID) == "TransactionalId"
    for operation in Operation:
        assert code_of(Operation, word(operation)) is operation
    assert code_of(Operation, "IDEMPOTENTWRITE") is Operation.IDEMPOTENT_WRITE


def test_an_unknown_code_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"'Reed' is none of All, Read, Write"):
        code_of(Operation, "Reed")


def test_an_acl_is_a_sentence() -> None:
    pattern = Pattern(Resource.TOPIC, "orders", PatternType.LITERAL)
    entry = Entry("User:alice", "*", Operation.READ, Permission.DENY)
    assert str(Acl(pattern, entry)) == "User:alice is denied Read from * on Topic:LITERAL:orders"


@pytest.mark.parametrize("host", ["*", "10.0.0.1", "::1", "10.0.0.0/8", "2001:db8::/32"])
def test_addresses_and_ranges_are_hosts(host: str) -> None:
    assert is_host(host)


@pytest.mark.parametrize("host", ["10.0.0.0/33", "10.0.0/8/8", "a/b", "/8"])
def test_a_range_that_is_none_is_no_host(host: str) -> None:
    assert not is_host(host)
