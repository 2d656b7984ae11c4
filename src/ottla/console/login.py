"""Logging in: by one password, or as a user of the cluster (SASL)."""

from __future__ import annotations

import hashlib
import hmac
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Protocol

from ottla.client.errors import SecurityError
from ottla.console.access import Access
from ottla.console.errors import ForbiddenError
from ottla.wording.errors import ReportedError

MAX_PASSWORD_BYTES: Final = 1024
MIN_PASSWORD_CHARACTERS: Final = 12


class PasswordFileError(ReportedError):
    """The file cannot be used."""

    is_usage = True


class Login(Protocol):
    """`asks_user`: for a name as well as for a password."""

    asks_user: bool

    def enter(self, user: str, password: str) -> tuple[Access, str | None]:
        """How this visitor asks the cluster, and as whom if that is his own access. Blocks. Raises
        ForbiddenError, and ClientError if the cluster cannot be asked.
        """


class PasswordLogin:
    """One password for all. Its hash is kept, not the password itself."""

    asks_user = False

    def __init__(self, password: str, access: Access) -> None:
        self._salt = os.urandom(16)
        self._hash = self._hashed(password)
        self._access = access

    def _hashed(self, password: str) -> bytes:
        given = password.encode("utf-8", "surrogateescape")[:MAX_PASSWORD_BYTES]
        return hashlib.scrypt(given, salt=self._salt, n=2**14, r=8, p=1)

    def enter(self, user: str, password: str) -> tuple[Access, str | None]:
        if not hmac.compare_digest(self._hashed(password), self._hash):
            raise ForbiddenError("this is not the password.")
        return self._access, None


class SaslLogin:
    """The user's own name and password in the cluster: its ACLs hold for what he sees and does."""

    asks_user = True

    def __init__(self, bootstrap: str, settings: Mapping[str, Any], client_id: str) -> None:
        self._bootstrap, self._settings, self._client_id = bootstrap, settings, client_id

    def enter(self, user: str, password: str) -> tuple[Access, str | None]:
        if not user or not password:
            raise ForbiddenError("a user and a password are needed.")
        own = {**self._settings, "sasl.username": user, "sasl.password": password}
        access = Access(self._bootstrap, own, self._client_id)
        try:
            with access.client() as client:
                client.metadata([])
        except SecurityError as error:
            raise ForbiddenError(f"the cluster refuses it: {error.message}") from None
        return access, user


def read_password(path: Path) -> str:
    """The first line of a file that nobody else may read. Raises PasswordFileError."""
    try:
        with path.open(encoding="utf-8") as file:
            mode = os.fstat(file.fileno()).st_mode
            password = file.readline(MAX_PASSWORD_BYTES).rstrip("\r\n")
    except OSError as error:
        raise PasswordFileError(f"cannot read {path}: {error.strerror or error}.") from None
    except UnicodeDecodeError:
        raise PasswordFileError(f"{path} is not UTF-8.") from None
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise PasswordFileError(
            f"{path} has a password and may be read by others.", f"To correct it: chmod 600 {path}"
        )
    if len(password) < MIN_PASSWORD_CHARACTERS:
        raise PasswordFileError(
            f"the password in {path} has {len(password)} characters; "
            f"{MIN_PASSWORD_CHARACTERS} or more are needed."
        )
    return password
