import pytest

from ottla.security.principal import ANONYMOUS, Principal, parse_principal


def test_a_principal_is_written_as_kafka_writes_it() -> None:
    assert str(Principal("User", "alice")) == "User:alice"
    assert str(ANONYMOUS) == "User:ANONYMOUS"


@pytest.mark.parametrize("name", ["alice", "CN=a,O=b", "a:b", "a/b", "*", "é" * 200])
def test_what_is_written_is_read(name: str) -> None:
    assert parse_principal(f"User:{name}") == Principal("User", name)


@pytest.mark.parametrize("text", ["", "alice", "User:", ":alice", ":"])
def test_a_principal_has_a_type_and_a_name(text: str) -> None:
    with pytest.raises(ValueError, match="expected a principal as Type:name"):
        parse_principal(text)
