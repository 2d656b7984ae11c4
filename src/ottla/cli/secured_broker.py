"""`ottla serve --secure`: one broker with TLS, users, an authorizer, and a profile for commands.

Imports neither click nor rich, as `serve_options`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from secrets import token_bytes
from typing import TYPE_CHECKING, Final

from ottla.client.profiles import (
    Profile,
    ProfileError,
    profiles_file,
    read_profiles,
    write_profiles,
)
from ottla.controller.users import MECHANISMS, Upsertion, credential
from ottla.security.development.hosts import own_hosts
from ottla.security.development.secure_folder import (
    ADMIN,
    FOLDER,
    MECHANISM,
    NEW_ADMIN,
    PROTOCOL,
    SecureFolder,
    secure_folder,
)
from ottla.security.sasl.scram import MIN_ITERATIONS, SALT_BYTES, credential_of, salted_password

if TYPE_CHECKING:
    from ottla.node.node import Node

PROFILE: Final = "secure"
ANYWHERE: Final = ("", "0.0.0.0", "[::]")


def secured(data: Path, addresses: list[str]) -> SecureFolder:
    """The folder of a broker with these `HOST:PORT`s. Raises CertificateError."""
    hosts = own_hosts()
    hosts += [host for each in addresses if (host := each.rpartition(":")[0]) not in ANYWHERE]
    return secure_folder(data / FOLDER, list(dict.fromkeys(hosts)))


def beside(
    folder: SecureFolder, say: Callable[[str], None], warn: Callable[[str], None]
) -> Callable[[Node], AbstractAsyncContextManager[None]]:
    """What is done once the broker serves: the user is there, and the profile is written."""

    @asynccontextmanager
    async def opened(node: Node) -> AsyncIterator[None]:
        if ADMIN not in node.image.users:
            await _add_admin(node, folder)
        elif not await asyncio.to_thread(_has_password, node, folder):
            warn(
                f"the user {ADMIN} has another password than that in {folder.client_properties}. "
                f"To give it that one, or another: ottla user add {ADMIN} --replace"
            )
        endpoint = next(each for each in node.endpoints if each.protocol == PROTOCOL)
        host = "127.0.0.1" if endpoint.every_interface else endpoint.host
        bootstrap = f"[{host}]:{endpoint.port}" if ":" in host else f"{host}:{endpoint.port}"
        for line in await asyncio.to_thread(introduction, folder, bootstrap, warn):
            say(line)
        yield

    return opened


def _has_password(node: Node, folder: SecureFolder) -> bool:
    """Whether the password of the user, who may have been there before, is that of the folder."""
    kept = credential(node.image, MECHANISM, ADMIN)
    if kept is None:
        return False
    salted = salted_password(MECHANISM, folder.passwords[ADMIN], kept.salt, kept.iterations)
    return credential_of(MECHANISM, salted, kept.salt, kept.iterations) == kept


async def _add_admin(node: Node, folder: SecureFolder) -> None:
    """The user of a broker that was there before `--secure`."""
    salt = token_bytes(SALT_BYTES)
    salted = await asyncio.to_thread(
        salted_password, MECHANISM, folder.passwords[ADMIN], salt, MIN_ITERATIONS
    )
    number = next(number for number, name in MECHANISMS.items() if name == MECHANISM)
    await node.controller.alter_credentials(
        [], [Upsertion(ADMIN, number, MIN_ITERATIONS, salt, salted)]
    )


def introduction(folder: SecureFolder, bootstrap: str, warn: Callable[[str], None]) -> list[str]:
    """The lines for people; writes the profile."""
    lines = []
    if folder.made:
        lines.append(f"Made {' and '.join(folder.made)}, in {folder.path}.")
    password = folder.passwords[ADMIN]
    if NEW_ADMIN in folder.made:
        lines.append(f"  user {ADMIN}, password {password} (shown this once)")
    else:
        lines.append(f"The password of {ADMIN} is in {folder.client_properties}.")
    try:
        name = write_profile(folder, bootstrap)
        lines.append(f"  ottla topic list --profile {name}")
    except ProfileError as error:
        warn(f"no profile was written: {error.message}")
    return lines


def write_profile(folder: SecureFolder, bootstrap: str) -> str:
    """Writes the profile of this folder, and returns its name; those of others stay. Raises
    ProfileError.
    """
    path = profiles_file()
    profiles = read_profiles(path)
    wanted = Profile(bootstrap, folder.client_settings())
    known = profiles.by_name
    name = own_profile(folder, known) or _free_name(known)
    if known.get(name) != wanted:
        known[name] = wanted
        write_profiles(path, profiles)
    return name


def own_profile(folder: SecureFolder, known: Mapping[str, Profile]) -> str | None:
    """The name of the profile of this folder, None if it has none."""
    authority = str(folder.authority)
    for name, each in known.items():
        is_its = each.client.get("ssl.ca.location") == authority
        if is_its and each.client.get("sasl.username") == ADMIN:
            return name
    return None


def _free_name(known: dict[str, Profile]) -> str:
    numbers = range(2, len(known) + 3)
    names = [PROFILE, *(f"{PROFILE}-{number}" for number in numbers)]
    return next(name for name in names if name not in known)
