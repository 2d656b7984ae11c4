"""The security settings of one listener: `listener.name.<listener>.<setting>`, else `<setting>`.

KIP-103. Kafka writes the listener's name in lower case there. What belongs to a mechanism of SASL
has its name, too: `listener.name.<listener>.<mechanism>.sasl.jaas.config`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ottla.config.broker_security import (
    OauthbearerSettings,
    SaslSettings,
    TlsSettings,
    TokenLoginSettings,
)
from ottla.config.broker_websocket import WEBSOCKET_LISTENERS, WebSocketSettings
from ottla.config.error import ConfigError, invalid_value
from ottla.config.setting import Settings, optional_integer
from ottla.config.validator import at_least
from ottla.security.jaas import JaasError, LoginModule, parse_jaas
from ottla.security.principal_mapping import PrincipalMapping
from ottla.security.sasl.mechanism import (
    MECHANISMS,
    OAUTHBEARER,
    PLAIN,
    SCRAM_SHA_256,
    SCRAM_SHA_512,
)
from ottla.security.tls import TlsOptions

PREFIX: Final = "listener.name."
JAAS: Final = "sasl.jaas.config"
MAX_REAUTH: Final = "connections.max.reauth.ms"
PLAIN_MODULE: Final = "org.apache.kafka.common.security.plain.PlainLoginModule"
CALLBACK_HANDLER: Final = "sasl.server.callback.handler.class"
LOGIN_HANDLER: Final = "sasl.login.callback.handler.class"
BETWEEN_BROKERS: Final = (PLAIN, SCRAM_SHA_256, SCRAM_SHA_512, OAUTHBEARER)
"""What brokers may authenticate with."""
DYNAMIC_STORES: Final = frozenset(
    (
        "ssl.keystore.type",
        "ssl.keystore.location",
        "ssl.keystore.password",
        "ssl.keystore.key",
        "ssl.keystore.certificate.chain",
        "ssl.key.password",
        "ssl.truststore.type",
        "ssl.truststore.location",
        "ssl.truststore.password",
        "ssl.truststore.certificates",
    )
)
"""What can change at runtime, for a listener of one broker (SslConfigs.RECONFIGURABLE_CONFIGS)."""
DYNAMIC_LIMITS: Final = frozenset(("max.connections", "max.connection.creation.rate"))
"""And for one listener of one or of all brokers."""
_GENERAL: Final = frozenset(
    (
        *TlsSettings.definitions,
        *SaslSettings.definitions,
        *OauthbearerSettings.definitions,
        *TokenLoginSettings.definitions,
        *WebSocketSettings.definitions,
    )
)
"""Those that a broker may also have for all its listeners."""
_CONVERSIONS: Final = {
    "JKS": "keytool -importkeystore -srckeystore {store} -destkeystore {store}.p12 "
    "-deststoretype PKCS12 && openssl pkcs12 -in {store}.p12 {what}-out {store}.pem",
    "PKCS12": "openssl pkcs12 -in {store} {what}-out {store}.pem",
}
"""The command that makes a PEM file of a store."""


class ListenerLimits(Settings):
    """Limits of one listener, which are of all of them without its name."""

    max_connections = optional_integer(
        "max.connections", "Maximum number of open connections on this listener.", at_least(0)
    )
    max_connection_creation_rate = optional_integer(
        "max.connection.creation.rate",
        "Maximum number of new connections per second on this listener.",
        at_least(0),
    )


class ListenerSecurity(
    ListenerLimits,
    TlsSettings,
    SaslSettings,
    OauthbearerSettings,
    TokenLoginSettings,
    WebSocketSettings,
):
    """The settings that are in force on one listener."""

    def __init__(self, given: Mapping[str, str], listener: str, *, has_sasl: bool = False) -> None:
        """`given` has the settings of the broker. Raises ConfigError."""
        self.listener = listener.lower()
        prefix = f"{PREFIX}{self.listener}."
        self._own = {
            name[len(prefix) :]: text
            for name, text in given.items()
            if name.lower().startswith(prefix)
        }
        general = {name: text for name, text in given.items() if name in _GENERAL}
        if has_sasl:
            # A client of SASL does not have to show a certificate unless this listener asks for it
            # (KIP-684).
            general.pop("ssl.client.auth", None)
        self.load(general | self._own)

    def max_lifetime_ms(self, mechanism: str) -> int:
        """connections.max.reauth.ms of a mechanism of this listener."""
        own = self.of_mechanism(mechanism, MAX_REAUTH)
        if own is None:
            return self.connections_max_reauth_ms
        return SaslSettings.connections_max_reauth_ms.parse(own)

    def own(self, setting: str) -> str | None:
        """A setting that is given for this listener alone, as text."""
        return self._own.get(setting)

    def of_mechanism(self, mechanism: str, setting: str) -> str | None:
        """A setting of one mechanism of this listener, as text."""
        return self._own.get(f"{mechanism.lower()}.{setting}")

    def login(self, mechanism: str) -> LoginModule | None:
        """sasl.jaas.config of a mechanism of this listener. Raises ConfigError."""
        text = self.of_mechanism(mechanism, JAAS)
        if text is None:
            return None
        try:
            return parse_jaas(text)
        except JaasError as error:
            name = self.name_of(mechanism, JAAS)
            raise ConfigError(f"{name}: {error}") from None

    def name_of(self, mechanism: str, setting: str) -> str:
        """The full name of a setting of one mechanism of this listener."""
        return f"{PREFIX}{self.listener}.{mechanism.lower()}.{setting}"

    def login_options(self, mechanism: str) -> dict[str, str]:
        """`username` and `password` of the broker itself. Raises ConfigError without both."""
        login = self.login(mechanism)
        options = {} if login is None else login.options
        if not options.get("username") or not options.get("password"):
            raise ConfigError(
                f"{PREFIX}{self.listener}.{mechanism.lower()}.{JAAS} must have the username and "
                "the password with which brokers authenticate with each other"
            )
        return options

    def check_mechanisms(self) -> None:
        """Raises ConfigError if clients could not authenticate."""
        for mechanism in self.sasl_enabled_mechanisms:
            if mechanism not in MECHANISMS:
                reason = f"Set it to any of {', '.join(MECHANISMS)}"
                raise invalid_value("sasl.enabled.mechanisms", mechanism, reason)
            self.max_lifetime_ms(mechanism)
            login = self.login(mechanism)
            if mechanism == PLAIN and (login is None or not login.passwords):
                raise ConfigError(
                    f"{PREFIX}{self.listener}.plain.{JAAS} must have the users of PLAIN: "
                    f'{PLAIN_MODULE} required user_alice="her password";'
                )
        if not self.sasl_enabled_mechanisms:
            raise ConfigError("sasl.enabled.mechanisms must not be empty for a listener with SASL.")


def without_listener(name: str) -> str:
    """The setting in `listener.name.<listener>.<setting>`; any other name as it is."""
    return name[len(PREFIX) :].partition(".")[2] if name.startswith(PREFIX) else name


def is_of_listener(name: str) -> bool:
    """Whether this is a setting of one listener."""
    if not name.startswith(PREFIX):
        return False
    setting = without_listener(name)
    mechanism, _, of_mechanism = setting.partition(".")
    return (setting in ListenerSecurity.definitions and setting != WEBSOCKET_LISTENERS) or (
        mechanism.upper() in MECHANISMS
        and (of_mechanism in (JAAS, MAX_REAUTH) or _is_of_tokens(mechanism, of_mechanism))
    )


def _is_of_tokens(mechanism: str, setting: str) -> bool:
    return mechanism.upper() == OAUTHBEARER and (
        setting in (CALLBACK_HANDLER, LOGIN_HANDLER)
        or setting in OauthbearerSettings.definitions
        or setting in TokenLoginSettings.definitions
    )


def check_dynamic_of_listener(name: str, text: str, *, per_broker: bool) -> None:
    """Raise ConfigError unless this setting of one listener may be changed at runtime, at that
    level (DynamicBrokerConfig, DynamicListenerConfig).
    """
    setting = without_listener(name)
    if setting not in DYNAMIC_STORES | DYNAMIC_LIMITS:
        listener = name[len(PREFIX) :].partition(".")[0]
        raise ConfigError(
            f"Configs cannot be updated dynamically for existing listener {listener}, restart "
            f"broker or create a new listener for update: [{name}]"
        )
    if setting in DYNAMIC_STORES and not per_broker:
        raise ConfigError(
            "Cannot update these configs at default cluster level, broker id must be specified: "
            f"[{name}]"
        )
    value = ListenerSecurity.definitions[setting].parse(text)
    if setting in DYNAMIC_LIMITS and value == 0:
        raise ConfigError(f"Invalid {setting} {value}")


def tls_options(settings: ListenerSecurity) -> TlsOptions:
    """What a TLS listener has been given. Raises ConfigError. Reads no file."""
    key_store, key_store_is_file = _key_store(settings)
    trust_store, trust_store_is_file = _trust_store(settings)
    try:
        PrincipalMapping(settings.ssl_principal_mapping_rules)
    except ValueError as error:
        given = settings.ssl_principal_mapping_rules
        raise invalid_value("ssl.principal.mapping.rules", given, str(error)) from None
    return TlsOptions(
        key_store=key_store,
        trust_store=trust_store,
        key_store_is_file=key_store_is_file,
        trust_store_is_file=trust_store_is_file,
        key_password=settings.ssl_key_password,
        protocols=settings.ssl_enabled_protocols,
        cipher_suites=settings.ssl_cipher_suites,
        client_auth=settings.ssl_client_auth,
        checks_host=settings.ssl_endpoint_identification_algorithm.lower() == "https",
        may_change_name=settings.ssl_allow_dn_changes,
        may_lose_names=settings.ssl_allow_san_changes,
    )


def _key_store(settings: ListenerSecurity) -> tuple[str | None, bool]:
    """A file or a text; and which of both. As DefaultSslEngineFactory.createKeystore."""
    key, chain = settings.ssl_keystore_key, settings.ssl_keystore_certificate_chain
    location = settings.ssl_keystore_location
    if key is None and chain is None and location is None:
        return None, True
    _only_pem("ssl.keystore", settings.ssl_keystore_type, location, "")
    if settings.ssl_keystore_password is not None:
        raise ConfigError(
            "SSL key store password cannot be specified with PEM format, only key password may be "
            "specified."
        )
    if key is None and chain is None:
        return location, True
    if key is None:
        raise ConfigError("SSL certificate chain is specified, but private key is not specified.")
    if chain is None:
        raise ConfigError("SSL private key is specified, but certificate chain is not specified.")
    if location is not None:
        raise ConfigError("Both SSL key store location and separate private key are specified.")
    return f"{key}\n{chain}", False


def _trust_store(settings: ListenerSecurity) -> tuple[str | None, bool]:
    certificates, location = settings.ssl_truststore_certificates, settings.ssl_truststore_location
    if certificates is None and location is None:
        return None, True
    _only_pem("ssl.truststore", settings.ssl_truststore_type, location, "-nokeys ")
    if settings.ssl_truststore_password is not None:
        raise ConfigError("SSL trust store password cannot be specified for PEM format.")
    if certificates is None:
        return location, True
    if location is not None:
        raise ConfigError(
            "Both SSL trust store location and separate trust certificates are specified."
        )
    return certificates, False


def _only_pem(store: str, kind: str, location: str | None, what: str) -> None:
    """Raises ConfigError, with the command that converts the store."""
    if kind.upper() == "PEM":
        return
    command = _CONVERSIONS.get(kind.upper())
    reason = f"Only PEM is supported: set {store}.type=PEM"
    if command is not None and location is not None:
        reason += f". To convert the store: {command.format(store=location, what=what)}"
    raise invalid_value(f"{store}.type", kind, reason)
