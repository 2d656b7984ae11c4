from ottla.config import BrokerConfig
from ottla.network.sasl_offer import NOBODY, sasl_rules
from ottla.security.sasl.plain import PlainExchange

SETTINGS = {
    "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
    "sasl.enabled.mechanisms": "PLAIN",
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": 'M required user_a="1";',
    "listener.name.sasl_plaintext.plain.connections.max.reauth.ms": "7",
    "connections.max.reauth.ms": "9",
}


def test_what_the_settings_say() -> None:
    config = BrokerConfig(SETTINGS)
    rules = sasl_rules(
        config,
        config.security_of("SASL_PLAINTEXT"),
        NOBODY,
        now_ms=lambda: 0,
        monotonic_ms=lambda: 0,
    )
    assert rules.max_lifetime_ms == {"PLAIN": 7}
    assert (rules.failure_delay_ms, rules.max_receive_bytes) == (100, 524_288)
    exchange = rules.mechanisms["PLAIN"]()
    assert isinstance(exchange, PlainExchange)
    exchange.answer(b"\0a\x001")
    assert exchange.identity is not None
