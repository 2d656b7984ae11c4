from __future__ import annotations

import pytest

from ottla.config import BrokerConfig, ConfigError
from ottla.config.listener_tokens import (
    SIGNED_HANDLERS,
    UNSECURED_HANDLER,
    OauthbearerOptions,
    oauthbearer_options,
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


def test_brokers_have_no_tokens_themselves() -> None:
    with pytest.raises(ConfigError, match=r"sasl\.mechanism\.inter\.broker\.protocol"):
        options(
            **{
                "zookeeper.connect": "127.0.0.1:2181",
                "sasl.mechanism.inter.broker.protocol": "OAUTHBEARER",
            }
        )
