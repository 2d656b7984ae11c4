"""Writes the classes of one message in one version, as kio's generated modules have them.

Only what `ottla.protocol.codec` reads of kio's classes: names, types, tags and defaults.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from conformance.messages.definitions import Definition, range_of

_PYTHON: Final = {
    "bool": "bool",
    "int8": "int",
    "int16": "int",
    "uint16": "int",
    "int32": "int",
    "int64": "int",
    "float64": "float",
    "string": "str",
    "bytes": "bytes",
    "records": "bytes",
    "uuid": "UUID | None",
}
_HEADER: Final = '''"""{name}, version {version}.

Written by `python -m conformance.messages --write`.
"""

from dataclasses import dataclass, field
from typing import ClassVar
{uuid}
from kio.static.constants import EntityType
{error_code}'''
_UUID: Final = "from uuid import UUID\n"
_ERROR_CODE: Final = "\nfrom ottla.protocol.newer.error_code import ErrorCode\n"


def snake_case(name: str) -> str:
    """ "ApiVersions" as "api_versions"."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def source_of(definition: Definition, version: int) -> str:
    """The module of one message."""
    classes = "".join(_Classes(definition, version).lines())
    uuid = _UUID if "UUID" in classes else ""
    error_code = _ERROR_CODE if "ErrorCode" in classes else ""
    header = _HEADER.format(name=definition.name, version=version, uuid=uuid, error_code=error_code)
    return header + classes


class _Classes:
    def __init__(self, definition: Definition, version: int) -> None:
        self._definition, self._version = definition, version
        self._common = {
            each["name"]: each["fields"] for each in definition.content.get("commonStructs", ())
        }
        self._written: set[str] = set()

    def lines(self) -> Iterator[str]:
        content = self._definition.content
        yield from self._struct(self._definition.name, content["fields"], content["type"])

    def _struct(self, name: str, fields: list[dict[str, Any]], kind: str) -> Iterator[str]:
        """The structs that it has, each once, and then itself."""
        if name in self._written:
            return
        self._written.add(name)
        present = [each for each in fields if self._version in range_of(each["versions"])]
        for each in present:
            inner = _element(each)
            if inner not in _PYTHON:
                yield from self._struct(inner, each.get("fields") or self._common[inner], "nested")
        yield "\n\n@dataclass(frozen=True, slots=True, kw_only=True)\n"
        yield f"class {name}:\n"
        yield f"    __type__: ClassVar = EntityType.{kind}\n"
        yield f"    __version__: ClassVar[int] = {self._version}\n"
        yield f"    __flexible__: ClassVar[bool] = {self._definition.is_flexible(self._version)}\n"
        yield f"    __api_key__: ClassVar[int] = {self._definition.key}\n"
        yield from (f"    {self._field(each)}\n" for each in present)

    def _field(self, field: dict[str, Any]) -> str:
        name, element = snake_case(field["name"]), _element(field)
        kafka_type = element if element in _PYTHON else None
        annotation = _PYTHON.get(element, element)
        if name == "error_code":
            annotation, kafka_type = "ErrorCode", "error_code"
        elif name.endswith("_ms") and element in ("int32", "int64"):
            name, kafka_type = name.removesuffix("_ms"), f"timedelta_i{element[3:]}"
        if field["type"].startswith("[]"):
            annotation = f"tuple[{annotation}, ...]"
        null_allowed = self._version in range_of(field.get("nullableVersions", "none"))
        if null_allowed:
            annotation += " | None"
        metadata: dict[str, Any] = {} if kafka_type is None else {"kafka_type": kafka_type}
        is_tagged = self._version in range_of(field.get("taggedVersions", "none"))
        if is_tagged:
            metadata["tag"] = field["tag"]
        default = _default(field, null_allowed=null_allowed)
        if default is None and is_tagged and field["type"].startswith("[]"):
            default = "()"
        text = ", ".join(f'"{key}": {_literal(value)}' for key, value in metadata.items())
        if not metadata:
            return f"{name}: {annotation}" + ("" if default is None else f" = {default}")
        tail = "" if default is None else f", default={default}"
        return f"{name}: {annotation} = field(metadata={{{text}}}{tail})"


def _literal(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value)


def _element(field: dict[str, Any]) -> str:
    return str(field["type"]).removeprefix("[]")


def _default(field: dict[str, Any], *, null_allowed: bool) -> str | None:
    """The default in Python; None: the definition has none."""
    given, element = field.get("default"), _element(field)
    if given is None:
        return None
    if given == "null":
        assert null_allowed, field
        return "None"
    if element == "bool":
        return str(str(given).lower() == "true")
    return f'"{given}"' if element == "string" else str(given)
