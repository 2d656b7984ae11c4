"""A secured broker or cluster in a test: users, ACLs and certificates, so that an application can
be tested against a denial.

    Security(users={"app": "secret"}, acls=["app Read topic orders", "app Read group billing"])

Brokers listen with SASL_SSL, by an authority that is made for the test; for certificates of clients
also with SSL. Nobody may do what no ACL allows; the kit itself is the super user `admin`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from ottla.client.admin.acls import create_acls, delete_acls
from ottla.client.admin.users import delete_password, set_password, users
from ottla.security.acl import Acl
from ottla.security.acl_words import AclWordsError, parse_acls
from ottla.security.development.certificates import (
    CERTIFICATE_DAYS,
    CertificateError,
    issue,
    read_authority,
    write,
)
from ottla.security.development.secure_folder import (
    ADMIN,
    BROKER,
    MECHANISM,
    PROTOCOL,
    login_setting,
    secure_folder,
)
from ottla.security.sasl.scram import MIN_ITERATIONS
from ottla.testing.broker_request import kit_client
from ottla.testing.errors import KitError, is_for_the_test

__tracebackhide__ = is_for_the_test

CERTIFIED: Final = "SSL"
"""The listener for clients with a certificate, and its protocol."""
HOSTS: Final = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True)
class Security:
    """What a secured broker of a test begins with. `users` has passwords by name, `certificates`
    names of clients: `"app"` is `User:CN=app`. `acls` are words as after `ottla acl add`.
    """

    users: Mapping[str, str] = field(default_factory=dict)
    acls: Sequence[str] = ()
    certificates: Sequence[str] = ()


class SecuredClients:
    """The clients of a secured broker or cluster, and what they may do."""

    def __init__(self, security: Security, folder: Path) -> None:
        """Makes the certificates in `folder`. Raises KitError."""
        self._security = security
        self._acls = _acls(security.acls)
        self._passwords = dict(security.users)
        if taken := {ADMIN, BROKER} & self._passwords.keys():
            raise KitError(f"the user {min(taken)} is the kit's own")
        try:
            self._folder = secure_folder(folder, HOSTS)
            self._certificates = self._issued(security.certificates)
        except CertificateError as error:
            raise KitError(f"{error.message} {error.hint or ''}".strip()) from None

    def _issued(self, names: Sequence[str]) -> dict[str, Path]:
        """By name. Without names, the authority's key may be elsewhere. Raises CertificateError."""
        found: dict[str, Path] = {}
        if names:
            folder = self._folder
            authority = read_authority(folder.authority_key, folder.authority)
            for number, name in enumerate(names):
                path = found[name] = folder.path / f"client-{number}.pem"
                write(path, issue(authority, name, [], CERTIFICATE_DAYS).together, replace=True)
        return found

    @property
    def authority(self) -> Path:
        """The certificate, in PEM, of the authority that clients must trust."""
        return self._folder.authority

    def options(
        self, listeners: Mapping[str, str], advertised: Mapping[str, str] | None = None
    ) -> list[str]:
        """A broker's, with these listeners: `HOST:PORT` by name. CERTIFIED asks for certificates,
        all others for passwords; brokers use the last of those. The passwords are in a file.
        """
        settings = self._folder.broker_settings()
        kinds = {name: CERTIFIED if name == CERTIFIED else PROTOCOL for name in listeners}
        own = [name for name in listeners if name != CERTIFIED]
        login = settings[login_setting(PROTOCOL)]
        settings |= {login_setting(name): login for name in own}
        if CERTIFIED in listeners:
            settings[f"listener.name.{CERTIFIED.lower()}.ssl.client.auth"] = "required"
        path = self._folder.path / f"{'-'.join(listeners).lower()}.properties"
        text = "".join(f"{name}={value}\n" for name, value in settings.items())
        write(path, text.encode(), replace=True)
        given = {
            "listeners": _endpoints(listeners),
            "listener.security.protocol.map": ",".join(f"{n}:{kind}" for n, kind in kinds.items()),
            "inter.broker.listener.name": own[-1],
        }
        if advertised is not None:
            given["advertised.listeners"] = _endpoints(advertised)
        words = [word for pair in given.items() for word in ("-c", "=".join(pair))]
        return ["--properties", str(path), *words]

    def first_users(self) -> str:
        """The setting `ottla.first.users`: those of the kit and of the brokers."""
        return self._folder.broker_settings()["ottla.first.users"]

    def kit_settings(self) -> dict[str, str]:
        """librdkafka's settings of the kit itself, without the address."""
        return self._folder.client_settings()

    def settings(self, user: str, password: str | None = None) -> dict[str, str]:
        """librdkafka's settings for this user, without the address. Raises KitError."""
        if password is None and user not in self._passwords:
            known = ", ".join(self._passwords) or "none"
            raise KitError(f"there is no user {user!r}, only {known}; or give a password")
        given = self._passwords[user] if password is None else password
        return self._folder.client_settings(user, given)

    def certified_settings(self, name: str) -> dict[str, str]:
        """The same with a client's certificate."""
        if name not in self._certificates:
            known = ", ".join(self._certificates) or "none"
            raise KitError(f"there is no certificate {name!r}, only {known}")
        path = str(self._certificates[name])
        return {
            "security.protocol": CERTIFIED,
            "ssl.ca.location": str(self.authority),
            "ssl.certificate.location": path,
            "ssl.key.location": path,
        }

    def begin(self, bootstrap: str) -> None:
        """Make users and ACLs on brokers that have just started. Raises KitError."""
        with kit_client(bootstrap, settings=self.kit_settings()) as client:
            for user, password in self._passwords.items():
                set_password(client, user, MECHANISM, password, MIN_ITERATIONS)
            if self._acls:
                create_acls(client, self._acls)

    def add_user(self, bootstrap: str, name: str, password: str) -> None:
        with kit_client(bootstrap, settings=self.kit_settings()) as client:
            set_password(client, name, MECHANISM, password, MIN_ITERATIONS)
        self._passwords[name] = password

    def delete_user(self, bootstrap: str, name: str) -> None:
        with kit_client(bootstrap, settings=self.kit_settings()) as client:
            for user in users(client, [name]):
                for login in user.logins:
                    delete_password(client, name, login.mechanism)

    def change_acls(self, bootstrap: str, lines: Iterable[str], *, adds: bool) -> None:
        change = create_acls if adds else delete_acls
        with kit_client(bootstrap, settings=self.kit_settings()) as client:
            change(client, _acls(lines))


def _endpoints(addresses: Mapping[str, str]) -> str:
    return ",".join(f"{name}://{address}" for name, address in addresses.items())


def _acls(lines: Iterable[str]) -> list[Acl]:
    try:
        return [acl for line in lines for acl in parse_acls(line)]
    except AclWordsError as error:
        raise KitError(str(error)) from None
