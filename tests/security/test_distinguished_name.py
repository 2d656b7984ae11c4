import pytest
from cryptography import x509
from cryptography.x509.oid import NameOID
from tests.security.authority import Authority, named, with_mail

from ottla.security.distinguished_name import subject_of

CN = NameOID.COMMON_NAME


def name(*attributes: tuple[x509.ObjectIdentifier, str]) -> x509.Name:
    return x509.Name([x509.NameAttribute(kind, value) for kind, value in attributes])


@pytest.mark.parametrize(
    ("subject", "written"),
    [
        # What Java 21 writes of each (X500Principal.getName).
        (named("CN=alice,OU=Data,O=Example"), "CN=alice,OU=Data,O=Example"),
        (
            name(
                (NameOID.COUNTRY_NAME, "DE"),
                (NameOID.ORGANIZATION_NAME, 'A, B + C "q" <x>;=#\\'),
                (CN, " #a=b  "),
            ),
            r"CN=\ \#a\=b\ \ ,O=A\, B \+ C \"q\" \<x\>\;\=\#\\,C=DE",
        ),
        (
            with_mail("CN=alice,OU=Data,O=Example", "a@b.c"),
            "1.2.840.113549.1.9.1=#16056140622e63,CN=alice,OU=Data,O=Example",
        ),
        (
            name(
                (CN, "M\u00fcller\u20ac \u6f22"),
                (NameOID.SERIAL_NUMBER, "12"),
                (NameOID.DOMAIN_COMPONENT, "org"),
                (NameOID.USER_ID, "u1"),
                (NameOID.STREET_ADDRESS, "s 1"),
                (NameOID.TITLE, "Dr"),
            ),
            "2.5.4.12=#0c024472,STREET=s 1,UID=u1,DC=org,2.5.4.5=#13023132,"
            "CN=M\u00fcller\u20ac \u6f22",
        ),
        (named("CN=b+OU=a"), "CN=b+OU=a"),
        (
            name(
                (CN, "#x"),
                (NameOID.LOCALITY_NAME, " "),
                (NameOID.STATE_OR_PROVINCE_NAME, "a\0b\n"),
            ),
            "ST=a\\00b\n,L=\\ ,CN=\\#x",
        ),
    ],
)
def test_the_name_is_written_as_java_does(subject: x509.Name, written: str) -> None:
    assert subject_of(Authority().issue(subject).der) == written


def test_a_long_value_without_a_keyword_has_a_long_length() -> None:
    mail = "a" * 200 + "@b.c"
    written = subject_of(Authority().issue(with_mail("CN=a", mail)).der)
    assert written == f"1.2.840.113549.1.9.1=#1681cc{mail.encode().hex()},CN=a"


def test_what_is_no_certificate() -> None:
    whole = Authority().issue("CN=a").der
    for data in (b"", b"0", b"\x30\x80", b"\x30\x05hello", whole[:40], whole[:-1]):
        with pytest.raises(ValueError, match="this is no certificate"):
            subject_of(data)
