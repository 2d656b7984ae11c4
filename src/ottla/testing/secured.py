"""The clients of a secured broker or cluster in a test, and what they may do."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ottla.testing.errors import KitError, is_for_the_test
from ottla.testing.topics import Topics

if TYPE_CHECKING:
    from ottla.testing.security import SecuredClients

__tracebackhide__ = is_for_the_test


class Secured(Topics):
    """A part of `Broker` and `Cluster`: without `security`, nothing of it can be used."""

    def __init__(self) -> None:
        super().__init__()
        self._clients: SecuredClients | None = None
        self._certified = ""
        """Where clients with certificates connect."""

    @property
    def kit_settings(self) -> Mapping[str, str]:
        return {} if self._clients is None else self._clients.kit_settings()

    @property
    def _secured(self) -> SecuredClients:
        if self._clients is None:
            raise KitError("it has no users: Broker(security=Security(...)), or Cluster(...)")
        return self._clients

    @property
    def authority(self) -> Path:
        """The certificate, in PEM, of the authority that clients of a secured broker trust."""
        return self._secured.authority

    def client(self, user: str, password: str | None = None) -> dict[str, str]:
        """librdkafka's settings with which this user connects; `password`: another one than that of
        the user, or of a user that the broker does not know. Raises KitError.
        """
        settings = self._secured.settings(user, password)
        return {"bootstrap.servers": self.bootstrap, **settings}

    def certified_client(self, name: str) -> dict[str, str]:
        """librdkafka's settings with which the client with this certificate connects: it is
        `User:CN=<name>`. Raises KitError.
        """
        settings = self._secured.certified_settings(name)
        return {"bootstrap.servers": self._certified, **settings}

    def add_user(self, name: str, password: str) -> None:
        """Make a user, or give it another password."""
        self._secured.add_user(self.bootstrap, name, password)

    def delete_user(self, name: str) -> None:
        """Delete a user; its connections stay open."""
        self._secured.delete_user(self.bootstrap, name)

    def add_acls(self, *acls: str) -> None:
        """Add ACLs, each as after `ottla acl add`: `broker.add_acls("app Read topic orders")`. They
        are in force when this returns. Raises KitError.
        """
        self._secured.change_acls(self.bootstrap, acls, adds=True)

    def delete_acls(self, *acls: str) -> None:
        """Delete ACLs, named as for `add_acls`."""
        self._secured.change_acls(self.bootstrap, acls, adds=False)
