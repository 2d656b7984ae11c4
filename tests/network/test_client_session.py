from ottla.network.client_session import ClientSession
from ottla.security.principal import ANONYMOUS, Principal


def test_a_client_is_anonymous_until_it_authenticates() -> None:
    session = ClientSession(1, "192.0.2.7", "PLAINTEXT", "there", 9092)
    assert session.principal is ANONYMOUS
    assert str(session.principal) == "User:ANONYMOUS"
    session.principal = Principal("User", "alice")
    assert str(session.principal) == "User:alice"


def test_the_address_is_formatted_as_in_kafka() -> None:
    assert ClientSession(1, "::1", "PLAINTEXT", "", 0).address == "/::1"
