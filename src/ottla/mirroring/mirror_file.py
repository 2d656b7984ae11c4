"""The file of a mirror (TOML): both clusters, and what is mirrored.

    source = "old"                  # a profile, or HOST:PORT
    target = "new"
    topics = ["orders-.*", "payments"]
    exclude = ["orders-test"]
    prefix = ""
    groups = [".*"]
    exclude_groups = []
    exclude_settings = ["retention.bytes"]
    replication_factor = 3
    into_existing = false
    acls = false
    name = "mirror"
    instance = "1"
    commit_every_s = 0.5
    refresh_every_s = 10

All keys are optional. Options of the command line come before them.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, NamedTuple

from ottla.mirroring.names import is_name
from ottla.mirroring.spec import (
    EXCLUDED_SETTINGS,
    MAX_COMMIT_EVERY_S,
    MAX_REFRESH_EVERY_S,
    MIN_COMMIT_EVERY_S,
    MIN_REFRESH_EVERY_S,
    MirrorSpec,
)
from ottla.wording.errors import ReportedError, unknown

TEXT: Final = "a text"
TEXTS: Final = "a list of texts"
KEYS: Final = {
    "source": TEXT,
    "target": TEXT,
    "topics": TEXTS,
    "exclude": TEXTS,
    "prefix": TEXT,
    "groups": TEXTS,
    "exclude_groups": TEXTS,
    "exclude_settings": TEXTS,
    "replication_factor": "a whole number from 1 to 32767",
    "into_existing": "true or false",
    "acls": "true or false",
    "name": TEXT,
    "instance": TEXT,
    "commit_every_s": f"a number from {MIN_COMMIT_EVERY_S:g} to {MAX_COMMIT_EVERY_S:g}",
    "refresh_every_s": f"a number from {MIN_REFRESH_EVERY_S:g} to {MAX_REFRESH_EVERY_S:g}",
}
BOUNDS: Final = {
    "replication_factor": (1, 2**15 - 1),
    "commit_every_s": (MIN_COMMIT_EVERY_S, MAX_COMMIT_EVERY_S),
    "refresh_every_s": (MIN_REFRESH_EVERY_S, MAX_REFRESH_EVERY_S),
}


class MirrorFileError(ReportedError):
    """The file, or an option with the same meaning, cannot be used."""

    is_usage = True


class MirrorFile(NamedTuple):
    """What the file says of the clusters, and the rest."""

    source: str | None
    target: str | None
    spec: MirrorSpec


def read_mirror_file(path: Path) -> dict[str, Any]:
    """The keys of the file, checked. Raises MirrorFileError."""
    try:
        with path.open("rb") as file:
            found = tomllib.load(file)
    except OSError as error:
        raise MirrorFileError(f"cannot read {path}: {error.strerror or error}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise MirrorFileError(f"{path} is not TOML: {error}.") from None
    for key, value in found.items():
        if key not in KEYS:
            hint = f"There are {', '.join(KEYS)}."
            raise unknown(MirrorFileError, "key", key, KEYS, hint)
        if not is_valid(key, value):
            raise MirrorFileError(f"{path}: {key} must be {KEYS[key]}, not {value!r}.")
    return found


def is_valid(key: str, value: object) -> bool:
    """Whether the value is of the key's kind."""
    kind = KEYS[key]
    if kind == TEXT:
        return isinstance(value, str)
    if kind == TEXTS:
        return isinstance(value, list) and all(isinstance(each, str) for each in value)
    if kind == "true or false":
        return isinstance(value, bool)
    numbers = int if key == "replication_factor" else (int, float)
    least, most = BOUNDS[key]
    return isinstance(value, numbers) and not isinstance(value, bool) and least <= value <= most


def mirror_of(keys: Mapping[str, Any]) -> MirrorFile:
    """The mirror that checked keys mean. Raises MirrorFileError."""
    rest: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value
        for key, value in keys.items()
        if key not in ("source", "target", "acls", "exclude_settings")
    }
    spec = MirrorSpec(**rest)
    for key, name in (("name", spec.name), ("instance", spec.instance)):
        if not is_name(name):
            raise MirrorFileError(
                f"{key} must have 1 to 100 letters, digits, dots, dashes and underscores, not "
                f"{name!r}."
            )
    spec = replace(
        spec,
        with_acls=keys.get("acls", False),
        exclude_settings=EXCLUDED_SETTINGS.union(keys.get("exclude_settings", ())),
    )
    return MirrorFile(keys.get("source"), keys.get("target"), spec)
