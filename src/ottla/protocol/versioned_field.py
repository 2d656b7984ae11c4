"""Typed access to fields that only some versions of a request have.

    RACK_ID = VersionedField(FETCH, "FetchRequest", "rack_id", "")
    rack = RACK_ID(request)  # a str, in every version

mypy does not see the misspelling in `getattr(request, "rakc_id", "")`. A test compares every
VersionedField with the message definitions.
"""

from typing import Any, Final, Generic, TypeVar

T = TypeVar("T")


class VersionedField(Generic[T]):
    """A field of a struct in the requests of one type; call it with a struct to get the value."""

    __slots__ = ("default", "key", "name", "struct")

    def __init__(self, key: int, struct: str, name: str, default: T) -> None:
        """`default` is the value in versions without the field."""
        self.key = key
        self.struct = struct
        self.name = name
        self.default = default
        DECLARED.append(self)

    def __call__(self, struct: Any) -> T:
        value: T = getattr(struct, self.name, self.default)
        return value


DECLARED: Final[list[VersionedField[Any]]] = []
"""All fields of this process, for the test."""
