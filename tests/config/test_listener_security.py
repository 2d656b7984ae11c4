import pytest

from ottla.config import BrokerConfig, ConfigError
from ottla.config.broker import check_dynamic
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


TLS = PEM | {"listeners": "A://:1,B://:2", "listener.security.protocol.map": "A:SSL,B:SSL"}


def test_stores_and_limits_of_a_listener_are_dynamic() -> None:
    config = BrokerConfig(TLS | {"ssl.keystore.location": "/k"})
    limit = {"listener.name.a.max.connections": "5"}
    own = {"listener.name.a.ssl.keystore.location": "/new", "listener.name.b.max.connections": "6"}
    done = config.reconfigure(limit, own)
    assert done == (tuple(sorted((*limit, *own))), ())
    a, b = config.security_of("A"), config.security_of("B")
    assert (a.ssl_keystore_location, a.max_connections) == ("/new", 5)
    assert (b.ssl_keystore_location, b.max_connections) == ("/k", 6)
    assert config.reconfigure(limit, {}).changed == tuple(sorted(own))
    assert config.security_of("A").ssl_keystore_location == "/k"
    assert config.security_with("A", own).ssl_keystore_location == "/new"
    assert config.security_of("A").max_connections == 5


def test_dynamic_settings_of_a_listener_that_cannot_be_together_are_ignored() -> None:
    config = BrokerConfig(TLS | {"ssl.keystore.location": "/k"})
    done = config.reconfigure(
        {"listener.name.a.ssl.keystore.location": "/all"},
        {
            "listener.name.a.ssl.keystore.key": "key",
            "listener.name.a.ssl.client.auth": "required",
            "listener.name.b.ssl.truststore.location": "/t",
        },
    )
    assert done.changed == ("listener.name.b.ssl.truststore.location",)
    assert [each.partition(": ")[0] for each in done.ignored] == [
        "Cannot update these configs at default cluster level, broker id must be specified",
        "Configs cannot be updated dynamically for existing listener a, restart broker or create a "
        "new listener for update",
        "listener.name.a.ssl.keystore.key",
    ]
    assert config.security_of("A").ssl_keystore_location == "/k"


@pytest.mark.parametrize(
    ("given", "per_broker", "said"),
    [
        ({"ssl.keystore.location": "/k"}, True, "only per-listener using the listener prefix"),
        ({"listener.name.a.ssl.keystore.key": "k"}, False, "broker id must be specified"),
        ({"listener.name.a.plain.sasl.jaas.config": "x"}, True, "for existing listener a"),
        ({"listener.name.a.max.connections": "0"}, False, "Invalid max.connections 0"),
        ({"listener.name.a.max.connection.creation.rate": "many"}, True, "creation.rate"),
    ],
)
def test_what_is_not_dynamic(given: dict[str, str], per_broker: bool, said: str) -> None:
    with pytest.raises(ConfigError) as refused:
        check_dynamic(given, per_broker=per_broker)
    assert said in str(refused.value)
