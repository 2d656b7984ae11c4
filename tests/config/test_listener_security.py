import pytest

from ottla.config import BrokerConfig, ConfigError
from ottla.config.listener_security import (
    ListenerSecurity,
    is_of_listener,
    tls_options,
    without_listener,
)

PEM = {"ssl.keystore.type": "PEM", "ssl.truststore.type": "PEM"}


def test_a_listeners_own_setting_comes_first() -> None:
    given = PEM | {
        "ssl.client.auth": "required",
        "ssl.keystore.location": "/general",
        "listener.name.inside.ssl.keystore.location": "/own",
        "listener.name.inside.max.connections": "5",
        "max.connections": "9",
    }
    inside, outside = ListenerSecurity(given, "INSIDE"), ListenerSecurity(given, "OUTSIDE")
    assert (inside.ssl_keystore_location, inside.max_connections) == ("/own", 5)
    # The broker's own limit is of all listeners together.
    assert (outside.ssl_keystore_location, outside.max_connections) == ("/general", None)
    assert inside.ssl_client_auth == outside.ssl_client_auth == "required"


def test_names() -> None:
    assert is_of_listener("listener.name.a.ssl.client.auth")
    assert not is_of_listener("ssl.client.auth")
    assert not is_of_listener("listener.name.a.num.partitions")
    assert without_listener("listener.name.a.ssl.client.auth") == "ssl.client.auth"
    assert without_listener("num.partitions") == "num.partitions"


def test_stores_in_files_and_in_the_settings() -> None:
    files = {"ssl.keystore.location": "/k", "ssl.truststore.location": "/t"}
    options = tls_options(ListenerSecurity(PEM | files, "SSL"))
    assert (options.key_store, options.trust_store, options.files) == ("/k", "/t", ("/k", "/t"))
    texts = {
        "ssl.keystore.key": "key",
        "ssl.keystore.certificate.chain": "chain",
        "ssl.truststore.certificates": "trusted",
        "ssl.endpoint.identification.algorithm": "",
    }
    options = tls_options(ListenerSecurity(PEM | texts, "SSL"))
    assert (options.key_store, options.trust_store, options.files) == ("key\nchain", "trusted", ())
    assert not options.checks_host
    assert tls_options(ListenerSecurity({}, "SSL")).files == ()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            {"ssl.keystore.location": "/k.jks"},
            "ssl.keystore.type: Only PEM is supported: set ssl.keystore.type=PEM. To convert the "
            "store: keytool -importkeystore -srckeystore /k.jks -destkeystore /k.jks.p12 "
            "-deststoretype PKCS12 && openssl pkcs12 -in /k.jks.p12 -out /k.jks.pem",
        ),
        (
            {"ssl.truststore.location": "/t.p12", "ssl.truststore.type": "PKCS12"},
            "openssl pkcs12 -in /t.p12 -nokeys -out /t.p12.pem",
        ),
        ({"ssl.keystore.location": "/k", "ssl.keystore.type": "BCFKS"}, "Only PEM is supported"),
        (PEM | {"ssl.keystore.key": "k"}, "certificate chain is not specified"),
        (PEM | {"ssl.keystore.certificate.chain": "c"}, "private key is not specified"),
        (
            PEM | {"ssl.keystore.location": "/k", "ssl.keystore.password": "p"},
            "only key password may be specified",
        ),
        (
            PEM
            | {
                "ssl.keystore.location": "/k",
                "ssl.keystore.key": "k",
                "ssl.keystore.certificate.chain": "c",
            },
            "Both SSL key store location and separate private key",
        ),
        (
            PEM | {"ssl.truststore.location": "/t", "ssl.truststore.password": "p"},
            "trust store password cannot be specified",
        ),
        (
            PEM | {"ssl.truststore.location": "/t", "ssl.truststore.certificates": "c"},
            "Both SSL trust store location and separate trust certificates",
        ),
        ({"ssl.principal.mapping.rules": "RULE:x"}, "ssl.principal.mapping.rules: Invalid rule"),
        ({"listener.name.ssl.ssl.client.auth": "maybe"}, "ssl.client.auth: String must be one of"),
    ],
)
def test_what_cannot_be_together(given: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        BrokerConfig({"listeners": "SSL://:9093"} | given)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
