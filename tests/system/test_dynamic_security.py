"""Settings of listeners that change while the broker runs (KIP-226), by a stock admin client."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    ResourceType,
)
from tests.security.authority import Authority

from ottla.testing import BrokerProcess
from ottla.testing.ports import HOST, free_ports

WAIT_S = 30


def shown(port: int) -> bytes:
    """The certificate that a new connection gets."""
    return ssl.PEM_cert_to_DER_cert(ssl.get_server_certificate((HOST, port), timeout=WAIT_S))


def alter(admin: AdminClient, broker: str, **values: str) -> None:
    """Raises KafkaException."""
    entries = [
        ConfigEntry(
            "listener.name.ssl." + name.replace("_", "."),
            value,
            incremental_operation=AlterConfigOpType.SET,
        )
        for name, value in values.items()
    ]
    resource = ConfigResource(ResourceType.BROKER, broker, incremental_configs=entries)
    (done,) = admin.incremental_alter_configs([resource]).values()
    done.result(WAIT_S)


def test_certificates_and_limits_of_a_listener_change_while_it_runs(
    new_broker: Callable[..., BrokerProcess], tmp_path: Path
) -> None:
    authority = Authority()
    plain, tls = free_ports(2)
    first = authority.issue("CN=broker")
    settings = {
        "listeners": f"PLAINTEXT://{HOST}:{plain},SSL://{HOST}:{tls}",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(first.store(tmp_path / "first.pem")),
    }
    words = [word for pair in settings.items() for word in ("-c", "=".join(pair))]
    broker = new_broker(*words)
    admin = AdminClient({"bootstrap.servers": f"{HOST}:{plain}"})
    assert shown(tls) == first.der

    trusted = ssl.create_default_context(cadata=authority.certificate_pem)
    with (
        socket.create_connection((HOST, tls), WAIT_S) as connection,
        trusted.wrap_socket(connection, server_hostname="localhost") as old,
    ):
        second = authority.issue("CN=broker", "kafka.example.org")
        path = str(second.store(tmp_path / "second.pem", "secret"))
        alter(admin, "1", ssl_keystore_location=path, ssl_key_password="secret")
        assert shown(tls) == second.der
        old.sendall(bytes.fromhex("0000000a 0012 0000 00000007 ffff"))  # ApiVersions 0
        assert old.recv(100)[4:8] == bytes.fromhex("00000007"), "open connections stay"

    other = authority.issue("CN=another").store(tmp_path / "other.pem")
    with pytest.raises(KafkaException, match="Keystore DistinguishedName does not match"):
        alter(admin, "1", ssl_keystore_location=str(other))
    narrow = authority.issue("CN=broker").store(tmp_path / "narrow.pem")
    with pytest.raises(KafkaException, match=r"lacks DNS:kafka\.example\.org"):
        alter(admin, "1", ssl_keystore_location=str(narrow))
    with pytest.raises(KafkaException, match=r"missing\.pem: No such file"):
        alter(admin, "1", ssl_keystore_location=str(tmp_path / "missing.pem"))
    with pytest.raises(KafkaException, match="cannot be updated dynamically for existing listener"):
        alter(admin, "1", ssl_client_auth="required")
    assert shown(tls) == second.der

    resource = ConfigResource(ResourceType.BROKER, "1")
    entries = admin.describe_configs([resource])[resource].result(WAIT_S)
    location = entries["listener.name.ssl.ssl.keystore.location"]
    assert (location.value, location.is_read_only, location.source) == (
        path,
        False,
        ConfigSource.DYNAMIC_BROKER_CONFIG.value,
    )
    password = entries["listener.name.ssl.ssl.key.password"]
    assert (password.value, password.is_sensitive) == (None, True)

    alter(admin, "1", max_connections="1")
    with socket.create_connection((HOST, tls), WAIT_S) as held:
        with (
            socket.create_connection((HOST, tls), WAIT_S) as waiting,
            trusted.wrap_socket(
                waiting, do_handshake_on_connect=False, server_hostname="localhost"
            ) as late,
        ):
            late.settimeout(0.2)
            with pytest.raises(TimeoutError):
                late.do_handshake()
        held.close()
    assert shown(tls) == second.der
    with pytest.raises(KafkaException, match=r"Invalid max\.connections 0"):
        alter(admin, "1", max_connections="0")

    broker.stop()
    broker.start()
    assert shown(tls) == second.der
