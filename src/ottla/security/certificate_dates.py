"""Until when a certificate counts, read from the certificate itself (RFC 5280, section 4.1.2.5):
Python's `ssl` says it of the other side's only.
"""

from __future__ import annotations

import re
import ssl
from datetime import UTC, datetime
from typing import Final

from ottla.security.der import elements

_CERTIFICATE: Final = re.compile(
    r"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL
)
_VERSION_TAG: Final = 0xA0
_FIELDS_BEFORE_VALIDITY: Final = 3
"""Serial number, signature algorithm, issuer."""
_FORMATS: Final = {0x17: "%y%m%d%H%M%SZ", 0x18: "%Y%m%d%H%M%SZ"}
"""Of UTCTime and GeneralizedTime. A year of two digits is one of 1950 to 2049."""
_LAST_OF_THIS_CENTURY: Final = 49


def certificate_ends_s(pem: str) -> int | None:
    """When the first certificate in a PEM text expires, in s since 1970; None without one."""
    found = _CERTIFICATE.search(pem)
    if found is None:
        return None
    try:
        ((_, whole),) = elements(ssl.PEM_cert_to_DER_cert(found[0]))
        _, to_be_signed = next(elements(whole))
        fields = [each for each in elements(to_be_signed) if each[0] != _VERSION_TAG]
        _, (tag, text) = elements(fields[_FIELDS_BEFORE_VALIDITY][1])
        return int(_time(tag, text.decode("ascii")).timestamp())
    except (IndexError, KeyError, StopIteration, ValueError, OverflowError):
        return None


def _time(tag: int, text: str) -> datetime:
    when = datetime.strptime(text, _FORMATS[tag]).replace(tzinfo=UTC)
    if tag == 0x17:
        two_digits = int(text[:2])
        century = 2000 if two_digits <= _LAST_OF_THIS_CENTURY else 1900
        when = when.replace(year=century + two_digits)
    return when
