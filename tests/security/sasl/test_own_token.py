import pytest
from tests.security.issuer import encoded

from ottla.protocol.sasl_client import SaslError
from ottla.security.sasl.own_token import OwnToken, Refresh, first_message, read_token

REFRESH = Refresh(factor=0.8, jitter=0.1, min_period_ms=60_000, buffer_ms=300_000)


def token(**claims: object) -> str:
    return f"{encoded({'alg': 'ES256'})}.{encoded(claims)}.signature"


def test_times_of_a_token() -> None:
    text = token(exp=2_000.5, iat=1_000)
    assert read_token(f"{text}\n") == OwnToken(text, 1_000_000, 2_000_500)
    assert read_token(token(exp=2_000, iat="then")).begins_ms is None
    assert first_message("a.b.c") == b"n,,\x01auth=Bearer a.b.c\x01\x01"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "not a JWT"),
        ("a.b", "not a JWT"),
        ("a.b.c.d", "not a JWT"),
        ("a.b.c", "not a JSON object"),
        (f"a.{encoded([1])}.c", "not a JSON object"),
        (f"a.{encoded(b'[' * 100_000)}.c", "not a JSON object"),
        (token(), "no claim exp"),
        (token(exp=True), "no claim exp"),
        (token(exp=1e300), "no claim exp"),
    ],
)
def test_what_is_no_token(text: str, said: str) -> None:
    with pytest.raises(SaslError, match=said):
        read_token(text)


@pytest.mark.parametrize(
    ("begins_ms", "expires_ms", "chance", "at_ms"),
    [
        (None, 10_000_000, 0.0, 8_000_000),
        (None, 10_000_000, 1.0, 9_000_000),
        # Not within the time before the end that is kept free, nor at once.
        (None, 1_000_000, 1.0, 700_000),
        (-9_000_000, 1_000_000, 0.0, 60_000),
        # What is too short for both: a part of what is left.
        (None, 100_000, 0.0, 80_000),
        (None, -100, 0.0, -80),
    ],
)
def test_when_another_one_is_got(
    begins_ms: int | None, expires_ms: int, chance: float, at_ms: int
) -> None:
    assert REFRESH.at_ms(OwnToken("", begins_ms, expires_ms), 0, chance) == at_ms
