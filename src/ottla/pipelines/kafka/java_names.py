"""librdkafka's client settings as the Java client's: what Spark's Kafka source understands.

Sources: librdkafka's CONFIGURATION.md; Kafka's consumer configs; KIP-651 (PEM key and trust
stores, `ssl.truststore.type=PEM`), KIP-768 (OAUTHBEARER with a token endpoint).
"""

from __future__ import annotations

import base64
import difflib
import re
from collections.abc import Mapping
from typing import Final

from ottla.pipelines.errors import PipelineError

# Settings that both clients have, by the name that both know.
_SAME: Final = (
    "security.protocol",
    "client.id",
    "client.rack",
    "client.dns.lookup",
    "isolation.level",
    "check.crcs",
    "fetch.min.bytes",
    "fetch.max.bytes",
    "metadata.max.age.ms",
    "reconnect.backoff.ms",
    "reconnect.backoff.max.ms",
    "retry.backoff.ms",
    "retry.backoff.max.ms",
    "connections.max.idle.ms",
    "ssl.endpoint.identification.algorithm",
    "sasl.kerberos.service.name",
)
# librdkafka's name, and Java's for the same thing with the same values.
_RENAMED: Final = {
    "sasl.mechanism": "sasl.mechanism",
    "sasl.mechanisms": "sasl.mechanism",
    "fetch.wait.max.ms": "fetch.max.wait.ms",
    "fetch.message.max.bytes": "max.partition.fetch.bytes",
    "max.partition.fetch.bytes": "max.partition.fetch.bytes",
    "socket.send.buffer.bytes": "send.buffer.bytes",
    "socket.receive.buffer.bytes": "receive.buffer.bytes",
    "socket.connection.setup.timeout.ms": "socket.connection.setup.timeout.ms",
}
# Settings that become others, together; see _stores and _jaas.
_STORES: Final = (
    "ssl.ca.location",
    "ssl.ca.pem",
    "ssl.certificate.location",
    "ssl.certificate.pem",
    "ssl.key.location",
    "ssl.key.pem",
    "ssl.key.password",
    "ssl.keystore.location",
    "ssl.keystore.password",
    "enable.ssl.certificate.verification",
)
_LOGIN: Final = (
    "sasl.username",
    "sasl.password",
    "sasl.oauthbearer.method",
    "sasl.oauthbearer.client.id",
    "sasl.oauthbearer.client.secret",
    "sasl.oauthbearer.scope",
    "sasl.oauthbearer.extensions",
    "sasl.oauthbearer.token.endpoint.url",
)
NAMES: Final = frozenset((*_SAME, *_RENAMED, *_STORES, *_LOGIN))

# Where a name of Java's, or of another client of librdkafka, was given.
_INSTEAD: Final = {
    "bootstrap.servers": "it is the argument bootstrap_servers",
    "group.id": "Spark chooses the consumer group of each query; to_delta takes group=",
    "sasl.jaas.config": "give sasl.username and sasl.password",
    "ssl.truststore.location": "give ssl.ca.location, a PEM file",
    "ssl.truststore.certificates": "give ssl.ca.pem",
    "ssl.truststore.password": "give ssl.ca.location, a PEM file",
    "ssl.keystore.key": "give ssl.key.pem",
    "ssl.keystore.certificate.chain": "give ssl.certificate.pem",
    "auto.offset.reset": "topic takes starting=",
    "enable.auto.commit": "Spark's checkpoint keeps the offsets of a query",
    "ssl.cipher.suites": "OpenSSL and Java name the suites differently",
    "fetch.max.wait.ms": "librdkafka's name is fetch.wait.max.ms",
}

# The identifier of PBES2 in DER (1.2.840.113549.1.5.13, RFC 8018), which comes first in a key that
# is encrypted so. Java's EncryptedPrivateKeyInfo has no algorithm of that name before JDK 19.
_PBES2: Final = bytes.fromhex("06092a864886f70d01050d")
_ALGORITHM_BYTES: Final = 40

_LOGIN_MODULES: Final = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "OAUTHBEARER": "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule",
}
_OAUTH_HANDLER: Final = (
    "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler"
)


def check_names(settings: Mapping[str, str]) -> None:
    """Raise PipelineError for the first setting that has no counterpart; never shows values."""
    for name in settings:
        if name in NAMES:
            continue
        if name in _INSTEAD:
            raise PipelineError(f"kafka= cannot take {name}: {_INSTEAD[name]}")
        near = difflib.get_close_matches(name, NAMES, n=1)
        hint = f"did you mean {near[0]}?" if near else "see docs/pipeline-sources.md, Secured Kafka"
        raise PipelineError(f"kafka= does not know the setting {name!r}: {hint}")


def to_java(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the Java client's settings for librdkafka's.

    PEM files are read here, on the driver, so that executors need no copy of them. Raises
    PipelineError, without any value that may be secret.
    """
    java = {name: settings[name] for name in _SAME if name in settings}
    java |= {java: settings[name] for name, java in _RENAMED.items() if name in settings}
    if "security.protocol" in java:
        java["security.protocol"] = java["security.protocol"].upper()
    if java.get("ssl.endpoint.identification.algorithm") == "none":
        java["ssl.endpoint.identification.algorithm"] = ""
    return java | _stores(settings) | _login(settings)


def _stores(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the key and trust stores (KIP-651)."""
    if settings.get("enable.ssl.certificate.verification", "true").lower() == "false":
        raise PipelineError(
            "enable.ssl.certificate.verification=false has no counterpart in Spark's Kafka "
            "client: give the CA's certificate with ssl.ca.location"
        )
    java: dict[str, str] = {}
    if authority := read_pem(settings, "ssl.ca"):
        java |= {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": authority}
    certificate, key = read_pem(settings, "ssl.certificate"), read_pem(settings, "ssl.key")
    if bool(certificate) != bool(key):
        given, lacking = ("certificate", "key") if certificate else ("key", "certificate")
        raise PipelineError(f"kafka= has ssl.{given}.location, but not ssl.{lacking}.location")
    if certificate and key:
        java |= {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.certificate.chain": certificate,
            "ssl.keystore.key": key,
        }
    if "ssl.keystore.location" in settings:
        java |= {
            "ssl.keystore.type": "PKCS12",
            "ssl.keystore.location": settings["ssl.keystore.location"],
            "ssl.keystore.password": settings.get("ssl.keystore.password", ""),
        }
    if key and "ssl.key.password" in settings:
        java["ssl.key.password"] = settings["ssl.key.password"]
    return java


def read_pem(settings: Mapping[str, str], name: str) -> str:
    """Return the text of a PEM, given itself or as a file; empty when it is not given.

    `name` is `ssl.ca`, `ssl.certificate` or `ssl.key`. Raises PipelineError for a file that cannot
    be read.
    """
    if text := settings.get(f"{name}.pem"):
        _check_key(text, f"{name}.pem", "key.pem")
        return text
    path = settings.get(f"{name}.location", "")
    if not path or (name == "ssl.ca" and path == "probe"):
        return ""
    try:
        with open(path, encoding="ascii") as file:
            text = file.read()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not PEM text"
        raise PipelineError(f"{name}.location={path}: {reason}") from error
    if "-----BEGIN " not in text:
        raise PipelineError(f"{name}.location={path}: it is not a PEM file")
    _check_key(text, f"{name}.location={path}", path)
    return text


def _check_key(text: str, given: str, path: str) -> None:
    """Raise PipelineError for a private key that Java's client cannot read."""
    if re.search(r"-----BEGIN (RSA|EC|DSA) PRIVATE KEY", text):
        raise PipelineError(
            f"{given}: Spark's client takes keys in PKCS#8 only. Type: "
            f"openssl pkcs8 -topk8 -in {path} -out key8.pem"
        )
    found = re.search(r"-----BEGIN ENCRYPTED PRIVATE KEY-----([^-]*)", text)
    if found is None:
        return
    try:
        key = base64.b64decode(found[1])
    except ValueError as error:
        raise PipelineError(f"{given}: it is not PEM text") from error
    if _PBES2 in key[:_ALGORITHM_BYTES]:
        raise PipelineError(
            f"{given}: the key is encrypted with PBES2, which Java before 19 cannot read. Type: "
            f"openssl pkcs8 -in {path} -topk8 -v1 PBE-SHA1-3DES -out key8.pem"
        )


def _login(settings: Mapping[str, str]) -> dict[str, str]:
    """Return `sasl.jaas.config` and what belongs to it."""
    if not settings.get("security.protocol", "").lower().startswith("sasl_"):
        given = next((name for name in settings if name.startswith("sasl.")), None)
        if given is None:
            return {}
        raise PipelineError(f"kafka= has {given}: set security.protocol to SASL_SSL as well")
    mechanism = settings.get("sasl.mechanism") or settings.get("sasl.mechanisms") or "GSSAPI"
    module = _LOGIN_MODULES.get(mechanism)
    if module is None:
        raise PipelineError(f"sasl.mechanism={mechanism} is not one of {', '.join(_LOGIN_MODULES)}")
    if mechanism == "OAUTHBEARER":
        return _oauth(settings, module)
    for name in ("sasl.username", "sasl.password"):
        if not settings.get(name):
            raise PipelineError(f"kafka= has sasl.mechanism={mechanism}, but not {name}")
    user, password = _quoted(settings["sasl.username"]), _quoted(settings["sasl.password"])
    return {"sasl.jaas.config": f"{module} required username={user} password={password};"}


def _oauth(settings: Mapping[str, str], module: str) -> dict[str, str]:
    if settings.get("sasl.oauthbearer.method", "default").lower() != "oidc":
        raise PipelineError("sasl.mechanism=OAUTHBEARER needs sasl.oauthbearer.method=oidc")
    if "sasl.oauthbearer.extensions" in settings:
        raise PipelineError("sasl.oauthbearer.extensions has no counterpart in Spark's client")
    needed = ("client.id", "client.secret", "token.endpoint.url")
    for name in needed:
        if not settings.get(f"sasl.oauthbearer.{name}"):
            raise PipelineError(f"OAUTHBEARER needs the setting sasl.oauthbearer.{name}")
    options = {
        "clientId": settings["sasl.oauthbearer.client.id"],
        "clientSecret": settings["sasl.oauthbearer.client.secret"],
        "scope": settings.get("sasl.oauthbearer.scope"),
    }
    words = " ".join(f"{name}={_quoted(value)}" for name, value in options.items() if value)
    return {
        "sasl.jaas.config": f"{module} required {words};",
        "sasl.login.callback.handler.class": _OAUTH_HANDLER,
        "sasl.oauthbearer.token.endpoint.url": settings["sasl.oauthbearer.token.endpoint.url"],
    }


def _quoted(value: str) -> str:
    """Quote an option of JAAS's: a backslash escapes a quote and itself."""
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
