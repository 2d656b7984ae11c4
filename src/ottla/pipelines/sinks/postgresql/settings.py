"""How to reach a database: its URL, the user and the driver's settings. Pure.

The password is in no text: not in the name of the database, not in a plan, and the URL may not
have one. It is given to the driver when a connection is made, on the Spark driver alone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from ottla.pipelines.errors import PipelineError

EXAMPLE: Final = "jdbc:postgresql://localhost:5432/lake"

# Settings of PostgreSQL's driver; times in seconds. Without them a connection whose other side is
# gone, such as one that a firewall has dropped, would hold a batch for hours.
DEFAULTS: Final = {
    "ApplicationName": "ottla",
    "connectTimeout": "10",
    "loginTimeout": "30",
    "socketTimeout": "900",
    "tcpKeepAlive": "true",
}
_URL: Final = re.compile(r"(?:jdbc:)?postgresql://([^/?#@]*)/([^/?#]+)(?:\?(.*))?")
_IN_URL: Final = ("user", "password", "sslpassword")


@dataclass(frozen=True, slots=True)
class Database:
    """A database of PostgreSQL; `shown` is its URL without settings."""

    url: str
    shown: str
    user: str | None = None
    settings: tuple[tuple[str, str], ...] = ()
    password: str | None = field(default=None, repr=False)

    def properties(self) -> dict[str, str]:
        """Return the settings of a connection, those that are secret included."""
        found = DEFAULTS | dict(self.settings)
        if self.user is not None:
            found["user"] = self.user
        if self.password is not None:
            found["password"] = self.password
        return found


def read_database(
    url: object,
    user: str | None = None,
    password: str | None = None,
    settings: Mapping[str, Any] | None = None,
) -> Database:
    """Return the database of these arguments. Raises PipelineError, which quotes no secret."""
    match = _URL.fullmatch(url) if isinstance(url, str) else None
    if match is None:
        shown = f"{url!r}" if isinstance(url, str) and not re.search(r"[@?]", url) else "this URL"
        raise PipelineError(
            f"url: {shown} is not that of a PostgreSQL database; write {EXAMPLE!r}, with user and "
            "password beside it. Other databases have no upsert here"
        )
    host, name, parameters = match.groups()
    given = [part.partition("=")[0] for part in (parameters or "").split("&")]
    for secret in _IN_URL:
        if secret in given:
            raise PipelineError(
                f"url: it has {secret}=, and a URL is shown in logs: write {secret}= as "
                + ("an argument" if secret != "sslpassword" else "one of the settings")
            )
    chosen = {str(key): _text(key, value) for key, value in (settings or {}).items()}
    for name_of in ("user", "password"):
        if name_of in chosen:
            raise PipelineError(f"settings: write {name_of}= as an argument of its own")
    for argument, value in (("user", user), ("password", password)):
        if value is not None and not isinstance(value, str):
            raise PipelineError(f"{argument}: write a text, or None")
    query = f"?{parameters}" if parameters else ""
    shown = f"postgresql://{host}/{name}"
    return Database(f"jdbc:{shown}{query}", shown, user, tuple(chosen.items()), password)


def _text(name: Any, value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str | int | float):
        return str(value)
    raise PipelineError(
        f"settings: {name} is {type(value).__name__}; write a text, a number, true or false"
    )
