import pytest

from ottla.security.sasl.scram_users import ScramUser, parse_scram_users


def test_users() -> None:
    text = """SCRAM-SHA-256=[name=alice,password="her, ]; secret"];
        SCRAM-SHA-512=[name="b c",password=p=q, iterations=8192]"""
    assert parse_scram_users(text) == [
        ScramUser("SCRAM-SHA-256", "alice", "her, ]; secret", 4096),
        ScramUser("SCRAM-SHA-512", "b c", "p=q", 8192),
    ]
    assert parse_scram_users(" ") == []


@pytest.mark.parametrize(
    "text",
    [
        "alice:secret",
        "PLAIN=[name=a,password=secret]",
        "SCRAM-SHA-256=[name=a,password=secret",
        "SCRAM-SHA-256=[name=a,password=secret] SCRAM-SHA-256=[name=b,password=secret]",
        "SCRAM-SHA-256=[name=a]",
        "SCRAM-SHA-256=[password=secret]",
        "SCRAM-SHA-256=[name=a,password=secret,salt=x]",
        "SCRAM-SHA-256=[name=a,name=b,password=secret]",
        "SCRAM-SHA-256=[name=a,password=secret,iterations=1]",
        "SCRAM-SHA-256=[name=a,password=secret,iterations=9999999999]",
        'SCRAM-SHA-256=[name=a,password="secret]',
    ],
)
def test_what_is_wrong_shows_no_password(text: str) -> None:
    with pytest.raises(ValueError, match=r"expected|needs|must be") as error:
        parse_scram_users(text)
    assert "secret" not in str(error.value)
