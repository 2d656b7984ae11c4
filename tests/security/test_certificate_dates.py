"""When a certificate expires, by its own bytes: as cryptography reads it."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from ottla.security.certificate_dates import certificate_ends_s

KEY = ec.generate_private_key(ec.SECP256R1())
NAME = x509.Name.from_rfc4514_string("CN=a")


def certificate(ends: datetime) -> str:
    made = (
        x509.CertificateBuilder()
        .subject_name(NAME)
        .issuer_name(NAME)
        .public_key(KEY.public_key())
        .serial_number(1)
        .not_valid_before(datetime(1950, 1, 1, tzinfo=UTC))
        .not_valid_after(ends)
        .sign(KEY, hashes.SHA256())
    )
    return made.public_bytes(serialization.Encoding.PEM).decode()


@pytest.mark.parametrize(
    "ends",
    [
        datetime(2026, 12, 1, 10, 20, 30, tzinfo=UTC),
        datetime(2049, 12, 31, 23, 59, 59, tzinfo=UTC),
        datetime(2050, 1, 1, tzinfo=UTC),
        datetime(1952, 2, 29, tzinfo=UTC),
        datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC),
    ],
)
def test_the_first_certificate_counts(ends: datetime) -> None:
    key = KEY.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    ).decode()
    other = certificate(datetime(2030, 1, 1, tzinfo=UTC))
    assert certificate_ends_s(key + certificate(ends) + other) == ends.timestamp()


@pytest.mark.parametrize(
    "text",
    ["", "x", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"],
)
def test_no_certificate(text: str) -> None:
    assert certificate_ends_s(text) is None


def test_a_certificate_that_is_cut_off() -> None:
    whole = certificate(datetime(2030, 1, 1, tzinfo=UTC)).splitlines()
    for lines in range(2, len(whole) - 1):
        assert certificate_ends_s("\n".join([*whole[:lines], whole[-1]])) is None
