from pathlib import Path

import pytest
from tests.security.issuer import Issuer, serving

from ottla.config import BrokerConfig, ConfigError
from ottla.network.sasl_offer import NOBODY, SaslOffer
from ottla.security.sasl.mechanism import Exchange, NotYetError
from ottla.security.sasl.plain import PlainExchange

NOW_MS = 1_700_000_000_000
SETTINGS = {
    "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
    "sasl.enabled.mechanisms": "PLAIN",
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": 'M required user_a="1";',
    "listener.name.sasl_plaintext.plain.connections.max.reauth.ms": "7",
    "connections.max.reauth.ms": "9",
}
URL = "sasl.oauthbearer.jwks.endpoint.url"


def offer_of(**more: str) -> SaslOffer:
    config = BrokerConfig(SETTINGS | more)
    return SaslOffer(
        config,
        config.security_of("SASL_PLAINTEXT"),
        NOBODY,
        now_ms=lambda: NOW_MS,
        monotonic_ms=lambda: 0,
    )


def of_tokens(**more: str) -> SaslOffer:
    return offer_of(**{"sasl.enabled.mechanisms": "OAUTHBEARER"} | more)


async def said(exchange: Exchange, token: str) -> bytes:
    message = b"n,,\x01auth=Bearer %b\x01\x01" % token.encode()
    try:
        return exchange.answer(message)
    except NotYetError as wait:
        await wait.fetched
    return exchange.answer(message)


def token_of(issuer: Issuer) -> str:
    now_s = NOW_MS / 1000
    return issuer.sign({"sub": "alice", "iat": now_s, "exp": now_s + 5})


def test_what_the_settings_say() -> None:
    rules = offer_of().rules
    assert rules.max_lifetime_ms == {"PLAIN": 7}
    assert (rules.failure_delay_ms, rules.max_receive_bytes) == (100, 524_288)
    exchange = rules.mechanisms["PLAIN"]()
    assert isinstance(exchange, PlainExchange)
    exchange.answer(b"\0a\x001")
    assert exchange.identity is not None


async def test_tokens_and_keys_in_a_file(tmp_path: Path) -> None:
    issuer, path = Issuer(), tmp_path / "keys.json"
    offer = of_tokens(**{URL: f"file://{path}"})
    with pytest.raises(ConfigError, match=r"listener SASL_PLAINTEXT: .*keys\.json: No such file"):
        await offer.start()
    path.write_bytes(issuer.key_set())
    await offer.start()
    exchange = offer.rules.mechanisms["OAUTHBEARER"]()
    assert await said(exchange, token_of(issuer)) == b""
    assert exchange.identity == ("alice", NOW_MS + 5_000)
    issuer.new_key()
    path.write_bytes(issuer.key_set())
    assert await said(offer.rules.mechanisms["OAUTHBEARER"](), token_of(issuer)) == b""
    offer.close()


async def test_a_client_waits_for_the_first_keys() -> None:
    issuer = Issuer()
    with serving(issuer.key_set()) as server:
        offer = of_tokens(**{URL: server.url})
        await offer.start()
        exchange = offer.rules.mechanisms["OAUTHBEARER"]()
        assert await said(exchange, token_of(issuer)) == b""
        offer.close()


async def test_unsecured_tokens_are_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    line = 'M required unsecuredValidatorPrincipalClaimName="sub";'
    offer = of_tokens(**{"listener.name.sasl_plaintext.oauthbearer.sasl.jaas.config": line})
    await offer.start()
    assert "tokens that nobody signed" in caplog.text
    exchange = offer.rules.mechanisms["OAUTHBEARER"]()
    assert b"invalid_token" in await said(exchange, token_of(Issuer()))
    offer.close()
