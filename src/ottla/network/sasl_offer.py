"""What a SASL listener offers, by its settings."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable
from functools import partial
from typing import Final, Protocol

from ottla.config import BrokerConfig, ConfigError
from ottla.config.listener_security import ListenerSecurity
from ottla.config.listener_tokens import OauthbearerOptions, oauthbearer_options
from ottla.network.authentication import SaslRules
from ottla.network.key_reader import KeyFile, KeyRequest
from ottla.network.token_keys import TokenKeys
from ottla.security.sasl.mechanism import OAUTHBEARER, PLAIN, Exchange, Identity
from ottla.security.sasl.oauthbearer import OauthbearerExchange
from ottla.security.sasl.plain import PlainExchange
from ottla.security.sasl.scram import ScramCredential, ScramExchange
from ottla.security.sasl.signed_token import KeysError, SignedTokens, load_joserfc
from ottla.security.sasl.unsecured_token import UnsecuredTokens

logger = logging.getLogger("ottla.listener")

NONCE_BYTES: Final = 16
SECRET_BYTES: Final = 32
LOOK_AT_FILE_MS: Final = 5_000


class Credentials(Protocol):
    """What the cluster keeps of the passwords of its users."""

    def scram_credential(self, mechanism: str, user: str) -> ScramCredential | None:
        """None: there is no such user, or not for this mechanism."""


class _Nobody:
    def scram_credential(self, mechanism: str, user: str) -> ScramCredential | None:
        return None


NOBODY: Final[Credentials] = _Nobody()
"""No users."""


class SaslOffer:
    """Of one listener."""

    def __init__(
        self,
        config: BrokerConfig,
        security: ListenerSecurity,
        credentials: Credentials,
        *,
        now_ms: Callable[[], int],
        monotonic_ms: Callable[[], int],
    ) -> None:
        """Raises ConfigError."""
        self._security = security
        self._credentials = credentials
        self._now_ms = now_ms
        self._secret = secrets.token_bytes(SECRET_BYTES)
        self._keys: TokenKeys | None = None
        mechanisms = security.sasl_enabled_mechanisms
        self._tokens: OauthbearerOptions | None = None
        if OAUTHBEARER in mechanisms:
            self._tokens = oauthbearer_options(config.given, security)
            self._keys = _token_keys(self._tokens, monotonic_ms)
        self.rules = SaslRules(
            mechanisms={each: self._new_exchange(each) for each in mechanisms},
            max_lifetime_ms={each: security.max_lifetime_ms(each) for each in mechanisms},
            max_receive_bytes=security.sasl_server_max_receive_size,
            failure_delay_ms=config.connection_failed_authentication_delay_ms,
            now_ms=now_ms,
            monotonic_ms=monotonic_ms,
        )

    async def start(self) -> None:
        """Begins to read the keys of tokens. Raises ConfigError if those in a file are wrong; an
        address may be down when a broker starts.
        """
        if self._tokens is None:
            return
        listener, url = self._security.listener.upper(), self._tokens.keys_url
        if self._keys is None or url is None:
            logger.warning(
                "listener %s takes tokens that nobody signed: each client can be anybody",
                listener,
            )
            return
        try:
            load_joserfc()
        except ImportError as error:
            raise ConfigError(str(error)) from None
        if url.startswith("file:"):
            try:
                await self._keys.read()
            except KeysError as error:
                raise ConfigError(f"listener {listener}: {url}: {error}") from None
        self._keys.follow()

    def close(self) -> None:
        if self._keys is not None:
            self._keys.close()

    def _new_exchange(self, mechanism: str) -> Callable[[], Exchange]:
        if mechanism == PLAIN:
            login = self._security.login(mechanism)
            return partial(PlainExchange, {} if login is None else login.passwords)
        if mechanism == OAUTHBEARER:
            return partial(OauthbearerExchange, self._identity_of())
        return partial(self._new_scram, mechanism)

    def _new_scram(self, mechanism: str) -> ScramExchange:
        known = partial(self._credentials.scram_credential, mechanism)
        return ScramExchange(mechanism, known, secrets.token_hex(NONCE_BYTES), self._secret)

    def _identity_of(self) -> Callable[[str], Identity]:
        """Checks tokens."""
        assert self._tokens is not None
        rules = self._tokens.rules
        if self._keys is None:
            return UnsecuredTokens(rules, self._now_ms).identity_of
        return SignedTokens(self._keys, rules, self._now_ms).identity_of


def _token_keys(options: OauthbearerOptions, monotonic_ms: Callable[[], int]) -> TokenKeys | None:
    """None: nobody signs the tokens."""
    url = options.keys_url
    if url is None:
        return None
    is_file = url.startswith("file:")
    return TokenKeys(
        url,
        partial(KeyFile, url) if is_file else partial(KeyRequest, url, options.authorities),
        refresh_ms=LOOK_AT_FILE_MS if is_file else options.refresh_ms,
        retry_ms=LOOK_AT_FILE_MS if is_file else options.retry_ms,
        max_retry_ms=LOOK_AT_FILE_MS if is_file else options.max_retry_ms,
        monotonic_ms=monotonic_ms,
    )
