"""Defines each setting once: name, type, default, check and documentation, as a typed attribute.

    class LogSettings(Settings):
        num_partitions = integer("num.partitions", 1, "Partitions of a new topic.", at_least(1))

`LogSettings.num_partitions` is the Setting, `settings.num_partitions` is an int. A Setting is a
non-data descriptor: values are stored in the instance's dictionary, so that reading one costs no
more than any attribute.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Self, TypeVar, cast, overload

from ottla.config.validator import Validator
from ottla.config.value import ConfigType, Value, parse_value, value_text

T = TypeVar("T")


class Update(enum.Enum):
    """Whether a broker setting can change at runtime, and at which level (KIP-226)."""

    READ_ONLY = "read-only"
    PER_BROKER = "per-broker"
    CLUSTER_WIDE = "cluster-wide"


@dataclass(frozen=True, eq=False)
class Setting(Generic[T]):
    """The definition of a setting with values of type `T`."""

    name: str
    kind: ConfigType
    default: T
    documentation: str
    validator: Validator | None = None
    update: Update = Update.READ_ONLY
    kafka_default: str | None = None
    """Kafka's default as text, only if ours differs."""
    why: str = ""
    """Why our default differs."""
    internal: bool = False
    """Accepted, but not described (like Kafka's internal settings)."""

    @overload
    def __get__(self, instance: None, owner: type[Settings]) -> Setting[T]: ...
    @overload
    def __get__(self, instance: Settings, owner: type[Settings]) -> T: ...
    def __get__(self, instance: Settings | None, owner: type[Settings]) -> Setting[T] | T:
        assert instance is None, f"{self.name} was not loaded"
        return self

    @property
    def sensitive(self) -> bool:
        """Whether the value must never be shown."""
        return self.kind is ConfigType.PASSWORD

    @property
    def default_text(self) -> str | None:
        """The default as Kafka shows it."""
        return value_text(cast(Value, self.default))

    def parse(self, text: str) -> T:
        """The value of `text`. Raises ConfigError."""
        value = parse_value(self.name, self.kind, text)
        if self.validator is not None:
            self.validator.check(self.name, value)
        return cast(T, value)


class Settings:
    """A group of settings as typed attributes. Groups are combined by inheritance."""

    definitions: ClassVar[Mapping[str, Setting[Any]]] = {}
    _attributes: ClassVar[Mapping[str, str]] = {}

    def __init_subclass__(cls) -> None:
        found: dict[str, Setting[Any]] = {}
        attributes: dict[str, str] = {}
        for base in reversed(cls.__mro__):
            for attribute, member in vars(base).items():
                if isinstance(member, Setting):
                    assert attribute == member.name.replace(".", "_"), member.name
                    found[member.name] = member
                    attributes[member.name] = attribute
        cls.definitions = found
        cls._attributes = attributes

    def load(self, given: Mapping[str, str]) -> Self:
        """Set every attribute: from the text given for its name, or else to its default."""
        for name, definition in self.definitions.items():
            text = given.get(name)
            value = definition.default if text is None else definition.parse(text)
            self.__dict__[self._attributes[name]] = value
        return self

    def value(self, name: str) -> Value:
        """The current value of the setting with that name. Raises KeyError if there is none."""
        return cast(Value, self.__dict__[self._attributes[name]])

    def text(self, name: str) -> str | None:
        """The current value as text, as Kafka shows it."""
        return value_text(self.value(name))

    def __iter__(self) -> Iterator[str]:
        return iter(self.definitions)


def boolean(name: str, default: bool, doc: str, **more: Any) -> Setting[bool]:
    """A setting that is true or false."""
    return Setting(name, ConfigType.BOOLEAN, default, doc, **more)


def integer(
    name: str, default: int, doc: str, check: Validator | None = None, **more: Any
) -> Setting[int]:
    """A 32-bit number."""
    return Setting(name, ConfigType.INT, default, doc, check, **more)


def short(
    name: str, default: int, doc: str, check: Validator | None = None, **more: Any
) -> Setting[int]:
    """A 16-bit number."""
    return Setting(name, ConfigType.SHORT, default, doc, check, **more)


def long(
    name: str, default: int, doc: str, check: Validator | None = None, **more: Any
) -> Setting[int]:
    """A 64-bit number."""
    return Setting(name, ConfigType.LONG, default, doc, check, **more)


def optional_integer(
    name: str, doc: str, check: Validator | None = None, **more: Any
) -> Setting[int | None]:
    """A 32-bit number without a default."""
    return Setting(name, ConfigType.INT, None, doc, check, **more)


def optional_long(
    name: str, doc: str, check: Validator | None = None, **more: Any
) -> Setting[int | None]:
    """A 64-bit number without a default."""
    return Setting(name, ConfigType.LONG, None, doc, check, **more)


def double(
    name: str, default: float, doc: str, check: Validator | None = None, **more: Any
) -> Setting[float]:
    """A floating-point number."""
    return Setting(name, ConfigType.DOUBLE, default, doc, check, **more)


def string(
    name: str, default: str, doc: str, check: Validator | None = None, **more: Any
) -> Setting[str]:
    """A text."""
    return Setting(name, ConfigType.STRING, default, doc, check, **more)


def optional_string(
    name: str, doc: str, check: Validator | None = None, **more: Any
) -> Setting[str | None]:
    """A text without a default."""
    return Setting(name, ConfigType.STRING, None, doc, check, **more)


def optional_password(name: str, doc: str, **more: Any) -> Setting[str | None]:
    """A secret without a default; it is never shown."""
    return Setting(name, ConfigType.PASSWORD, None, doc, **more)


def words(
    name: str, default: tuple[str, ...], doc: str, check: Validator | None = None, **more: Any
) -> Setting[tuple[str, ...]]:
    """A list, separated by commas."""
    return Setting(name, ConfigType.LIST, default, doc, check, **more)


def optional_words(
    name: str, doc: str, check: Validator | None = None, **more: Any
) -> Setting[tuple[str, ...] | None]:
    """A list without a default."""
    return Setting(name, ConfigType.LIST, None, doc, check, **more)
