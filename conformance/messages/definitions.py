"""The definitions of requests and responses inside the jar of Apache Kafka's clients.

They are JSON with comments of whole lines, `common/message/<Name>.json`. `versions` of a message or
a field is "3", "0-5", "3+" or "none".
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final
from zipfile import ZipFile

from components.apache_kafka import KafkaJars

_COMMENT: Final = re.compile(r"^\s*//.*$", re.MULTILINE)
_END: Final = 32_767
"""Of an open range."""


def range_of(versions: str) -> range:
    """The versions as a range; empty for "none"."""
    if versions == "none":
        return range(0)
    first, _, last = versions.partition("-")
    if versions.endswith("+"):
        return range(int(versions[:-1]), _END)
    return range(int(first), int(last or first) + 1)


@dataclass(frozen=True)
class Definition:
    """A request or a response, in all its versions."""

    content: dict[str, Any]

    @property
    def name(self) -> str:
        """For example "FetchRequest"."""
        return str(self.content["name"])

    @property
    def key(self) -> int:
        return int(self.content["apiKey"])

    @cached_property
    def versions(self) -> range:
        """Those that a client may use: an unstable one does not count."""
        found = range_of(self.content["validVersions"])
        return found[:-1] if self.content.get("latestVersionUnstable") else found

    @property
    def listeners(self) -> Sequence[str]:
        """Who answers the request: "broker", "controller"; empty if nobody does any more."""
        found: list[str] = self.content.get("listeners", [])
        return found

    def is_flexible(self, version: int) -> bool:
        return version in range_of(self.content["flexibleVersions"])


def read(jars: KafkaJars) -> dict[tuple[int, str], Definition]:
    """Each definition, by key and kind ("request" or "response")."""
    return read_from(next(jars.folder.glob("kafka-clients-*.jar")))


def read_from(jar: Path) -> dict[tuple[int, str], Definition]:
    """As `read`, of one jar."""
    found = {}
    with ZipFile(jar) as files:
        for name in files.namelist():
            if re.fullmatch(r"common/message/\w+(Request|Response)\.json", name):
                content = json.loads(_COMMENT.sub("", files.read(name).decode()))
                found[content["apiKey"], content["type"]] = Definition(content)
    return found
