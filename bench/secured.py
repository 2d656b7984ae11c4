"""Brokers with a second listener for clients that prove who they are, over TLS or without it.

Both brokers get the same certificate, the same user and the same settings. The first listener stays
plaintext: by it the bench finds out that the broker has started, and Apache Kafka speaks to itself.
"""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from components.apache_kafka import ApacheKafka

from bench.brokers import SAME_SETTINGS, START_WAIT_MS, Broker, Ottla, started
from bench.measure import OTTLA, Bench
from ottla.security.development.certificates import issue, make_authority, write
from ottla.testing.ports import free_ports

USER = "bench"
PASSWORD = "secret"
MECHANISM = "SCRAM-SHA-256"
FIRST_USER = f"{MECHANISM}=[name={USER},password={PASSWORD}]"
TLS = "TLSv1.3"
SASL_SSL = "SASL_SSL"
SASL_PLAINTEXT = "SASL_PLAINTEXT"
AUTHORIZERS = {
    OTTLA: "kafka.security.authorizer.AclAuthorizer",
    ApacheKafka.name: "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
}
_DAYS = 2


@dataclass(frozen=True)
class Secured:
    """A started broker, the address of its second listener, and librdkafka's settings for it."""

    broker: Broker
    address: str
    client: Mapping[str, str]

    @property
    def options(self) -> tuple[str, ...]:
        """The settings as options of rdkafka_performance."""
        return as_options(self.client)


def as_options(client: Mapping[str, str]) -> tuple[str, ...]:
    """librdkafka's settings as options of rdkafka_performance."""
    return tuple(word for pair in client.items() for word in ("-X", "=".join(pair)))


@contextmanager
def running(
    name: str,
    bench: Bench,
    protocol: str = SASL_SSL,
    settings: Mapping[str, str] | None = None,
) -> Iterator[Secured]:
    """A context manager with a listening broker in a temporary folder."""
    with tempfile.TemporaryDirectory(prefix="ottla-bench-", ignore_cleanup_errors=True) as scratch:
        folder = Path(scratch)
        authority, store = certificate(folder)
        port = free_ports(1)[0]
        address = f"127.0.0.1:{port}"
        secured = {
            "sasl.enabled.mechanisms": MECHANISM,
            "ssl.enabled.protocols": TLS,
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(store),
            **SAME_SETTINGS,
            **(settings or {}),
        }
        broker: Broker
        if name == OTTLA:
            broker = _SecuredOttla(folder, f"{protocol}://{address}", secured, bench.prefix)
        else:
            assert bench.jars is not None
            broker = _SecuredKafka(
                bench.jars, folder, secured, format_options=("--add-scram", FIRST_USER)
            )
            broker.add(f"{protocol}://{address}")
        client = {
            "security.protocol": protocol,
            "sasl.mechanism": MECHANISM,
            "sasl.username": USER,
            "sasl.password": PASSWORD,
        }
        if protocol == SASL_SSL:
            client["ssl.ca.location"] = str(authority)
        with started(broker):
            broker.child.wait_for_port(port, START_WAIT_MS)
            yield Secured(broker, address, client)


class _SecuredOttla(Ottla):
    """`ottla serve` with two listeners and one user."""

    def __init__(
        self, folder: Path, listener: str, settings: Mapping[str, str], prefix: Sequence[str]
    ) -> None:
        super().__init__(folder, {**settings, "ottla.first.users": FIRST_USER}, prefix)
        at = self._command.index("--listen")
        listeners = f"listeners=PLAINTEXT://{self.address},{listener}"
        self._command[at : at + 2] = ["--config", listeners]


class _SecuredKafka(ApacheKafka):
    """Apache Kafka with two listeners for clients, and one for its controller."""

    def add(self, listener: str) -> None:
        """Call before the first start."""
        controller = f"127.0.0.1:{free_ports(1)[0]}"
        listeners = f"PLAINTEXT://{self.address},{listener}"
        protocol = listener.partition(":")[0]
        self._settings |= {
            "listeners": f"{listeners},CONTROLLER://{controller}",
            "advertised.listeners": listeners,
            "controller.quorum.voters": f"1@{controller}",
            f"listener.name.{protocol.lower()}.{MECHANISM.lower()}.sasl.jaas.config": (
                "org.apache.kafka.common.security.scram.ScramLoginModule required;"
            ),
            "listener.security.protocol.map": (
                f"CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,{protocol}:{protocol}"
            ),
        }


def certificate(folder: Path) -> tuple[Path, Path]:
    """An authority's certificate; and one file with the key and the certificate of 127.0.0.1, as
    `ssl.keystore.location` has them.
    """
    authority = make_authority("bench", _DAYS)
    path, store = folder / "authority.pem", folder / "broker.pem"
    write(path, authority.certificate)
    write(store, issue(authority, "bench", ["127.0.0.1"], _DAYS).together)
    return path, store
