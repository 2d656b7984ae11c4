"""The message classes of a request type in one version, imported when first needed.

To import all versions of a dozen request types costs 0.3 s and 34 MB; a client uses one of each.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from ottla.protocol import newer
from ottla.protocol.versions import APIS

if TYPE_CHECKING:
    from ottla.protocol.codec import Codec


@lru_cache(maxsize=1024)
def message_module(key: int, version: int, kind: str) -> ModuleType:
    """kio's module of one message, or ours; `kind` is "request" or "response"."""
    name = APIS[key].name
    if version in newer.VERSIONS.get(name, ()):
        return import_module(f"{newer.__name__}.{newer.module_name(name, version, kind)}")
    return import_module(f"kio.schema.{name}.v{version}.{kind}")


@lru_cache(maxsize=1024)
def message_class(key: int, version: int, kind: str) -> type:
    """The outermost class of a message, e.g. FetchRequest of version 12."""
    name = "".join(word.capitalize() for word in APIS[key].name.split("_")) + kind.capitalize()
    found: type = getattr(message_module(key, version, kind), name)
    return found


class Messages:
    """Builds messages of one request type in one version: `messages.FetchResponse(...)`.

    So that one handler serves every version, a field that this version lacks is dropped (if no
    version has it, it is misspelt, an assertion), and a missing field gets its default, or the zero
    value of its type.
    """

    def __init__(self, key: int, version: int, kind: str = "response") -> None:
        self.key, self.version, self.kind = key, version, kind

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("__"):
            raise AttributeError(name)
        cls = getattr(message_module(self.key, self.version, self.kind), name, None)
        build = self._absent(name) if cls is None else self._builder(name, _codec_of(cls))
        setattr(self, name, build)
        return build

    def _builder(self, name: str, codec: Codec) -> Callable[..., Any]:
        def drop(fields: dict[str, Any]) -> None:
            for field in fields:
                assert _some_version_has(self.key, self.kind, name, field), f"{name}.{field}"

        build: Callable[..., Any] = codec.builder(drop)
        return build

    def _absent(self, name: str) -> Callable[..., Any]:
        """A struct of other versions only: its value is dropped with its field."""
        assert _some_version_has(self.key, self.kind, name, None), name
        return lambda **values: None


@lru_cache(maxsize=1024)
def messages_of(key: int, version: int, kind: str = "response") -> Messages:
    """The (shared) builder of one request type's messages in one version."""
    return Messages(key, version, kind)


@lru_cache(maxsize=4096)
def _some_version_has(key: int, kind: str, name: str, field: str | None) -> bool:
    api = APIS[key]
    for version in range(api.max_version, api.min_version - 1, -1):
        try:
            cls = getattr(message_module(key, version, kind), name, None)
        except ModuleNotFoundError:
            continue
        if cls is not None and (field is None or field in _codec_of(cls).defaults):
            return True
    return False


def _codec_of(cls: type) -> Codec:
    # Imported late: help and completion build no message.
    from ottla.protocol.codec import codec_of

    return codec_of(cls)
