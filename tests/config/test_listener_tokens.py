from __future__ import annotations

import pytest

from ottla.config import BrokerConfig, ConfigError
from ottla.config.listener_tokens import (
    SIGNED_HANDLERS,
    UNSECURED_HANDLER,
    OauthbearerOptions,
    TokenLogin,
    oauthbearer_options,
    token_login,
)
from ottla.security.sasl.token_claims import ClaimRules

URL = "sasl.oauthbearer.jwks.endpoint.url"
OWN = "listener.name.sasl_ssl."
OF_MECHANISM = f"{OWN}oauthbearer."
JAAS = f"{OF_MECHANISM}sasl.jaas.config"
HANDLER = f"{OF_MECHANISM}sasl.server.callback.handler.class"
LISTENER = {
    "listeners": "SASL_SSL://127.0.0.1:9094",
    "sasl.enabled.mechanisms": "OAUTHBEARER",
}
MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"


def options(**more: str) -> OauthbearerOptions:
    return given({URL: "https://issuer/keys"} | more)


def given(settings: dict[str, str]) -> OauthbearerOptions:
    config = BrokerConfig(LISTENER | settings)
    return oauthbearer_options(config.given, config.security_of("SASL_SSL"))


def test_defaults() -> None:
    assert options() == OauthbearerOptions(
        ClaimRules(), "https://issuer/keys", 3_600_000, 100, 10_000, None
    )


def test_all_settings() -> None:
    name = "sasl.oauthbearer."
    found = given(
        {
            URL: "file:///etc/keys.json",
            f"{name}jwks.endpoint.refresh.ms": "60000",
            f"{name}jwks.endpoint.retry.backoff.ms": "7",
            f"{name}jwks.endpoint.retry.backoff.max.ms": "70",
            f"{name}expected.audience": "a,b",
            f"{name}expected.issuer": "i",
            f"{name}clock.skew.seconds": "5",
            f"{name}scope.claim.name": "scp",
            f"{name}sub.claim.name": "azp",
            JAAS: f'{MODULE} ssl.truststore.location="/t.pem";',
        }
    )
    rules = ClaimRules(("a", "b"), "i", 5_000, "azp", "scp")
    assert found == OauthbearerOptions(rules, "file:///etc/keys.json", 60_000, 7, 70, "/t.pem")


def test_the_nearest_setting_counts() -> None:
    near, own, general = "https://near/", "https://own/", "https://general/"
    assert given({URL: general}).keys_url == general
    assert given({URL: general, OWN + URL: own}).keys_url == own
    both = {URL: general, OWN + URL: own, OF_MECHANISM + URL: near}
    assert given(both).keys_url == near


@pytest.mark.parametrize("name", SIGNED_HANDLERS)
def test_kafkas_names_of_the_handler(name: str) -> None:
    assert options(**{HANDLER: name}).keys_url is not None


def test_unsecured_tokens_only_if_a_setting_says_so() -> None:
    by_class = given({HANDLER: UNSECURED_HANDLER})
    assert (by_class.keys_url, by_class.rules.skew_ms) == (None, 0)
    claim = 'unsecuredValidatorPrincipalClaimName="who"'
    assert given({JAAS: f"{MODULE} {claim};"}).rules.subject_claim == "who"
    assert given({JAAS: f'{MODULE} unsecuredLoginStringClaim_sub="admin";'}).keys_url is None
    for settings in ({}, {JAAS: f"{MODULE};"}, {HANDLER: SIGNED_HANDLERS[0]}):
        with pytest.raises(ConfigError, match="must have the public keys of the issuer"):
            given(settings)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({HANDLER: "com.example.Mine"}, f"Invalid value com.example.Mine for .* {HANDLER}"),
        ({JAAS: f'{MODULE} unsecuredLoginStringClaim_sub="a";'}, "give one of both"),
        ({URL: "ftp://a/b"}, "Expected https://HOST/PATH"),
        ({URL: "https:///b"}, "Expected https"),
        ({URL: "https://a:b/c"}, "Expected https"),
        ({URL: "https://user:secret@a/c"}, "Expected https"),
        ({URL: "https://a/\u00fc"}, "Expected https"),
        ({URL: "https://[a/"}, "Expected https"),
        ({URL: "file://etc/keys"}, "Expected https"),
        ({URL: "file:///"}, "Expected https"),
        ({URL: "/etc/keys"}, "Expected https"),
        ({OWN + "sasl.oauthbearer.clock.skew.seconds": "-1"}, "at least 0"),
        ({OF_MECHANISM + "sasl.oauthbearer.clock.skew.seconds": "x"}, "Not a number"),
        ({"sasl.oauthbearer.jwks.endpoint.refresh.ms": "999"}, "at least 1000"),
        ({OF_MECHANISM + "sasl.oauthbearer.nonsense": "1"}, "Unknown setting"),
    ],
)
def test_what_is_refused(settings: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigError, match=said) as error:
        options(**settings)
    assert "\n" not in str(error.value)
    assert "secret" not in str(error.value) or "user:secret" in settings.get(URL, "")


def test_options_of_unsecured_tokens_that_are_wrong() -> None:
    with pytest.raises(ConfigError, match="AllowableClockSkewMs must be a number"):
        given({JAAS: f'{MODULE} unsecuredValidatorAllowableClockSkewMs="x";'})


BROKERS = {
    "zookeeper.connect": "127.0.0.1:2181",
    "sasl.mechanism.inter.broker.protocol": "OAUTHBEARER",
}
TOKENS = "sasl.oauthbearer.token.endpoint.url"


def own_token(more: dict[str, str]) -> TokenLogin:
    config = BrokerConfig(LISTENER | {URL: "https://issuer/keys"} | BROKERS | more)
    return token_login(config.given, config.security_of(config.endpoints[0].name))


def test_where_brokers_get_their_tokens() -> None:
    login = own_token({TOKENS: "file:///token"})
    assert (login.url, login.client_id) == ("file:///token", "")
    assert login.refresh == (0.8, 0.05, 60_000, 300_000)
    options = 'clientId="a" clientSecret="b" scope="c" ssl.truststore.location="/t";'
    login = own_token({TOKENS: "https://issuer/token", JAAS: f"{MODULE} {options}"})
    assert (login.client_id, login.client_secret, login.scope) == ("a", "b", "c")
    assert login.authorities == "/t"
    credentials = "sasl.oauthbearer.client.credentials.client"
    login = own_token(
        {
            TOKENS: "https://issuer/token",
            f"{credentials}.id": "a",
            f"{credentials}.secret": "b",
            "sasl.login.read.timeout.ms": "7",
        }
    )
    assert (login.client_id, login.client_secret, login.read_ms) == ("a", "b", 7)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({}, "must have the address where brokers get their tokens"),
        ({TOKENS: "ftp://a"}, "Expected https://HOST/PATH"),
        ({TOKENS: "https://a/t"}, "must have the clientId and the clientSecret"),
    ],
)
def test_tokens_that_brokers_cannot_get(more: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        own_token(more)
