"""`RegistrySettings`: how to reach a schema registry; settings have confluent-kafka's names."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from ottla.pipelines.errors import PipelineError

_URL: Final = "url"
# How often and how long a request is tried again, unless the settings have values of their own:
# four tries within about ten seconds.
_RETRIES: Final = {"max.retries": 3, "retries.wait.ms": 1_000, "retries.max.wait.ms": 4_000}
_NUMBERS: Final = (*_RETRIES, "timeout", "cache.capacity", "cache.latest.ttl.sec")


@dataclass(frozen=True, slots=True)
class RegistrySettings:
    """The URL of a registry and the settings of its client.

    `repr` and `str` leave out the values of the settings, and what the URL has before its host:
    both may be secret.
    """

    url: str
    settings: tuple[tuple[str, str], ...] = ()

    @property
    def shown(self) -> str:
        """The URL without user and password; of several, all."""
        return ",".join(_without_user(one) for one in self.url.split(","))

    def __repr__(self) -> str:
        names = "".join(f", {name}=..." for name, _ in self.settings)
        return f"RegistrySettings({self.shown}{names})"

    def given(self) -> dict[str, str]:
        """Return the settings as `read_registry` takes them."""
        return {_URL: self.url, **dict(self.settings)}

    def for_client(self) -> dict[str, Any]:
        """Return the configuration of confluent_kafka's SchemaRegistryClient."""
        given = {
            name: _number(name, value) if name in _NUMBERS else value
            for name, value in self.settings
        }
        return {_URL: self.url, **_RETRIES, **given}


def read_registry(registry: str | Mapping[str, Any]) -> RegistrySettings:
    """Check the argument `registry`: a URL, or settings with `url` among them.

    Raises PipelineError; no message has a value of a setting.
    """
    given = {_URL: registry} if isinstance(registry, str) else registry
    if not isinstance(given, Mapping) or not isinstance(given.get(_URL), str):
        raise PipelineError(
            "registry= takes a URL, such as 'http://localhost:8081', or a dict of settings with "
            "the url: {'url': ..., 'basic.auth.user.info': 'user:password'}"
        )
    url = given[_URL].strip()
    if not all(re.match(r"https?://[^/\s]+", one.strip()) for one in url.split(",")):
        raise PipelineError("registry= needs a URL with http:// or https:// in front of the host")
    settings = []
    for name, value in given.items():
        if name == _URL:
            continue
        if not isinstance(name, str) or isinstance(value, bool | Mapping):
            raise PipelineError(
                f"registry= has {name!r}, which is no setting with text or a number"
            )
        settings.append((name, str(value)))
    found = RegistrySettings(url, tuple(settings))
    found.for_client()
    return found


def _number(name: str, value: str) -> float:
    try:
        number = float(value)
    except ValueError:
        raise PipelineError(f"registry= has {name}, which must be a number") from None
    return int(number) if number.is_integer() else number


def _without_user(url: str) -> str:
    parts = urlsplit(url.strip())
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl().rstrip("/")
