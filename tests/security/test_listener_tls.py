"""What may replace the certificates of a listener that runs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.security.authority import Authority, Issued, with_mail

from ottla.security.certificate_names import alternative_names, first_certificate
from ottla.security.listener_tls import ListenerTls, load_tls, replaced_tls
from ottla.security.tls import TlsError, TlsOptions


def text_of(issued: Issued) -> TlsOptions:
    return TlsOptions(key_store=issued.key_pem() + issued.certificate_pem, key_store_is_file=False)


def trusting(options: TlsOptions, *authorities: Authority) -> TlsOptions:
    return replace(
        options,
        trust_store="".join(each.certificate_pem for each in authorities),
        trust_store_is_file=False,
        client_auth="required",
    )


def test_names_of_a_certificate() -> None:
    issued = Authority().issue("CN=a", "one.example.org")
    assert alternative_names(issued.der) == {
        (2, b"localhost"),
        (7, bytes((127, 0, 0, 1))),
        (2, b"one.example.org"),
    }
    assert alternative_names(Authority().der) == frozenset()
    assert first_certificate(issued.certificate_pem + Authority().certificate_pem) == issued.der
    assert first_certificate("no certificate") is None
    for bad in (b"", b"\x30\x03abc", issued.der[:-40]):
        with pytest.raises(ValueError, match="this is no certificate"):
            alternative_names(bad)


def test_a_certificate_with_the_same_names_or_more_is_taken() -> None:
    authority = Authority()
    old = load_tls(text_of(authority.issue("CN=a,O=Example", "one")))
    new = replaced_tls(text_of(authority.issue("CN=A,O=EXAMPLE", "one", "two")), old)
    assert new.certificate != old.certificate


@pytest.mark.parametrize(
    ("name", "hosts", "allowed", "said"),
    [
        (
            "CN=b",
            ("one",),
            "may_change_name",
            "DistinguishedName does not match: existing={DN=CN=a",
        ),
        ("CN=a", (), "may_lose_names", "SubjectAltNames do not match: the new .* lacks DNS:one;"),
    ],
)
def test_a_certificate_of_another_name_is_refused_unless_that_is_allowed(
    name: str, hosts: tuple[str, ...], allowed: str, said: str
) -> None:
    authority = Authority()
    old = load_tls(text_of(authority.issue("CN=a", "one")))
    options = text_of(authority.issue(name, *hosts))
    with pytest.raises(TlsError, match=said):
        replaced_tls(options, old)
    allowing = replace(
        options,
        may_change_name=allowed == "may_change_name",
        may_lose_names=allowed == "may_lose_names",
    )
    assert replaced_tls(allowing, old).certificate != old.certificate


def test_names_that_differ_in_more_than_a_keyword() -> None:
    authority = Authority()
    old = load_tls(text_of(authority.issue(with_mail("CN=a", "a@example.org"))))
    with pytest.raises(TlsError, match="DistinguishedName"):
        replaced_tls(text_of(authority.issue(with_mail("CN=a", "b@example.org"))), old)


def between_brokers(options: TlsOptions) -> ListenerTls:
    return load_tls(options, is_between_brokers=True)


def test_brokers_must_trust_the_new_certificate_and_the_old_one() -> None:
    one, two = Authority(), Authority()
    old = between_brokers(trusting(text_of(one.issue("CN=a")), one))
    replaced_tls(trusting(text_of(one.issue("CN=a")), one, two), old)
    for options in (
        trusting(text_of(two.issue("CN=a")), one, two),  # the others do not know `two` yet
        trusting(text_of(one.issue("CN=a")), two),  # nor this one `one` any more
    ):
        with pytest.raises(TlsError, match=r"could not connect: the .* is refused"):
            replaced_tls(options, old)
    # The documented way: first the authority, then the certificate.
    both = replaced_tls(trusting(text_of(one.issue("CN=a")), one, two), old)
    new = replaced_tls(trusting(text_of(two.issue("CN=a")), one, two), both)
    assert replaced_tls(trusting(text_of(two.issue("CN=a")), two), new).client is not None


def test_a_trust_store_is_not_added(tmp_path: Path) -> None:
    authority = Authority()
    old = load_tls(text_of(authority.issue("CN=a")))
    with pytest.raises(TlsError, match="Cannot add SSL truststore"):
        replaced_tls(trusting(text_of(authority.issue("CN=a")), authority), old)
