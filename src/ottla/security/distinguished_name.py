"""The name of a certificate's subject in the form of RFC 2253, as Java writes it.

The principal of a TLS client is this name (KIP-11; DefaultKafkaPrincipalBuilder, which calls
X500Principal.getName); the rules of `principal_mapping` are applied to it. It is read from the
certificate itself (DER; X.509: RFC 5280, section 4.1), because Python's `ssl` does not say how a
value was encoded: Java writes an attribute without a keyword as its object identifier and its bytes
in hexadecimal digits.
"""

from __future__ import annotations

from typing import Final

from ottla.security.der import elements

KEYWORDS: Final = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.9": "STREET",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "0.9.2342.19200300.100.1.1": "UID",
    "0.9.2342.19200300.100.1.25": "DC",
}
"""RFC 2253, section 2.3; every other attribute is written as its object identifier."""
_ENCODINGS: Final = {
    0x0C: "utf-8",
    0x13: "ascii",  # PrintableString
    0x14: "latin-1",  # TeletexString
    0x16: "ascii",  # IA5String
    0x1C: "utf-32-be",  # UniversalString
    0x1E: "utf-16-be",  # BMPString
}
"""Of a string, by its tag."""
_ESCAPED: Final = frozenset(',=+<>#;"\\')
_VERSION_TAG: Final = 0xA0
_FIELDS_BEFORE_SUBJECT: Final = 4
"""Serial number, signature algorithm, issuer, validity."""


def subject_of(certificate: bytes) -> str:
    """The subject of a certificate in DER, such as "CN=alice,OU=Data,O=Example".

    Raises ValueError if these bytes are no certificate.
    """
    try:
        ((_, whole),) = elements(certificate)
        _, to_be_signed = next(elements(whole))
        fields = [each for each in elements(to_be_signed) if each[0] != _VERSION_TAG]
        _, subject = fields[_FIELDS_BEFORE_SUBJECT]
        # RFC 2253 begins with the last of them.
        parts = [_part(part) for _, part in elements(subject)]
        return ",".join(reversed(parts))
    except (IndexError, StopIteration, ValueError) as error:
        raise ValueError("this is no certificate") from error


def _part(relative_name: bytes) -> str:
    attributes = []
    for _, attribute in elements(relative_name):
        (_, identifier), (tag, value) = elements(attribute)
        attributes.append(_attribute(_dotted(identifier), tag, value))
    return "+".join(attributes)


def _attribute(identifier: str, tag: int, value: bytes) -> str:
    keyword = KEYWORDS.get(identifier)
    encoding = _ENCODINGS.get(tag)
    if keyword is None or encoding is None:
        return f"{keyword or identifier}=#{_encoded(tag, value).hex()}"
    return f"{keyword}={_escaped(value.decode(encoding))}"


def _escaped(text: str) -> str:
    """As AVA.toRFC2253String: also the blanks at both ends."""
    inner = text.strip(" ")
    before = len(text) - len(text.lstrip(" ")) if inner else len(text)
    after = len(text) - before - len(inner)
    escaped = "".join(f"\\{each}" if each in _ESCAPED else each for each in inner)
    return "\\ " * before + escaped.replace("\0", "\\00") + "\\ " * after


def _encoded(tag: int, value: bytes) -> bytes:
    size = len(value)
    if size < 0x80:
        return bytes((tag, size)) + value
    length = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes((tag, 0x80 | len(length))) + length + value


def _dotted(identifier: bytes) -> str:
    arcs: list[int] = []
    arc = 0
    for each in identifier:
        arc = arc << 7 | each & 0x7F
        if not each & 0x80:
            arcs.append(arc)
            arc = 0
    first = min(arcs[0] // 40, 2)
    return ".".join(map(str, (first, arcs[0] - 40 * first, *arcs[1:])))
