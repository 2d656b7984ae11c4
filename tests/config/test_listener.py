import pytest

from ottla.config.error import ConfigError
from ottla.config.listener import Endpoint, check_advertised, parse_endpoints

PROTOCOLS = ("PLAINTEXT:PLAINTEXT", "SSL:SSL", "INSIDE:PLAINTEXT", "TOKEN:KERBEROS")


def test_reads_addresses() -> None:
    found = parse_endpoints(
        "listeners",
        ("PLAINTEXT://:9092", "inside://[::1]:0", "SSL://a.b-c_d:65535")[:2],
        PROTOCOLS,
    )
    assert found == (Endpoint("PLAINTEXT", "", 9092), Endpoint("INSIDE", "::1", 0))
    assert [each.every_interface for each in found] == [True, False]
    assert str(found[1]) == "INSIDE://[::1]:0"


@pytest.mark.parametrize(
    ("host", "closed"),
    [
        ("127.0.0.1", True),
        ("127.1.2.3", True),
        ("::1", True),
        ("localhost", True),
        ("", False),
        ("0.0.0.0", False),
        ("::", False),
        ("192.168.1.5", False),
        ("fe80::1%eth0", False),
        ("broker.example.org", False),
    ],
)
def test_only_loopback_addresses_are_closed_to_other_machines(host: str, closed: bool) -> None:
    assert Endpoint("PLAINTEXT", host, 9092).only_this_machine is closed


@pytest.mark.parametrize(
    ("addresses", "reason"),
    [
        (("localhost:9092",), "Expected NAME://HOST:PORT"),
        (("PLAINTEXT://host",), "Expected NAME://HOST:PORT"),
        (("PLAINTEXT://host:70000",), "Expected NAME://HOST:PORT"),
        (("PLAINTEXT://ho st:1",), "Expected NAME://HOST:PORT"),
        (("OTHER://host:1",), "No security protocol for OTHER"),
        (
            ("TOKEN://host:1",),
            "KERBEROS is not supported, only PLAINTEXT, SSL, SASL_",
        ),
        (("PLAINTEXT://a:1", "PLAINTEXT://b:2"), "different name"),
        (("PLAINTEXT://a:1", "INSIDE://a:1"), "different port"),
    ],
)
def test_refuses_bad_addresses(addresses: tuple[str, ...], reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        parse_endpoints("listeners", addresses, PROTOCOLS)


def test_two_listeners_may_both_take_a_free_port() -> None:
    found = parse_endpoints("listeners", ("PLAINTEXT://a:0", "INSIDE://a:0"), PROTOCOLS)
    assert len(found) == 2


def test_a_broken_protocol_map_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"listener\.security\.protocol\.map"):
        parse_endpoints("listeners", ("PLAINTEXT://:1",), ("PLAINTEXT",))


def test_clients_are_not_sent_where_they_cannot_get() -> None:
    listeners = (Endpoint("PLAINTEXT", "", 9092),)
    check_advertised((Endpoint("PLAINTEXT", "example.org", 443),), listeners)
    with pytest.raises(ConfigError, match="every interface"):
        check_advertised((Endpoint("PLAINTEXT", "0.0.0.0", 9092),), listeners)
    with pytest.raises(ConfigError, match=r"No such listener in listeners \(PLAINTEXT\)"):
        check_advertised((Endpoint("OTHER", "example.org", 9092),), listeners)
