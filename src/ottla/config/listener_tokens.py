"""Which tokens of OAUTHBEARER a listener accepts, and where brokers get theirs.

    listener.name.<listener>.oauthbearer.sasl.server.callback.handler.class
    listener.name.<listener>.oauthbearer.sasl.jaas.config
    listener.name.<listener>.oauthbearer.sasl.oauthbearer....
    listener.name.<listener>.sasl.oauthbearer....
    sasl.oauthbearer....

Without a handler, Kafka takes unsecured tokens. Here signed ones are expected, and others are taken
if the handler's class or an option of the login module says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple, TypeVar
from urllib.parse import urlsplit

from ottla.config.broker_security import OauthbearerSettings, TokenLoginSettings
from ottla.config.error import ConfigError, invalid_value
from ottla.config.listener_security import (
    CALLBACK_HANDLER,
    JAAS,
    LOGIN_HANDLER,
    ListenerSecurity,
)
from ottla.config.setting import Settings
from ottla.security.sasl.mechanism import OAUTHBEARER
from ottla.security.sasl.own_token import Refresh
from ottla.security.sasl.token_claims import ClaimRules
from ottla.security.sasl.unsecured_token import unsecured_rules

URL: Final = "sasl.oauthbearer.jwks.endpoint.url"
TOKEN_URL: Final = "sasl.oauthbearer.token.endpoint.url"
TRUST_STORE: Final = "ssl.truststore.location"
_KAFKA: Final = "org.apache.kafka.common.security.oauthbearer"
SIGNED_HANDLERS: Final = (
    f"{_KAFKA}.OAuthBearerValidatorCallbackHandler",
    f"{_KAFKA}.secured.OAuthBearerValidatorCallbackHandler",
)
"""The second is the name of Kafka 3."""
LOGIN_HANDLERS: Final = (
    f"{_KAFKA}.OAuthBearerLoginCallbackHandler",
    f"{_KAFKA}.secured.OAuthBearerLoginCallbackHandler",
)
UNSECURED_HANDLER: Final = (
    f"{_KAFKA}.internals.unsecured.OAuthBearerUnsecuredValidatorCallbackHandler"
)
_UNSECURED: Final = "unsecured"
"""Options of the login module begin so that are about tokens that nobody signed."""


class OauthbearerOptions(NamedTuple):
    """What a listener has been given."""

    rules: ClaimRules
    keys_url: str | None
    """The issuer's public keys; None: nobody signs the tokens."""
    refresh_ms: int
    retry_ms: int
    max_retry_ms: int
    authorities: str | None
    """A PEM file with the authorities of the keys' address; None: the machine's."""


def oauthbearer_options(given: Mapping[str, str], security: ListenerSecurity) -> OauthbearerOptions:
    """`given` has the settings of the broker. Raises ConfigError. Reads no file."""
    settings = _settings(OauthbearerSettings(), given, security)
    login = security.login(OAUTHBEARER)
    options = {} if login is None else login.options
    url = settings.sasl_oauthbearer_jwks_endpoint_url
    if _is_unsecured(security, options, url):
        url = None
        try:
            rules = unsecured_rules(options)
        except ValueError as error:
            name = security.name_of(OAUTHBEARER, JAAS)
            raise ConfigError(f"{name}: {error}") from None
    else:
        _check_url(security, url)
        rules = ClaimRules(
            audiences=settings.sasl_oauthbearer_expected_audience,
            issuer=settings.sasl_oauthbearer_expected_issuer,
            skew_ms=settings.sasl_oauthbearer_clock_skew_seconds * 1000,
            subject_claim=settings.sasl_oauthbearer_sub_claim_name,
            scope_claim=settings.sasl_oauthbearer_scope_claim_name,
        )
    return OauthbearerOptions(
        rules=rules,
        keys_url=url,
        refresh_ms=settings.sasl_oauthbearer_jwks_endpoint_refresh_ms,
        retry_ms=settings.sasl_oauthbearer_jwks_endpoint_retry_backoff_ms,
        max_retry_ms=settings.sasl_oauthbearer_jwks_endpoint_retry_backoff_max_ms,
        authorities=options.get(TRUST_STORE),
    )


class TokenLogin(NamedTuple):
    """Where a broker gets its token."""

    url: str
    client_id: str
    client_secret: str
    scope: str
    connect_ms: int | None
    read_ms: int | None
    retry_ms: int
    max_retry_ms: int
    refresh: Refresh
    authorities: str | None
    """A PEM file with the authorities of the address; None: the machine's."""


def token_login(given: Mapping[str, str], security: ListenerSecurity) -> TokenLogin:
    """`given` has the settings of the broker. Raises ConfigError. Reads no file."""
    settings = _settings(TokenLoginSettings(), given, security)
    handler = security.of_mechanism(OAUTHBEARER, LOGIN_HANDLER)
    if handler is not None and handler not in LOGIN_HANDLERS:
        reason = f"Set it to {LOGIN_HANDLERS[0]}, or leave it out"
        raise invalid_value(security.name_of(OAUTHBEARER, LOGIN_HANDLER), handler, reason)
    url = settings.sasl_oauthbearer_token_endpoint_url
    if url is None:
        raise ConfigError(
            f"{security.name_of(OAUTHBEARER, TOKEN_URL)} (or {TOKEN_URL}) must have the address "
            "where brokers get their tokens: https://, http:// or file:///"
        )
    _check_address(TOKEN_URL, url)
    login = security.login(OAUTHBEARER)
    options = {} if login is None else login.options
    client_id = settings.sasl_oauthbearer_client_credentials_client_id
    secret = settings.sasl_oauthbearer_client_credentials_client_secret
    client_id = client_id or options.get("clientId", "")
    secret = secret or options.get("clientSecret", "")
    if not url.startswith("file:") and not (client_id.strip() and secret.strip()):
        raise ConfigError(
            f"{security.name_of(OAUTHBEARER, JAAS)} must have the clientId and the clientSecret "
            "with which brokers get their tokens"
        )
    return TokenLogin(
        url=url,
        client_id=client_id.strip(),
        client_secret=secret.strip(),
        scope=(settings.sasl_oauthbearer_scope or options.get("scope", "")).strip(),
        connect_ms=settings.sasl_login_connect_timeout_ms,
        read_ms=settings.sasl_login_read_timeout_ms,
        retry_ms=settings.sasl_login_retry_backoff_ms,
        max_retry_ms=settings.sasl_login_retry_backoff_max_ms,
        refresh=Refresh(
            settings.sasl_login_refresh_window_factor,
            settings.sasl_login_refresh_window_jitter,
            settings.sasl_login_refresh_min_period_seconds * 1000,
            settings.sasl_login_refresh_buffer_seconds * 1000,
        ),
        authorities=options.get(TRUST_STORE),
    )


SettingsT = TypeVar("SettingsT", bound=Settings)


def _settings(empty: SettingsT, given: Mapping[str, str], security: ListenerSecurity) -> SettingsT:
    """Those of the mechanism come before those of the listener, and these before the general."""
    found: dict[str, str] = {}
    for name in empty.definitions:
        for text in (security.of_mechanism(OAUTHBEARER, name), security.own(name), given.get(name)):
            if text is not None:
                found[name] = text
                break
    return empty.load(found)


def _is_unsecured(security: ListenerSecurity, options: Mapping[str, str], url: str | None) -> bool:
    """Whether the listener takes tokens that nobody signed. Raises ConfigError."""
    handler = security.of_mechanism(OAUTHBEARER, CALLBACK_HANDLER)
    if handler == UNSECURED_HANDLER:
        return True
    if handler is not None and handler not in SIGNED_HANDLERS:
        reason = f"Set it to {SIGNED_HANDLERS[0]}, or leave it out"
        raise invalid_value(security.name_of(OAUTHBEARER, CALLBACK_HANDLER), handler, reason)
    asks = any(name.startswith(_UNSECURED) for name in options)
    if asks and (handler is not None or url is not None):
        raise ConfigError(
            f"{security.name_of(OAUTHBEARER, JAAS)} has options for unsecured tokens, and "
            f"{URL} is for signed ones: give one of both"
        )
    return asks


def _check_url(security: ListenerSecurity, url: str | None) -> None:
    """Raises ConfigError."""
    if url is None:
        raise ConfigError(
            f"{security.name_of(OAUTHBEARER, URL)} (or {URL}) must have the public keys of the "
            "issuer of tokens: https://, http:// or file:///"
        )
    _check_address(URL, url)


def _check_address(setting: str, url: str) -> None:
    """Raises ConfigError."""
    reason = "Expected https://HOST/PATH, http://HOST/PATH or file:///PATH"
    try:
        parts = urlsplit(url)
        is_address = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        raise invalid_value(setting, url, reason) from None
    is_file = parts.scheme == "file" and not parts.netloc and len(parts.path) > 1
    has_login = parts.username is not None or parts.password is not None
    if not (is_address or is_file) or has_login or not url.isascii() or not url.isprintable():
        raise invalid_value(setting, url, reason)
