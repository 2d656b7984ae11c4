"""A certificate authority for tests."""

from __future__ import annotations

import datetime
import ipaddress
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

DAYS = 2
LASTS_S = DAYS * 24 * 3600


def named(name: str) -> x509.Name:
    """A name of RFC 4514: "CN=alice,OU=Data"."""
    return x509.Name.from_rfc4514_string(name)


class Issued:
    """A private key and its certificate."""

    def __init__(self, key: ec.EllipticCurvePrivateKey, certificate: x509.Certificate) -> None:
        self.key, self.certificate = key, certificate

    @property
    def certificate_pem(self) -> str:
        return self.certificate.public_bytes(serialization.Encoding.PEM).decode()

    @property
    def der(self) -> bytes:
        return self.certificate.public_bytes(serialization.Encoding.DER)

    def key_pem(self, password: str | None = None) -> str:
        encryption: serialization.KeySerializationEncryption = serialization.NoEncryption()
        if password is not None:
            encryption = serialization.BestAvailableEncryption(password.encode())
        return self.key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption
        ).decode()

    def store(self, path: Path, password: str | None = None) -> Path:
        """Writes both into one file, as ssl.keystore.location has them."""
        path.write_text(self.key_pem(password) + self.certificate_pem)
        return path


class Authority(Issued):
    """Signs certificates."""

    def __init__(self) -> None:
        key = ec.generate_private_key(ec.SECP256R1())
        name = named("CN=the authority of the tests")
        usage = x509.KeyUsage(
            digital_signature=True,
            content_commitment=False,
            key_encipherment=False,
            data_encipherment=False,
            key_agreement=False,
            key_cert_sign=True,
            crl_sign=True,
            encipher_only=False,
            decipher_only=False,
        )
        built = (
            _building(name, name, key)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .add_extension(usage, critical=True)
            .add_extension(
                x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False
            )
        )
        super().__init__(key, built.sign(key, hashes.SHA256()))

    def issue(self, name: str | x509.Name, *hosts: str, lasts_s: int = LASTS_S) -> Issued:
        """A certificate for localhost, 127.0.0.1, other hosts and this name."""
        subject = named(name) if isinstance(name, str) else name
        key = ec.generate_private_key(ec.SECP256R1())
        places = x509.SubjectAlternativeName(
            [
                x509.DNSName("localhost"),
                x509.IPAddress(ipaddress.ip_address("127.0.0.1")),
                *map(x509.DNSName, hosts),
            ]
        )
        issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key())
        built = (
            _building(subject, self.certificate.subject, key, lasts_s)
            .add_extension(places, critical=False)
            .add_extension(issuer, critical=False)
        )
        return Issued(key, built.sign(self.key, hashes.SHA256()))

    def trust(self, path: Path) -> Path:
        """Writes its certificate, as ssl.truststore.location has it."""
        path.write_text(self.certificate_pem)
        return path


def _building(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, lasts_s: int = LASTS_S
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(seconds=lasts_s))
    )


def with_mail(name: str, mail: str) -> x509.Name:
    """A name with an attribute for which RFC 2253 has no keyword."""
    parts = list(named(name).rdns)
    address = x509.NameAttribute(NameOID.EMAIL_ADDRESS, mail)
    return x509.Name([*parts, x509.RelativeDistinguishedName([address])])
