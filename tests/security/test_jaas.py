import pytest

from ottla.security.jaas import JaasError, parse_jaas

MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"


def test_a_login_module_with_options() -> None:
    text = f"""{MODULE} required
        username="broker" password='secret'
        user_alice="her \\"own\\" = ;, password" user_o.b=x;
    """
    login = parse_jaas(text)
    assert login.name == MODULE
    assert login.options["username"] == "broker"
    assert login.passwords == {"alice": 'her "own" = ;, password', "o.b": "x"}


def test_no_options() -> None:
    assert parse_jaas(f"{MODULE} REQUIRED ;").options == {}


@pytest.mark.parametrize(
    "text",
    [
        "",
        MODULE,
        f"{MODULE};",
        f'{MODULE} required user_a="secret"',
        f'{MODULE} user_a="secret";',
        f'{MODULE} required user_a "secret";',
        f'{MODULE} required user_a="secret;',
        f'{MODULE} required user_a==="secret";',
    ],
)
def test_what_is_none(text: str) -> None:
    with pytest.raises(JaasError) as error:
        parse_jaas(text)
    assert "secret" not in str(error.value)
