import ssl
from dataclasses import replace
from pathlib import Path

import pytest
from tests.security.authority import Authority

from ottla.security.tls import (
    TlsError,
    TlsOptions,
    client_context,
    server_context,
    state_of_files,
    with_lines,
)


@pytest.fixture
def options(tmp_path: Path) -> TlsOptions:
    authority = Authority()
    return TlsOptions(
        key_store=str(authority.issue("CN=a").store(tmp_path / "key.pem")),
        trust_store=str(authority.trust(tmp_path / "trust.pem")),
    )


@pytest.mark.parametrize(
    ("client_auth", "mode"),
    [("none", ssl.CERT_NONE), ("requested", ssl.CERT_OPTIONAL), ("required", ssl.CERT_REQUIRED)],
)
def test_a_listener(options: TlsOptions, client_auth: str, mode: ssl.VerifyMode) -> None:
    context = server_context(replace(options, client_auth=client_auth))
    assert context.verify_mode is mode
    assert context.minimum_version is ssl.TLSVersion.TLSv1_2
    assert context.maximum_version is ssl.TLSVersion.TLSv1_3
    assert context.options & ssl.OP_NO_RENEGOTIATION


def test_a_client(options: TlsOptions) -> None:
    assert client_context(options).check_hostname
    lenient = client_context(replace(options, checks_host=False, key_store=None))
    assert not lenient.check_hostname
    assert lenient.verify_mode is ssl.CERT_REQUIRED


def test_cipher_suites(options: TlsOptions) -> None:
    wanted = ("TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",)
    context = server_context(replace(options, cipher_suites=wanted))
    assert context.maximum_version is ssl.TLSVersion.TLSv1_2
    only_new = server_context(replace(options, cipher_suites=("TLS_AES_128_GCM_SHA256",)))
    assert only_new.minimum_version is ssl.TLSVersion.TLSv1_3
    with pytest.raises(TlsError, match="OpenSSL has none of TLS_ROT13_WITH_NULL"):
        server_context(replace(options, cipher_suites=("TLS_ROT13_WITH_NULL",)))
    with pytest.raises(TlsError, match=r"ssl\.cipher\.suites has no suite"):
        server_context(replace(options, protocols=("TLSv1.3",), cipher_suites=wanted))


def test_an_encrypted_key(tmp_path: Path, options: TlsOptions) -> None:
    path = str(Authority().issue("CN=a").store(tmp_path / "encrypted.pem", "secret"))
    encrypted = replace(options, key_store=path)
    server_context(replace(encrypted, key_password="secret"))
    with pytest.raises(TlsError, match=r"encrypted: set ssl\.key\.password"):
        server_context(encrypted)
    with pytest.raises(TlsError, match=r"ssl\.key\.password is not the private key's"):
        server_context(replace(encrypted, key_password="wrong"))


def test_what_is_no_key_store(tmp_path: Path, options: TlsOptions) -> None:
    file = tmp_path / "wrong.pem"
    wrong = replace(options, key_store=str(file))
    with pytest.raises(TlsError, match=r"wrong\.pem: No such file"):
        server_context(wrong)
    file.write_text("nothing")
    with pytest.raises(TlsError, match=r"wrong\.pem: expected a PEM file"):
        server_context(wrong)
    one, other = Authority().issue("CN=a"), Authority().issue("CN=a")
    file.write_text(one.key_pem() + other.certificate_pem)
    with pytest.raises(TlsError, match="the first certificate is not of the private key"):
        server_context(wrong)
    with pytest.raises(TlsError, match=r"needs ssl\.keystore\.location"):
        server_context(replace(options, key_store=None))


def test_what_is_no_trust_store(tmp_path: Path, options: TlsOptions) -> None:
    file = tmp_path / "wrong.pem"
    wrong = replace(options, trust_store=str(file), client_auth="required")
    with pytest.raises(TlsError, match=r"wrong\.pem: No such file"):
        server_context(wrong)
    file.write_text("nothing")
    with pytest.raises(TlsError, match=r"ssl\.truststore\.location .* certificates in PEM"):
        server_context(wrong)


def test_lines_that_a_properties_file_has_lost() -> None:
    issued = Authority().issue("CN=a")
    whole = issued.key_pem() + issued.certificate_pem
    assert with_lines(whole.replace("\n", " ")) == whole
    assert with_lines(f"Bag Attributes\n{whole}") == whole
    kind = "RSA PRIVATE KEY-----\n"
    old = f"-----BEGIN {kind}Proc-Type: 4,ENCRYPTED\n\nab\n-----END {kind}"
    assert with_lines(old) == old


def test_the_state_of_files_changes_with_them(tmp_path: Path) -> None:
    path = tmp_path / "a"
    missing = state_of_files([str(path)])
    path.write_text("1")
    one = state_of_files([str(path)])
    path.write_text("22")
    assert len({missing, one, state_of_files([str(path)])}) == 3
