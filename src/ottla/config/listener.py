"""Listener addresses: `listeners`, `advertised.listeners` and their security protocols.

An address is NAME://HOST:PORT, an IPv6 host in brackets. The name of a listener is mapped to its
security protocol by listener.security.protocol.map (KIP-103).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Final

from ottla.config.error import ConfigError, invalid_value

SUPPORTED_PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")

_ADDRESS: Final = re.compile(
    r"(?P<name>[A-Za-z0-9_.\-]+)://(?P<host>\[[0-9A-Fa-f:.%]+\]|[A-Za-z0-9_.\-]*):(?P<port>\d{1,5})\Z",
    re.ASCII,
)
_EVERY_INTERFACE: Final = ("", "0.0.0.0", "::")


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A listener's address. `host` has no brackets; "" means every interface."""

    name: str
    host: str
    port: int
    protocol: str = "PLAINTEXT"

    @property
    def every_interface(self) -> bool:
        """Whether this address stands for all interfaces, not for one host."""
        return self.host in _EVERY_INTERFACE

    @property
    def has_tls(self) -> bool:
        return self.protocol.endswith("SSL")

    @property
    def has_sasl(self) -> bool:
        return self.protocol.startswith("SASL")

    @property
    def only_this_machine(self) -> bool:
        """Whether only processes of this machine can connect: a loopback address."""
        if self.host == "localhost":
            return True
        try:
            return ip_address(self.host.partition("%")[0]).is_loopback
        except ValueError:
            # Every interface, or a name, which may be any machine's.
            return False

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.name}://{host}:{self.port}"


def parse_endpoints(
    setting: str, addresses: Sequence[str], protocols: Sequence[str]
) -> tuple[Endpoint, ...]:
    """The endpoints in a list of addresses. Raises ConfigError that names the invalid one.

    `protocols` is the value of listener.security.protocol.map.
    """
    protocol_of = _protocols(protocols)
    endpoints: list[Endpoint] = []
    for address in addresses:
        matched = _ADDRESS.match(address)
        if matched is None or int(matched["port"]) > 65_535:
            reason = "Expected NAME://HOST:PORT, such as PLAINTEXT://127.0.0.1:9092"
            raise invalid_value(setting, address, reason)
        name = matched["name"].upper()
        protocol = protocol_of.get(name)
        if protocol is None:
            reason = f"No security protocol for {name} in listener.security.protocol.map"
            raise invalid_value(setting, address, reason)
        if protocol not in SUPPORTED_PROTOCOLS:
            reason = f"{protocol} is not supported, only {', '.join(SUPPORTED_PROTOCOLS)}"
            raise invalid_value(setting, address, reason)
        endpoints.append(
            Endpoint(name, matched["host"].strip("[]"), int(matched["port"]), protocol)
        )
    _refuse_twins(setting, endpoints)
    return tuple(endpoints)


def _protocols(pairs: Sequence[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for pair in pairs:
        name, colon, protocol = pair.partition(":")
        if not colon or not name or not protocol:
            raise invalid_value(
                "listener.security.protocol.map", pair, "Expected NAME:PROTOCOL, comma-separated"
            )
        found[name.strip().upper()] = protocol.strip().upper()
    return found


def _refuse_twins(setting: str, endpoints: Sequence[Endpoint]) -> None:
    names = [endpoint.name for endpoint in endpoints]
    if len(set(names)) != len(names):
        raise ConfigError(f"Each listener must have a different name, {setting}: {','.join(names)}")
    if setting == "listeners":
        addresses = [(endpoint.host, endpoint.port) for endpoint in endpoints if endpoint.port]
        if len(set(addresses)) != len(addresses):
            given = ",".join(str(endpoint) for endpoint in endpoints)
            raise ConfigError(f"Each listener must have a different port, {setting}: {given}")


def check_advertised(endpoints: Sequence[Endpoint], listeners: Sequence[Endpoint]) -> None:
    """Raise ConfigError for an advertised address that clients cannot use."""
    known = {listener.name for listener in listeners}
    for endpoint in endpoints:
        if endpoint.every_interface:
            reason = "Clients cannot connect to every interface; give a host name or address"
            raise invalid_value("advertised.listeners", endpoint, reason)
        if endpoint.name not in known:
            reason = f"No such listener in listeners ({', '.join(sorted(known))})"
            raise invalid_value("advertised.listeners", endpoint, reason)
