import pytest

from ottla.security.sasl.mechanism import Identity, RefusedError
from ottla.security.sasl.plain import PlainExchange

PASSWORDS = {"alice": "pässword", "bob": "b"}


@pytest.mark.parametrize("acts_as", ["", "alice"])
def test_the_right_password(acts_as: str) -> None:
    exchange = PlainExchange(PASSWORDS)
    assert exchange.answer(f"{acts_as}\0alice\0pässword".encode()) == b""
    assert exchange.identity == Identity("alice")


@pytest.mark.parametrize(
    "message",
    [
        "\0alice\0wrong",
        "\0alice\0pässword\0",
        "\0alice",
        "",
        "\0\0pässword",
        "\0alice\0",
        "\0carol\0c",
        "bob\0alice\0pässword",
        "\0alice\0b",
    ],
)
def test_everything_else_is_refused(message: str) -> None:
    exchange = PlainExchange(PASSWORDS)
    with pytest.raises(RefusedError):
        exchange.answer(message.encode())
    assert exchange.identity is None


def test_bytes_that_are_no_text() -> None:
    with pytest.raises(RefusedError):
        PlainExchange(PASSWORDS).answer(b"\0\xff\0\xfe")
