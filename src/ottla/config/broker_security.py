"""Settings of listeners: TLS and authentication. Each may be set for one listener alone.

`listener.name.<listener>.<setting>` comes before `<setting>` (KIP-103); see `listener_security`.
"""

from __future__ import annotations

from ottla.config.setting import (
    Settings,
    boolean,
    double,
    integer,
    long,
    optional_integer,
    optional_password,
    optional_string,
    short,
    string,
    words,
)
from ottla.config.validator import at_least, between, list_of, one_of

SECURITY_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")


class InterBrokerSettings(Settings):
    """How brokers speak with each other."""

    security_inter_broker_protocol = string(
        "security.inter.broker.protocol",
        "PLAINTEXT",
        "If given: brokers use the listener of this name, which has this security protocol. Give "
        "this or inter.broker.listener.name, not both.",
        one_of(*SECURITY_PROTOCOLS),
    )

    sasl_mechanism_inter_broker_protocol = string(
        "sasl.mechanism.inter.broker.protocol",
        "GSSAPI",
        "How brokers authenticate with each other, if their listener has SASL; to be set then. The "
        "user is in listener.name.<listener>.<mechanism>.sasl.jaas.config.",
    )


class TlsSettings(Settings):
    """Certificates and keys in PEM (KIP-651), and what a listener agrees to."""

    ssl_keystore_type = string(
        "ssl.keystore.type",
        "JKS",
        "Format of the key store. Only PEM is supported.",
    )
    ssl_keystore_location = optional_string(
        "ssl.keystore.location",
        "A PEM file with the private key, then its certificate and those between it and the "
        "authority. A listener with TLS uses a changed file within seconds, for new connections.",
    )
    ssl_keystore_password = optional_password(
        "ssl.keystore.password", "Password of a JKS or PKCS#12 store: not with PEM."
    )
    ssl_keystore_key = optional_password(
        "ssl.keystore.key", "The private key in PEM (PKCS#8), instead of a file."
    )
    ssl_keystore_certificate_chain = optional_password(
        "ssl.keystore.certificate.chain",
        "The certificates that belong to ssl.keystore.key, in PEM, its own first.",
    )
    ssl_key_password = optional_password(
        "ssl.key.password", "Password of the private key, if it is encrypted."
    )
    ssl_truststore_type = string(
        "ssl.truststore.type",
        "JKS",
        "Format of the trust store. Only PEM is supported.",
    )
    ssl_truststore_location = optional_string(
        "ssl.truststore.location",
        "A PEM file with the certificates of the authorities that are trusted. Default: the "
        "machine's.",
    )
    ssl_truststore_password = optional_password(
        "ssl.truststore.password", "Password of a JKS or PKCS#12 store: not with PEM."
    )
    ssl_truststore_certificates = optional_password(
        "ssl.truststore.certificates", "The trusted certificates in PEM, instead of a file."
    )
    ssl_allow_dn_changes = boolean(
        "ssl.allow.dn.changes",
        False,
        "Whether a changed key store may have a certificate with another subject.",
    )
    ssl_allow_san_changes = boolean(
        "ssl.allow.san.changes",
        False,
        "Whether a changed key store may have a certificate that lacks subject alternative names.",
    )
    ssl_client_auth = string(
        "ssl.client.auth",
        "none",
        "Whether a client shows a certificate: it is not asked, it may, or it must.",
        one_of("required", "requested", "none"),
    )
    ssl_enabled_protocols = words(
        "ssl.enabled.protocols",
        ("TLSv1.2", "TLSv1.3"),
        "Versions of TLS. Those between the first and the last are enabled too.",
        list_of("TLSv1", "TLSv1.1", "TLSv1.2", "TLSv1.3", empty_allowed=False),
    )
    ssl_cipher_suites = words(
        "ssl.cipher.suites",
        (),
        "Cipher suites, by their standard names or OpenSSL's. TLS 1.3 always has all of its own. "
        "Empty: OpenSSL chooses.",
    )
    ssl_principal_mapping_rules = string(
        "ssl.principal.mapping.rules",
        "DEFAULT",
        "How a client's name follows from the name in its certificate (KIP-371).",
    )
    ssl_endpoint_identification_algorithm = string(
        "ssl.endpoint.identification.algorithm",
        "https",
        "Between brokers: https checks that the certificate is of the host; empty does not.",
    )


class SaslSettings(Settings):
    """How clients authenticate."""

    sasl_enabled_mechanisms = words(
        "sasl.enabled.mechanisms",
        ("GSSAPI",),
        "What clients may authenticate with: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER. A "
        "listener with SASL needs it.",
        list_of(),
    )
    sasl_server_max_receive_size = integer(
        "sasl.server.max.receive.size",
        524_288,
        "Maximum size of a request, in bytes, of a client that has not authenticated.",
        at_least(1),
    )
    connections_max_reauth_ms = long(
        "connections.max.reauth.ms",
        0,
        "If above 0: a client must authenticate again within this time, or is disconnected at its "
        "next request (KIP-368).",
    )


class OauthbearerSettings(Settings):
    """Which tokens are accepted (KIP-768). Each may be set for one listener, and for
    `listener.name.<listener>.oauthbearer.`.
    """

    sasl_oauthbearer_jwks_endpoint_url = optional_string(
        "sasl.oauthbearer.jwks.endpoint.url",
        "The public keys (JWK Set) of the issuer of tokens: https://, http:// or file:///. A "
        "listener with OAUTHBEARER needs it.",
    )
    sasl_oauthbearer_jwks_endpoint_refresh_ms = long(
        "sasl.oauthbearer.jwks.endpoint.refresh.ms",
        3_600_000,
        "The keys at an address are read again after this time, and when a token has an unknown "
        "one; those in a file when it changes.",
        at_least(1_000),
    )
    sasl_oauthbearer_jwks_endpoint_retry_backoff_ms = long(
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms",
        100,
        "After keys could not be read, they are read again after this time, then after twice as "
        "long, and so on.",
        at_least(1),
    )
    sasl_oauthbearer_jwks_endpoint_retry_backoff_max_ms = long(
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms",
        10_000,
        "The longest time between two attempts to read keys that cannot be read.",
        at_least(1),
    )
    sasl_oauthbearer_expected_audience = words(
        "sasl.oauthbearer.expected.audience",
        (),
        "A token must be for one of these (its claim aud). Empty: for anybody.",
    )
    sasl_oauthbearer_expected_issuer = optional_string(
        "sasl.oauthbearer.expected.issuer",
        "A token must have this issuer (its claim iss). Default: any whose key is among the keys.",
    )
    sasl_oauthbearer_clock_skew_seconds = integer(
        "sasl.oauthbearer.clock.skew.seconds",
        30,
        "How far the clocks of the issuer and of the broker may differ, in seconds.",
        at_least(0),
    )
    sasl_oauthbearer_scope_claim_name = string(
        "sasl.oauthbearer.scope.claim.name",
        "scope",
        "The claim of a token with its scopes, which must be a text or a list of texts.",
    )
    sasl_oauthbearer_sub_claim_name = string(
        "sasl.oauthbearer.sub.claim.name",
        "sub",
        "The claim of a token with the client's name.",
    )


class TokenLoginSettings(Settings):
    """Where a broker gets its own token of OAUTHBEARER (KIP-768), for the listener of the brokers.
    Each may be set as those above.
    """

    sasl_oauthbearer_token_endpoint_url = optional_string(
        "sasl.oauthbearer.token.endpoint.url",
        "Where a broker gets its token, if brokers authenticate with OAUTHBEARER: https:// or "
        "http:// of the issuer, or file:/// with a token.",
    )
    sasl_oauthbearer_client_credentials_client_id = optional_string(
        "sasl.oauthbearer.client.credentials.client.id",
        "The broker's name at the issuer. Or clientId among the options of the login module.",
    )
    sasl_oauthbearer_client_credentials_client_secret = optional_password(
        "sasl.oauthbearer.client.credentials.client.secret",
        "The broker's secret at the issuer. Or clientSecret among the options of the login module.",
    )
    sasl_oauthbearer_scope = optional_string(
        "sasl.oauthbearer.scope",
        "What the broker's token is for, as the issuer knows it. Or scope among the options of the "
        "login module.",
    )
    sasl_login_connect_timeout_ms = optional_integer(
        "sasl.login.connect.timeout.ms",
        "The issuer must accept a connection within this time.",
        at_least(1),
    )
    sasl_login_read_timeout_ms = optional_integer(
        "sasl.login.read.timeout.ms",
        "The issuer must answer within this time.",
        at_least(1),
    )
    sasl_login_retry_backoff_ms = long(
        "sasl.login.retry.backoff.ms",
        100,
        "After no token could be had, the issuer is asked again after this time, then after twice "
        "as long, and so on.",
        at_least(1),
    )
    sasl_login_retry_backoff_max_ms = long(
        "sasl.login.retry.backoff.max.ms",
        10_000,
        "The longest time between two attempts to get a token.",
        at_least(1),
    )
    sasl_login_refresh_window_factor = double(
        "sasl.login.refresh.window.factor",
        0.8,
        "A broker gets another token after this part of its token's lifetime.",
        between(0.5, 1.0),
    )
    sasl_login_refresh_window_jitter = double(
        "sasl.login.refresh.window.jitter",
        0.05,
        "And a random part of it, at most this one, so that not all ask at once.",
        between(0.0, 0.25),
    )
    sasl_login_refresh_min_period_seconds = short(
        "sasl.login.refresh.min.period.seconds",
        60,
        "A token is used at least for this time, if it lasts for long enough.",
        between(0, 900),
    )
    sasl_login_refresh_buffer_seconds = short(
        "sasl.login.refresh.buffer.seconds",
        300,
        "Another token is got at least this time before the end, if it lasts for long enough.",
        between(0, 3600),
    )


class AuthenticationSettings(Settings):
    """Of all listeners."""

    connection_failed_authentication_delay_ms = integer(
        "connection.failed.authentication.delay.ms",
        100,
        "A client whose authentication fails is told so, and disconnected, after this time "
        "(KIP-306).",
        at_least(0),
    )
