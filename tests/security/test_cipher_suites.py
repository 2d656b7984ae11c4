import ssl

import pytest

from ottla.security.cipher_suites import ciphers_of, is_of_tls_1_3

STANDARD = {
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256": "ECDHE-RSA-AES128-GCM-SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384": "ECDHE-ECDSA-AES256-GCM-SHA384",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-RSA-CHACHA20-POLY1305",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256": "ECDHE-RSA-AES128-SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA": "ECDHE-RSA-AES256-SHA",
    "TLS_DHE_RSA_WITH_AES_128_GCM_SHA256": "DHE-RSA-AES128-GCM-SHA256",
    "TLS_RSA_WITH_AES_256_GCM_SHA384": "AES256-GCM-SHA384",
    "ECDHE-RSA-AES256-GCM-SHA384": "ECDHE-RSA-AES256-GCM-SHA384",
}


@pytest.mark.parametrize(("standard", "openssl"), STANDARD.items())
def test_openssl_knows_the_names(standard: str, openssl: str) -> None:
    assert ciphers_of([standard]) == [openssl]
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.set_ciphers(openssl)
    assert openssl in {each["name"] for each in context.get_ciphers()}


def test_tls_1_3_has_suites_of_its_own() -> None:
    assert is_of_tls_1_3("TLS_AES_128_GCM_SHA256")
    assert not any(map(is_of_tls_1_3, STANDARD))
    assert ciphers_of(["TLS_AES_256_GCM_SHA384"]) == []
