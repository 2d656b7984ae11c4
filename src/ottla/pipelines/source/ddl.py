"""Schemas in Spark's DDL, read without Spark: `read_ddl`. Pure.

Spark's own parser needs its JVM, which takes seconds to start, and minutes on a busy machine. This
one reads what schemas of topics are made of: fields with plain types, ARRAY, MAP and STRUCT, NOT
NULL and COMMENT (SqlBaseParser.g4: `colType`, `complexColType`, `dataType`). It refuses only what
no supported Spark reads. For all else it returns None: Spark decides.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from typing import Final

MAX_DEPTH: Final = 50

# The names of Spark 4.0 to 4.2, each with the name that Spark prints.
_NAMES: Final = {
    "boolean": "boolean",
    "tinyint": "tinyint",
    "byte": "tinyint",
    "smallint": "smallint",
    "short": "smallint",
    "int": "int",
    "integer": "int",
    "bigint": "bigint",
    "long": "bigint",
    "float": "float",
    "real": "float",
    "double": "double",
    "date": "date",
    "timestamp": "timestamp",
    "timestamp_ltz": "timestamp",
    "timestamp_ntz": "timestamp_ntz",
    "string": "string",
    "binary": "binary",
    "decimal": "decimal",
    "dec": "decimal",
    "numeric": "decimal",
    "array": "array",
    "map": "map",
    "struct": "struct",
}
# Types that Spark has and that need more grammar than this: Spark reads them.
_LEFT_TO_SPARK: Final = frozenset(
    {
        *("char", "character", "varchar", "void", "interval", "variant", "time", "geometry"),
        *("geography", "object", "set", "null"),
    }
)
_MAX_PRECISION: Final = 38
_TOKEN: Final = re.compile(
    r"""\s*(?:
    (?P<word>\w+) | `(?P<quoted>(?:[^`]|``)+)` |
    (?P<text>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*") | (?P<mark>[<>(),:])
    )""",
    re.VERBOSE,
)


class DdlError(Exception):
    """No supported Spark reads this schema; the message says where it ends to be one."""


class _LeftToSparkError(Exception):
    """The schema has something that only Spark can judge."""


@dataclass(frozen=True, slots=True)
class Field:
    """One field of an object."""

    name: str
    kind: Kind
    nullable: bool = True


@dataclass(frozen=True, slots=True)
class Kind:
    """A type by Spark's name; `fields` are those of a struct, the element of an array ("element"),
    or "key" and "value" of a map.
    """

    name: str
    fields: tuple[Field, ...] = ()
    precision: int = 10
    scale: int = 0

    def text(self) -> str:
        """Return it as Spark's `simpleString`."""
        if self.name == "decimal":
            return f"decimal({self.precision},{self.scale})"
        if self.name == "struct":
            return f"struct<{','.join(f'{one.name}:{one.kind.text()}' for one in self.fields)}>"
        if self.fields:
            return f"{self.name}<{','.join(one.kind.text() for one in self.fields)}>"
        return self.name


def read_ddl(text: str) -> Kind | None:
    """Return the type of a schema: a struct for fields. None where only Spark can tell.

    Raises DdlError.
    """
    try:
        return _Reader(_tokens(text)).schema()
    except _LeftToSparkError:
        return None


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str


def _tokens(text: str) -> list[_Token]:
    found = []
    position, end = 0, len(text.rstrip())
    while position < end:
        match = _TOKEN.match(text, position)
        if match is None or match.lastgroup is None:
            raise _LeftToSparkError
        found.append(_Token(match.lastgroup, match[match.lastgroup]))
        position = match.end()
    return found


class _Reader:
    """Goes through the tokens once."""

    def __init__(self, tokens: list[_Token]) -> None:
        self._tokens = tokens
        self._at = 0
        self._depth = 0

    def schema(self) -> Kind:
        if not self._tokens:
            raise DdlError("it is empty")
        second = self._tokens[1] if len(self._tokens) > 1 else None
        is_word = self._tokens[0].kind == "word"
        if is_word and (second is None or (second.kind == "mark" and second.text in "<(")):
            kind = self._kind()
        elif is_word and self._tokens[0].text.lower() in _LEFT_TO_SPARK:
            raise _LeftToSparkError
        else:
            kind = self._struct(None)
        if self._at < len(self._tokens):
            raise DdlError(f"{self._tokens[self._at].text!r} is too much")
        return kind

    def _struct(self, end: str | None) -> Kind:
        fields: list[Field] = []
        if end is not None and self._take(end):
            return Kind("struct")
        while True:
            fields.append(self._field())
            if self._take(","):
                continue
            if end is None:
                if self._at < len(self._tokens) and self._tokens[self._at].kind != "mark":
                    self._unknown_word(fields[-1].name)
                break
            self._expect(end, f"after the field {fields[-1].name}")
            break
        return Kind("struct", tuple(fields))

    def _unknown_word(self, field: str) -> None:
        token = self._tokens[self._at]
        if token.kind == "word" and token.text.lower() in _CLAUSES:
            raise _LeftToSparkError
        raise DdlError(f"a comma is missing after the field {field}, before {token.text!r}")

    def _field(self) -> Field:
        token = self._next("a field")
        if token.kind not in ("word", "quoted"):
            raise DdlError(f"a field's name is missing before {token.text!r}")
        name = token.text.replace("``", "`") if token.kind == "quoted" else token.text
        self._take(":")
        if self._at == len(self._tokens) or self._tokens[self._at].text in (",", ">"):
            raise DdlError(f"the field {name} has no type")
        kind = self._kind()
        nullable = True
        if self._take_word("not"):
            if not self._take_word("null"):
                raise DdlError(f"NULL is missing after NOT in the field {name}")
            nullable = False
        if self._take_word("comment"):
            comment = self._next("the comment")
            if comment.kind != "text":
                raise DdlError(f"the comment of the field {name} is no text in quotes")
        if self._at < len(self._tokens) and self._tokens[self._at].text.lower() in _CLAUSES:
            raise _LeftToSparkError
        return Field(name, kind, nullable)

    def _kind(self) -> Kind:
        token = self._next("a type")
        if token.kind != "word":
            raise DdlError(f"a type is missing before {token.text!r}")
        word = token.text.lower()
        if word in _LEFT_TO_SPARK:
            raise _LeftToSparkError
        name = _NAMES.get(word)
        if name is None:
            near = difflib.get_close_matches(word, _NAMES, n=1)
            hint = f"; did you mean {near[0].upper()}?" if near else ""
            raise DdlError(f"{token.text} is no type{hint}")
        if name in ("array", "map", "struct"):
            return self._nested(name)
        if name == "decimal" and self._take("("):
            return self._decimal()
        if self._at < len(self._tokens) and self._tokens[self._at].text.lower() in ("(", "collate"):
            raise _LeftToSparkError
        return Kind(name)

    def _nested(self, name: str) -> Kind:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise _LeftToSparkError
        self._expect("<", f"after {name.upper()}")
        if name == "struct":
            kind = self._struct(">")
        else:
            parts = [Field("element" if name == "array" else "key", self._kind())]
            if name == "map":
                self._expect(",", "between the types of MAP")
                parts.append(Field("value", self._kind()))
            self._expect(">", f"at the end of {name.upper()}")
            kind = Kind(name, tuple(parts))
        self._depth -= 1
        return kind

    def _decimal(self) -> Kind:
        digits = [self._next("the precision of DECIMAL").text]
        if self._take(","):
            digits.append(self._next("the scale of DECIMAL").text)
        self._expect(")", "at the end of DECIMAL")
        if not all(one.isdecimal() for one in digits):
            raise _LeftToSparkError
        precision, scale = int(digits[0]), int(digits[1]) if len(digits) > 1 else 0
        if precision > _MAX_PRECISION or scale > precision:
            raise _LeftToSparkError
        return Kind("decimal", (), precision, scale)

    def _next(self, what: str) -> _Token:
        if self._at == len(self._tokens):
            raise DdlError(f"{what} is missing at its end")
        self._at += 1
        return self._tokens[self._at - 1]

    def _take(self, mark: str) -> bool:
        if self._at < len(self._tokens) and self._tokens[self._at] == _Token("mark", mark):
            self._at += 1
            return True
        return False

    def _take_word(self, word: str) -> bool:
        token = self._tokens[self._at] if self._at < len(self._tokens) else None
        if token is not None and token.kind == "word" and token.text.lower() == word:
            self._at += 1
            return True
        return False

    def _expect(self, mark: str, where: str) -> None:
        if not self._take(mark):
            raise DdlError(f"{mark!r} is missing {where}")


# What may follow a field's type in a table's schema, and means nothing for a topic's.
_CLAUSES: Final = frozenset({"default", "generated", "collate", "not", "comment", "mask"})
