"""The file of profiles: how to reach each of several clusters.

`$XDG_CONFIG_HOME/ottla/profiles.toml` (by default below `~/.config`), or the file that
OTTLA_PROFILES names:

    current = "prod"

    [profiles.prod]
    bootstrap = "broker1:9093,broker2:9093"
    registry = "http://registry:8081"

    [profiles.prod.client]
    "security.protocol" = "SASL_SSL"
    "sasl.password" = "..."

It may be edited by hand; the commands write it whole, so comments are lost. It is written under
another name and renamed, with mode 600, so that a crash leaves the old file, and nobody else reads
the passwords. A file with passwords that others may read is refused.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from ottla.wording.errors import ReportedError, unknown

FILE_VARIABLE: Final = "OTTLA_PROFILES"
NAME_VARIABLE: Final = "OTTLA_PROFILE"
MODE: Final = 0o600
SECRET_WORDS: Final = ("password", "secret", "key.pem", "jaas", "token")
LIST_HINT: Final = "To list all profiles: ottla profile list"


class ProfileError(ReportedError):
    """The file of profiles cannot be used, or a profile does not exist."""


@dataclass(frozen=True, slots=True)
class Profile:
    """A cluster's addresses, librdkafka's settings for it, and the address of its schema registry,
    which may have a user and a password.
    """

    bootstrap: str
    client: Mapping[str, str] = field(default_factory=dict)
    registry: str = ""

    @property
    def has_secrets(self) -> bool:
        return "@" in self.registry or any(map(is_secret, self.client))


@dataclass(slots=True)
class Profiles:
    """All profiles, and the one that is used unless a command names another."""

    by_name: dict[str, Profile] = field(default_factory=dict)
    current: str | None = None

    def find(self, name: str) -> Profile:
        """Raises ProfileError for a profile that does not exist."""
        if name not in self.by_name:
            raise unknown(ProfileError, "profile", name, self.by_name, LIST_HINT)
        return self.by_name[name]


def profiles_file() -> Path:
    """Where the profiles are. The file may not exist."""
    named = os.environ.get(FILE_VARIABLE)
    if named:
        return Path(named)
    base = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(base) / "ottla" / "profiles.toml"


def is_secret(setting: str) -> bool:
    """Whether the value of this setting must not be shown."""
    return any(word in setting for word in SECRET_WORDS)


def read_profiles(path: Path) -> Profiles:
    """The profiles in the file, none if it does not exist. Raises ProfileError."""
    # Imported late: most users have no profiles.
    import tomllib

    try:
        with path.open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            document = tomllib.load(file)
    except FileNotFoundError:
        return Profiles()
    except OSError as error:
        raise ProfileError(f"cannot read {path}: {error.strerror or error}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ProfileError(f"{path} is not TOML: {error}.") from None
    found = _profiles(path, document)
    if any(each.has_secrets for each in found.by_name.values()) and mode & (
        stat.S_IRWXG | stat.S_IRWXO
    ):
        raise ProfileError(
            f"{path} has passwords and may be read by others.", f"To correct it: chmod 600 {path}"
        )
    return found


def _profiles(path: Path, document: Mapping[str, Any]) -> Profiles:
    """The parsed file. Raises ProfileError for what it must not contain."""
    for name in document:
        if name not in ("current", "profiles"):
            raise ProfileError(f"{path}: {name!r} is not known; there are current and profiles.")
    tables, current = document.get("profiles", {}), document.get("current")
    if not isinstance(tables, dict) or not isinstance(current, str | None):
        raise ProfileError(f"{path}: current must be a name, and profiles a table of tables.")
    found = Profiles(current=current)
    for name, table in tables.items():
        given = table if isinstance(table, dict) else {}
        bootstrap, client = given.get("bootstrap"), given.get("client", {})
        registry = given.get("registry", "")
        others = given.keys() - {"bootstrap", "client", "registry"}
        is_wrong = others or not isinstance(client, dict) or not isinstance(registry, str)
        if not isinstance(bootstrap, str) or is_wrong:
            raise ProfileError(
                f"{path}: profile {name!r} must have bootstrap, and may have registry and client."
            )
        for setting, value in client.items():
            if isinstance(value, dict | list):
                raise ProfileError(
                    f"{path}: the setting {setting!r} of profile {name!r} has no plain value.",
                    f'Names with dots are quoted: "{setting}.x" = "..."',
                )
        texts = {setting: _text(value) for setting, value in client.items()}
        found.by_name[name] = Profile(bootstrap, texts, registry)
    if current is not None and current not in found.by_name:
        raise ProfileError(f"{path}: the current profile {current!r} does not exist.", LIST_HINT)
    return found


def _text(value: Any) -> str:
    """As librdkafka reads it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def write_profiles(path: Path, profiles: Profiles) -> None:
    """Replace the file. Raises ProfileError."""
    lines = []
    if profiles.current is not None:
        lines += [f"current = {_quoted(profiles.current)}", ""]
    for name, profile in sorted(profiles.by_name.items()):
        lines += [f"[profiles.{_quoted(name)}]", f"bootstrap = {_quoted(profile.bootstrap)}"]
        if profile.registry:
            lines.append(f"registry = {_quoted(profile.registry)}")
        lines.append("")
        if profile.client:
            lines.append(f"[profiles.{_quoted(name)}.client]")
            lines += [
                f"{_quoted(setting)} = {_quoted(value)}"
                for setting, value in sorted(profile.client.items())
            ]
            lines.append("")
    part = path.with_name(f"{path.name}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part.unlink(missing_ok=True)
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, MODE)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write("\n".join(lines))
        os.replace(part, path)
    except OSError as error:
        raise ProfileError(f"cannot write {path}: {error.strerror or error}.") from None


def _quoted(text: str) -> str:
    """A basic string of TOML: JSON's escapes, and DEL, which TOML wants escaped too."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
