"""The credentials of users for SCRAM, as Kafka stores them with the settings of a user (KIP-554).

    /config/users/alice    {"version": 1, "config": {"SCRAM-SHA-256":
                           "salt=c2Fs...,stored_key=...,server_key=...,iterations=4096"}}

The same node has the quotas of the user. As Kafka's ScramControlManager.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from binascii import Error
from collections import Counter
from collections.abc import Sequence
from typing import Final, NamedTuple

from ottla.controller import layout
from ottla.controller.config_changes import check_size, config_write, next_version
from ottla.controller.image import ClusterImage, ConfigImage, UserConfigChanged
from ottla.controller.plan import DONE, Outcome, PlanBuilder, Step, Steps, refused
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.security.sasl.scram import (
    MAX_ITERATIONS,
    MIN_ITERATIONS,
    ScramCredential,
    credential_of,
)

MECHANISMS: Final = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}
"""As numbered in the protocol."""
MAX_NAME_CHARACTERS: Final = 1_000
"""Of a user's name; it is the name of a node, and in every broker's memory."""
MAX_SALT_BYTES: Final = 1_024
CHANGE_US: Final = 100
_FIELDS: Final = ("salt", "stored_key", "server_key", "iterations")


class Deletion(NamedTuple):
    """A user shall no longer log in with a mechanism."""

    user: str
    mechanism: int


class Upsertion(NamedTuple):
    """A user shall have this password for a mechanism."""

    user: str
    mechanism: int
    iterations: int
    salt: bytes
    salted_password: bytes


class UserOutcome(NamedTuple):
    """What became of the changes to one user."""

    user: str
    outcome: Outcome


def write_credential(credential: ScramCredential) -> str:
    """As Kafka's ScramCredentialUtils.credentialToString."""
    salt, stored, server = (b64encode(each).decode() for each in credential[:3])
    return f"salt={salt},stored_key={stored},server_key={server},iterations={credential.iterations}"


def read_credential(text: str) -> ScramCredential | None:
    """The inverse of `write_credential`; None for what is none."""
    found = dict(part.partition("=")[::2] for part in text.split(","))
    if set(found) != set(_FIELDS):
        return None
    try:
        salt, stored, server = (b64decode(found[name], validate=True) for name in _FIELDS[:3])
        return ScramCredential(salt, stored, server, int(found["iterations"]))
    except (Error, ValueError):
        return None


def credential(image: ClusterImage, mechanism: str, user: str) -> ScramCredential | None:
    """What the cluster keeps of a user's password."""
    config = image.users.get(user)
    text = None if config is None else config.values.get(mechanism)
    return None if text is None else read_credential(text)


def iterations_of(config: ConfigImage) -> dict[int, int]:
    """The mechanisms for which a user has a password, by number, with the iterations."""
    found = {number: config.values.get(name) for number, name in MECHANISMS.items()}
    read = {number: read_credential(text) for number, text in found.items() if text is not None}
    return {number: each.iterations for number, each in read.items() if each is not None}


def alter_credentials(
    deletions: Sequence[Deletion], upsertions: Sequence[Upsertion], image: ClusterImage
) -> Steps[tuple[UserOutcome, ...]]:
    """Make the valid changes; a user may be named once."""
    builder, step = PlanBuilder(), Step()
    results: list[UserOutcome] = []
    changes: list[Deletion | Upsertion] = [*deletions, *upsertions]
    counts = Counter(each.user for each in changes)
    for change in changes:
        if step.is_full(CHANGE_US):
            yield
        if counts[change.user] == 0:
            continue  # it has had its answer
        try:
            if counts[change.user] > 1:
                raise ApiError(
                    ErrorCode.duplicate_resource,
                    "A user credential cannot be altered twice in the same request",
                )
            _alter(builder, change, image)
        except ApiError as error:
            outcome = refused(error)
        else:
            outcome = DONE
        counts[change.user] = 0
        results.append(UserOutcome(change.user, outcome))
    return builder.plan(tuple(results))


def _alter(builder: PlanBuilder, change: Deletion | Upsertion, image: ClusterImage) -> None:
    """Raises ApiError."""
    mechanism = MECHANISMS.get(change.mechanism)
    if not change.user:
        raise _unacceptable("Username must not be empty")
    if len(change.user) > MAX_NAME_CHARACTERS:
        raise _unacceptable(f"Username must not have more than {MAX_NAME_CHARACTERS} characters")
    if mechanism is None:
        raise ApiError(ErrorCode.unsupported_sasl_mechanism, "Unknown SCRAM mechanism")
    present = image.users.get(change.user, ConfigImage({}, None))
    values = dict(present.values)
    if isinstance(change, Deletion):
        if mechanism not in values:
            raise ApiError(
                ErrorCode.resource_not_found,
                "Attempt to delete a user credential that does not exist",
            )
        del values[mechanism]
    else:
        _check(change)
        values[mechanism] = write_credential(
            credential_of(mechanism, change.salted_password, change.salt, change.iterations)
        )
    check_size(values, present.values)
    path = layout.user_config_path(change.user)
    builder.writes.append(config_write(path, values, present.version))
    changed = ConfigImage(values, next_version(present.version))
    builder.deltas.append(UserConfigChanged(change.user, changed))


def _check(change: Upsertion) -> None:
    if change.iterations < MIN_ITERATIONS:
        raise _unacceptable("Too few iterations")
    if change.iterations > MAX_ITERATIONS:
        raise _unacceptable("Too many iterations")
    if len(change.salt) > MAX_SALT_BYTES:
        raise _unacceptable(f"A salt must not have more than {MAX_SALT_BYTES} bytes")


def _unacceptable(message: str) -> ApiError:
    return ApiError(ErrorCode.unacceptable_credential, message)
