"""A broker with passwords, certificates and an authorizer, for suites that expect these users.

Besides a listener without authentication, on which everybody is a super user, it has one with SASL
(PLAIN and SCRAM) and one with TLS, on which a client may show a certificate.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from ottla.security.development.certificates import issue, make_authority, write
from ottla.testing import BrokerProcess
from ottla.testing.ports import HOST, free_ports

USERS: Final[Mapping[str, str]] = {"alice": "alice-secret", "test": "test"}
"""kafka-python's user and aiokafka's, with their passwords."""
SCRAM_USER: Final = "alice"
KEY_PASSWORD: Final = "abcdefgh"
DAYS: Final = 2
NAMES_OF_AUTHORITY: Final = ("ca-cert", "ca.crt")
"""The file with the authority's certificate, in each suite."""


class SecuredBroker(NamedTuple):
    """A running broker."""

    process: BrokerProcess
    plaintext: str
    """`HOST:PORT` of the listener without authentication."""
    sasl_port: int
    tls_port: int
    certificates: Path
    """A folder: the authority's certificate, client.crt, and client.key with KEY_PASSWORD."""


def _certificates(folder: Path) -> Path:
    """Makes all in this folder; returns the broker's store."""
    folder.mkdir()
    authority = make_authority("conformance", DAYS)
    for name in NAMES_OF_AUTHORITY:
        write(folder / name, authority.certificate)
    client = issue(authority, "client", [], DAYS)
    write(folder / "client.crt", client.certificate)
    secret = serialization.BestAvailableEncryption(KEY_PASSWORD.encode())
    key = load_pem_private_key(client.key, None)
    form = serialization.PrivateFormat.PKCS8
    write(folder / "client.key", key.private_bytes(serialization.Encoding.PEM, form, secret))
    store = folder / "broker.pem"
    write(store, issue(authority, "broker", ["localhost", HOST], DAYS).together)
    return store


@contextmanager
def running(folder: Path, settings: Mapping[str, str]) -> Iterator[SecuredBroker]:
    """A broker with its data and certificates in this folder. Raises KitError."""
    plain, sasl, tls = free_ports(3)
    store = _certificates(folder / "certificates")
    module = "org.apache.kafka.common.security.plain.PlainLoginModule required"
    users = " ".join(f'user_{name}="{password}"' for name, password in USERS.items())
    scram = f"[name={SCRAM_USER},password={USERS[SCRAM_USER]}]"
    given = {
        **settings,
        "listeners": f"PLAINTEXT://{HOST}:{plain},SASL_PLAINTEXT://{HOST}:{sasl},"
        f"SSL://{HOST}:{tls}",
        "inter.broker.listener.name": "PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": f"{module} {users};",
        "ottla.first.users": f"SCRAM-SHA-256={scram};SCRAM-SHA-512={scram}",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(store),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(store.with_name("ca.crt")),
        "listener.name.ssl.ssl.client.auth": "requested",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "allow.everyone.if.no.acl.found": "true",
        "super.users": "User:ANONYMOUS",
    }
    words = [word for pair in given.items() for word in ("-c", "=".join(pair))]
    with BrokerProcess(folder / "data", words) as process:
        yield SecuredBroker(process, f"{HOST}:{plain}", sasl, tls, store.parent)
