"""A folder with all that makes a broker for development secure.

    authority.key, authority.pem   an authority of its own; clients trust authority.pem
    broker.pem                     the brokers' key and certificate
    passwords.json                 {"admin": "...", "broker": "..."}
    client.properties              for Kafka's own tools, as admin

Each file is written as a whole, and what is missing is made by the next start, so a start may end
anywhere. Nothing that exists is changed, but for a certificate that no longer serves: it expires
soon, or is not for a host by which the broker is reached, or of another authority.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from ottla.security.development.certificates import (
    AUTHORITY_DAYS,
    CERTIFICATE_DAYS,
    PUBLIC_MODE,
    CertificateError,
    facts_of,
    is_installed,
    is_signed_by,
    issue,
    make_authority,
    read,
    read_authority,
    remove,
    write,
)
from ottla.wording.errors import ReportedError

FOLDER: Final = "secure"
"""In a folder of data."""
ADMIN: Final = "admin"
BROKER: Final = "broker"
NEW_ADMIN: Final = f"the user {ADMIN}"
"""What was made, where the passwords were."""
MECHANISM: Final = "SCRAM-SHA-512"
PROTOCOL: Final = "SASL_SSL"
AUTHORIZER: Final = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
LOGIN: Final = "org.apache.kafka.common.security.scram.ScramLoginModule required"
PASSWORD_BYTES: Final = 18
MIN_DAYS_LEFT: Final = 30


@dataclass(frozen=True, slots=True)
class SecureFolder:
    """The folder, with the passwords of its users. `made` says what was not there before."""

    path: Path
    passwords: Mapping[str, str]
    made: tuple[str, ...] = ()

    @property
    def authority(self) -> Path:
        """The certificate that clients trust."""
        return self.path / "authority.pem"

    @property
    def authority_key(self) -> Path:
        """Makes the next certificate; nothing else needs it."""
        return self.path / "authority.key"

    @property
    def certificate(self) -> Path:
        """The brokers' key and certificate."""
        return self.path / "broker.pem"

    @property
    def client_properties(self) -> Path:
        return self.path / "client.properties"

    def broker_settings(self) -> dict[str, str]:
        """A broker's, but for its listeners: each has the protocol PROTOCOL, and its name."""
        users = (
            f"{MECHANISM}=[name={name},password={password}]"
            for name, password in self.passwords.items()
        )
        login = _login(BROKER, self.passwords[BROKER])
        return {
            "inter.broker.listener.name": PROTOCOL,
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self.certificate),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.authority),
            "sasl.enabled.mechanisms": f"{MECHANISM},SCRAM-SHA-256",
            "sasl.mechanism.inter.broker.protocol": MECHANISM,
            login_setting(PROTOCOL): login,
            "authorizer.class.name": AUTHORIZER,
            "super.users": f"User:{ADMIN};User:{BROKER}",
            "ottla.first.users": ";".join(users),
        }

    def client_settings(self, user: str = ADMIN, password: str | None = None) -> dict[str, str]:
        """librdkafka's, without the address. `password`: of a user that is not of the folder."""
        return {
            "security.protocol": PROTOCOL,
            "ssl.ca.location": str(self.authority),
            "sasl.mechanism": MECHANISM,
            "sasl.username": user,
            "sasl.password": self.passwords[user] if password is None else password,
        }


class OwnSettingError(ReportedError):
    """A setting was given that --secure sets itself."""

    is_usage = True


def check_given(settings: Iterable[str]) -> None:
    """Of a broker, before the folder is made. Raises OwnSettingError."""
    own = SecureFolder(Path(), {ADMIN: "", BROKER: ""}).broker_settings()
    twice = sorted(own.keys() & set(settings))
    if twice:
        raise OwnSettingError(
            f"--secure sets {twice[0]} itself.", "Leave one of them out; docs/security.md has all."
        )


def login_setting(listener: str) -> str:
    """The setting with which brokers log in on this listener."""
    return f"listener.name.{listener.lower()}.{MECHANISM.lower()}.sasl.jaas.config"


def secure_folder(path: Path, hosts: Sequence[str]) -> SecureFolder:
    """The folder as it must be for brokers that are reached by these names and addresses; what is
    missing is made. Raises CertificateError.
    """
    path = path.absolute()
    passwords, made = _passwords(path / "passwords.json")
    found = SecureFolder(path, passwords)
    made += _certificates(found, hosts)
    text = "".join(f"{name}={value}\n" for name, value in _properties(found).items())
    if not found.client_properties.exists() or read(found.client_properties) != text.encode():
        write(found.client_properties, text.encode(), replace=True)
    return SecureFolder(path, passwords, tuple(made))


def _passwords(path: Path) -> tuple[dict[str, str], list[str]]:
    if not path.exists():
        passwords = {name: secrets.token_urlsafe(PASSWORD_BYTES) for name in (ADMIN, BROKER)}
        write(path, json.dumps(passwords, indent=2).encode() + b"\n")
        return passwords, [NEW_ADMIN]
    try:
        found = json.loads(read(path))
        return {name: str(found[name]) for name in (ADMIN, BROKER)}, []
    except (ValueError, KeyError, TypeError):
        raise CertificateError(
            f"{path} was not written by --secure.", "Give another --data, or remove it."
        ) from None


def _certificates(folder: SecureFolder, hosts: Sequence[str]) -> list[str]:
    """Makes what is missing; returns what it made."""
    key, made = folder.authority_key, []
    if not folder.authority.exists() or not key.exists():
        if folder.authority.exists() and folder.certificate.exists():
            return []  # somebody keeps the authority's key elsewhere
        authority = make_authority("Ottla development", AUTHORITY_DAYS)
        for half in (folder.authority, key):  # a crash leaves no key beside another's certificate
            remove(half)
        write(key, authority.key, replace=True)
        write(folder.authority, authority.certificate, replace=True, mode=PUBLIC_MODE)
        made.append("an authority")
    reason = _why_not(folder, hosts)
    if reason is not None:
        signed = issue(read_authority(key, folder.authority), BROKER, hosts, CERTIFICATE_DAYS)
        write(folder.certificate, signed.together, replace=True)
        made.append(f"a certificate{reason}")
    return made


def _why_not(folder: SecureFolder, hosts: Sequence[str]) -> str | None:
    """None if the certificate serves; otherwise why there must be another one."""
    if not folder.certificate.exists():
        return ""
    if not is_installed():
        return None  # it can be used, but not read here
    certificate = read(folder.certificate)
    own = facts_of(certificate)[0]
    if own.days_left(datetime.now(UTC)) < MIN_DAYS_LEFT:
        return " (the one before expires)"
    if not is_signed_by(certificate, read(folder.authority)):
        return " (the one before was of another authority)"
    missing = [host for host in hosts if host.strip("[]") not in own.names]
    if missing:
        return f" (the one before was not for {', '.join(missing)})"
    return None


def _properties(folder: SecureFolder) -> dict[str, str]:
    return {
        "security.protocol": PROTOCOL,
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(folder.authority),
        "sasl.mechanism": MECHANISM,
        "sasl.jaas.config": _login(ADMIN, folder.passwords[ADMIN]),
    }


def _login(user: str, password: str) -> str:
    return f'{LOGIN} username="{user}" password="{password}";'
