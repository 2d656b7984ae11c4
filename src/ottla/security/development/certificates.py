"""An authority of one's own, and certificates of brokers and clients that it signs.

Keys are of P-256, which every TLS library of the last ten years knows. Private keys are PKCS#8, not
encrypted, as Java and Python read them. A broker's certificate may also be shown by the broker
itself, to other brokers. Names are those of RFC 5280: a host's in the alternative names, where
clients look for it, a client's in the subject, from which its principal follows.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from importlib.util import find_spec
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from ottla.runtime.durable import sync_folder
from ottla.security.distinguished_name import subject_of
from ottla.wording.errors import ReportedError

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

INSTALL: Final = "Install it: pip install 'ottla[secure]'"
SECRET_MODE: Final = 0o600
PUBLIC_MODE: Final = 0o644
"""Of a certificate without its key."""
AUTHORITY_DAYS: Final = 3650
CERTIFICATE_DAYS: Final = 397
"""Some clients refuse a longer time of a server's certificate."""
MAX_DAYS: Final = 36_500
MAX_COMMON_NAME_CHARACTERS: Final = 64
"""RFC 5280, ub-common-name."""
BEFORE: Final = timedelta(hours=1)
"""A certificate counts from some time before it was made: clocks differ."""


class CertificateError(ReportedError):
    """A certificate cannot be made, read or written."""


class Signed(NamedTuple):
    """A private key and its certificate, both in PEM."""

    key: bytes
    certificate: bytes

    @property
    def together(self) -> bytes:
        """As one file: for `ssl.keystore.location`, and for librdkafka's two settings."""
        return self.key + self.certificate


class Facts(NamedTuple):
    """What a certificate says. `subject` and `issuer` are as in RFC 2253."""

    subject: str
    issuer: str
    names: tuple[str, ...]
    """Host names and addresses that it is for."""
    is_authority: bool
    not_before: datetime
    not_after: datetime

    def days_left(self, now: datetime) -> int:
        """Until it expires; negative once it has."""
        return (self.not_after - now).days


def make_authority(name: str, days: int) -> Signed:
    """A certificate that signs others, signed by itself. Raises CertificateError."""
    check_installed()
    from cryptography import x509

    key = _new_key()
    subject = _common_name(name)
    constraints = x509.BasicConstraints(ca=True, path_length=0)
    builder = (
        _builder(subject, subject, key, days)
        .add_extension(constraints, critical=True)
        .add_extension(_usage(signs_certificates=True), critical=True)
        .add_extension(_key_identifier(key), critical=False)
    )
    return _signed(key, builder, key)


def issue(authority: Signed, name: str, hosts: Sequence[str], days: int) -> Signed:
    """A certificate of a broker (for these host names and addresses) or of a client (for none).
    Raises CertificateError.
    """
    check_installed()
    from cryptography import x509
    from cryptography.x509.oid import ExtendedKeyUsageOID

    signer, (certificate, *_) = _loaded(authority)
    key = _new_key()
    uses = [ExtendedKeyUsageOID.CLIENT_AUTH]
    if hosts:
        uses.insert(0, ExtendedKeyUsageOID.SERVER_AUTH)
    identifier = x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key())
    builder = (
        _builder(_common_name(name), certificate.subject, key, days)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage(uses), critical=False)
        .add_extension(_key_identifier(key), critical=False)
        .add_extension(identifier, critical=False)
    )
    if hosts:
        names = [_host_name(host) for host in dict.fromkeys(hosts)]
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    return _signed(key, builder, signer)


def facts_of(pem: bytes) -> list[Facts]:
    """Of all certificates in a PEM text, in their order. Raises CertificateError without one."""
    check_installed()
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import Encoding

    facts = []
    for each in _certificates(pem):
        try:
            constraints = each.extensions.get_extension_for_class(x509.BasicConstraints)
            is_authority = constraints.value.ca
        except x509.ExtensionNotFound:
            is_authority = False
        facts.append(
            Facts(
                subject_of(each.public_bytes(Encoding.DER)),
                each.issuer.rfc4514_string(),
                _names(each),
                is_authority,
                each.not_valid_before_utc,
                each.not_valid_after_utc,
            )
        )
    return facts


def is_signed_by(certificate: bytes, authority: bytes) -> bool:
    """Of the first certificates of two PEM texts. Raises CertificateError without one."""
    check_installed()
    from cryptography.exceptions import InvalidSignature

    own, signer = _certificates(certificate)[0], _certificates(authority)[0]
    try:
        own.verify_directly_issued_by(signer)
    except (InvalidSignature, ValueError, TypeError):
        return False
    return True


def read_authority(key: Path, certificate: Path) -> Signed:
    """Raises CertificateError."""
    found = Signed(read(key), read(certificate))
    _loaded(found)
    return found


def read(path: Path) -> bytes:
    """Raises CertificateError."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise CertificateError(f"cannot read {path}: {error.strerror}.") from None


def write(path: Path, data: bytes, *, replace: bool = False, mode: int = SECRET_MODE) -> None:
    """As a whole, under another name first: a crash leaves no half file. Raises CertificateError,
    also if the file exists and `replace` is not given.
    """
    part = path.with_name(f"{path.name}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        part.unlink(missing_ok=True)
        number = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        try:
            with os.fdopen(number, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            if replace:
                os.replace(part, path)
            else:
                os.link(part, path)
        finally:
            part.unlink(missing_ok=True)
        sync_folder(str(path.parent))
    except OSError as error:
        if isinstance(error, FileExistsError) and path.exists():
            raise CertificateError(f"{path} exists.", "To replace it, add --replace.") from None
        raise CertificateError(f"cannot write {path}: {error.strerror or error}.") from None


def remove(path: Path) -> None:
    """If it exists. Raises CertificateError."""
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise CertificateError(f"cannot remove {path}: {error.strerror}.") from None


def check_installed() -> None:
    """Raises CertificateError, with the command that installs what is missing."""
    if not is_installed():
        raise CertificateError("certificates need the package cryptography.", INSTALL)


def is_installed() -> bool:
    """Whether certificates can be made and read here."""
    return find_spec("cryptography") is not None


def _new_key() -> EllipticCurvePrivateKey:
    from cryptography.hazmat.primitives.asymmetric import ec

    return ec.generate_private_key(ec.SECP256R1())


def _common_name(name: str) -> x509.Name:
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    if not name or len(name) > MAX_COMMON_NAME_CHARACTERS:
        raise CertificateError(
            f"the name of a certificate has 1 to {MAX_COMMON_NAME_CHARACTERS} characters."
        )
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _host_name(host: str) -> x509.GeneralName:
    from cryptography import x509

    try:
        return x509.IPAddress(ip_address(host.strip("[]")))
    except ValueError:
        pass
    try:
        return x509.DNSName(host)
    except ValueError:
        raise CertificateError(
            f"{host!r} is no host name in ASCII, and no address.",
            "A name with other letters is written with xn--.",
        ) from None


def _names(certificate: x509.Certificate) -> tuple[str, ...]:
    from cryptography import x509

    try:
        found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return ()
    addresses = map(str, found.get_values_for_type(x509.IPAddress))
    return (*found.get_values_for_type(x509.DNSName), *addresses)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: EllipticCurvePrivateKey, days: int
) -> x509.CertificateBuilder:
    from cryptography import x509

    now = datetime.now(UTC).replace(microsecond=0)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - BEFORE)
        .not_valid_after(now + timedelta(days=days))
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    from cryptography import x509

    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _key_identifier(key: EllipticCurvePrivateKey) -> x509.SubjectKeyIdentifier:
    from cryptography import x509

    return x509.SubjectKeyIdentifier.from_public_key(key.public_key())


def _signed(
    key: EllipticCurvePrivateKey,
    builder: x509.CertificateBuilder,
    signer: EllipticCurvePrivateKey,
) -> Signed:
    from cryptography.hazmat.primitives import hashes, serialization

    certificate = builder.sign(signer, hashes.SHA256())
    encoding = serialization.Encoding.PEM
    return Signed(
        key.private_bytes(
            encoding, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        ),
        certificate.public_bytes(encoding),
    )


def _certificates(pem: bytes) -> list[x509.Certificate]:
    from cryptography import x509

    try:
        return x509.load_pem_x509_certificates(pem)
    except ValueError:
        raise CertificateError("there is no certificate in PEM.") from None


def _loaded(
    authority: Signed,
) -> tuple[EllipticCurvePrivateKey, list[x509.Certificate]]:
    """Raises CertificateError unless the key is of the certificate."""
    check_installed()
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        key = load_pem_private_key(authority.key, None)
        certificates = x509.load_pem_x509_certificates(authority.certificate)
    except (ValueError, TypeError):
        raise CertificateError(
            "the authority's key or certificate cannot be read: they were not made by "
            "`ottla certificate authority`."
        ) from None
    if not isinstance(key, EllipticCurvePrivateKey):
        raise CertificateError("the authority's key is not one of an elliptic curve.")
    if certificates[0].public_key() != key.public_key():
        raise CertificateError("the authority's key is not that of its certificate.")
    return key, certificates
