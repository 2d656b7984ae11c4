"""Whether a new certificate is of the same broker: its name and its alternative names (RFC 5280).

As Kafka's SslFactory.CertificateEntries: a changed key store must not give a listener another
identity by mistake, such as another broker's.
"""

from __future__ import annotations

import re
import ssl
from typing import Final

from ottla.security.der import elements
from ottla.security.distinguished_name import subject_of

_CERTIFICATE: Final = re.compile(
    r"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL
)
_EXTENSIONS_TAG: Final = 0xA3
_ALTERNATIVE_NAMES: Final = bytes.fromhex("551d11")
"""The object identifier 2.5.29.17."""
_SHOWN: Final = {1: "email", 2: "DNS", 6: "URI"}
_ADDRESS: Final = 7


class NotSameError(Exception):
    """The certificates are of different names; the text says which, and what allows it."""


def first_certificate(pem: str) -> bytes | None:
    """The first certificate of a PEM text, in DER; None without one."""
    found = _CERTIFICATE.search(pem)
    try:
        return None if found is None else ssl.PEM_cert_to_DER_cert(found[0])
    except ValueError:
        return None


def alternative_names(certificate: bytes) -> frozenset[tuple[int, bytes]]:
    """Kind and content of each (GeneralName). Raises ValueError if this is no certificate."""
    try:
        ((_, whole),) = elements(certificate)
        _, to_be_signed = next(elements(whole))
        lists = [content for tag, content in elements(to_be_signed) if tag == _EXTENSIONS_TAG]
        for extensions in lists:
            ((_, each_of_them),) = elements(extensions)
            for _, extension in elements(each_of_them):
                (_, identifier), *_critical, (_, value) = elements(extension)
                if identifier == _ALTERNATIVE_NAMES:
                    ((_, names),) = elements(value)
                    return frozenset((tag & 0x1F, name) for tag, name in elements(names))
    except (IndexError, StopIteration, ValueError) as error:
        raise ValueError("this is no certificate") from error
    return frozenset()


def check_same_names(
    new: bytes, old: bytes, *, may_change_name: bool, may_lose_names: bool
) -> None:
    """Both in DER. Raises NotSameError, and ValueError if one is no certificate."""
    if not may_change_name:
        was, is_now = subject_of(old), subject_of(new)
        if was.lower() != is_now.lower():
            raise NotSameError(
                f"Keystore DistinguishedName does not match: existing={{DN={was}}}, "
                f"new={{DN={is_now}}}; ssl.allow.dn.changes=true allows it"
            )
    if not may_lose_names:
        lost = alternative_names(old) - alternative_names(new)
        if lost:
            shown = ", ".join(sorted(map(_shown, lost)))
            raise NotSameError(
                f"Keystore SubjectAltNames do not match: the new certificate lacks {shown}; "
                "ssl.allow.san.changes=true allows it"
            )


def _shown(name: tuple[int, bytes]) -> str:
    kind, content = name
    if kind in _SHOWN:
        return f"{_SHOWN[kind]}:{content.decode('ascii', 'replace')}"
    if kind == _ADDRESS and len(content) == 4:
        return "IP:" + ".".join(map(str, content))
    return f"{kind}:{content.hex()}"
