"""What a SASL listener offers, by its settings."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from functools import partial
from typing import Final, Protocol

from ottla.config import BrokerConfig
from ottla.config.listener_security import ListenerSecurity
from ottla.network.authentication import SaslRules
from ottla.security.sasl.mechanism import PLAIN, Exchange
from ottla.security.sasl.plain import PlainExchange
from ottla.security.sasl.scram import ScramCredential, ScramExchange

NONCE_BYTES: Final = 16
SECRET_BYTES: Final = 32


class Credentials(Protocol):
    """What the cluster keeps of the passwords of its users."""

    def scram_credential(self, mechanism: str, user: str) -> ScramCredential | None:
        """None: there is no such user, or not for this mechanism."""


class _Nobody:
    def scram_credential(self, mechanism: str, user: str) -> ScramCredential | None:
        return None


NOBODY: Final[Credentials] = _Nobody()
"""No users."""


def sasl_rules(
    config: BrokerConfig,
    security: ListenerSecurity,
    credentials: Credentials,
    *,
    now_ms: Callable[[], int],
    monotonic_ms: Callable[[], int],
) -> SaslRules:
    """Raises ConfigError."""
    secret = secrets.token_bytes(SECRET_BYTES)
    mechanisms = security.sasl_enabled_mechanisms
    return SaslRules(
        mechanisms={
            each: _new_exchange(each, security, credentials, secret) for each in mechanisms
        },
        max_lifetime_ms={each: security.max_lifetime_ms(each) for each in mechanisms},
        max_receive_bytes=security.sasl_server_max_receive_size,
        failure_delay_ms=config.connection_failed_authentication_delay_ms,
        now_ms=now_ms,
        monotonic_ms=monotonic_ms,
    )


def _new_exchange(
    mechanism: str, security: ListenerSecurity, credentials: Credentials, secret: bytes
) -> Callable[[], Exchange]:
    if mechanism == PLAIN:
        login = security.login(mechanism)
        return partial(PlainExchange, {} if login is None else login.passwords)

    def scram() -> ScramExchange:
        known = partial(credentials.scram_credential, mechanism)
        return ScramExchange(mechanism, known, secrets.token_hex(NONCE_BYTES), secret)

    return scram
