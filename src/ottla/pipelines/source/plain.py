"""Plain texts: JSON objects that a regular expression proves to need no closer look. Pure.

Text behind an object, values that the parser changed and fields that the schema lacks each take one
more parse to find, and few texts have any.

A plain text is one object with nothing behind it. Its objects have fields of the schema alone, at
every depth, and its values have forms that Spark's parser does not change (`forms`). The expression
proves that of a text that is JSON, which from_json tells: so it does not care for commas and the
like. A text in another form is not wrong, only looked at more closely.

Most producers write all fields in one order with the same spaces. For them the expression is a
chain of literals and values, which takes a third of the time of a JSON parser. Its last alternative
takes the fields in any order.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from ottla.pipelines.source.ddl import Kind
from ottla.pipelines.source.forms import form_of
from ottla.pipelines.source.surrogates import HALF, PAIR

MAX_FIELDS: Final = 300
"""At every depth together: Java's regular expressions call themselves for each."""
MAX_TRIES: Final = 500
"""So many names are tried for the fields of one object in another order than the schema's."""

_SPACES: Final = r"[ \t\r\n]*"
_COLON: Final = r"[ \t\r\n:]*"
_COMMA: Final = r"[ \t\r\n,]*"
_ESCAPE: Final = rf"\\(?:{PAIR}|(?!{HALF}).)"
_TEXT: Final = rf'"[^"\\]*(?:{_ESCAPE}[^"\\]*)*+"'
# A number, null, true or false: nothing else that a parser takes has none of these characters.
_WORD: Final = r"""[^",:\[\]{}'\\ \t\r\n]+"""
_END: Final = r"(?![\s\S])"
_ESCAPED: Final = re.compile(r'[\x00-\x1f"\\]')
"""JSON writes these in a name in another way."""
_WORDS: Final = ("boolean", "smallint", "int", "bigint")


class _Writing(NamedTuple):
    """What is between name and value, and between two fields."""

    colon: str
    comma: str


_ONE_ORDER: Final = (_Writing(":", ","), _Writing(": ", ", "))


def plain(kind: Kind) -> str | None:
    """Return the expression that finds a plain text of an object; None: it would be too large."""
    if _count(kind) > MAX_FIELDS:
        return None
    objects = [_object(kind, writing) for writing in (*_ONE_ORDER, None)]
    return rf"^{_SPACES}(?:{'|'.join(objects)}){_SPACES}{_END}"


def _count(kind: Kind) -> int:
    return sum(1 + _count(field.kind) for field in kind.fields)


def _object(kind: Kind, writing: _Writing | None) -> str:
    """Return the form of an object; `writing` None: with fields in any order."""
    colon = _COLON if writing is None else writing.colon
    fields = [
        f'"{re.escape(field.name)}"{colon}{_value(field.kind, writing)}'
        for field in kind.fields
        if not _ESCAPED.search(field.name)
    ]
    if writing is not None:
        return rf"\{{{writing.comma.join(fields)}\}}"
    times = max(2, MAX_TRIES // max(1, len(fields)))
    passes = "".join(f"(?:{field}{_COMMA})?+" for field in fields)
    return rf'\{{{_SPACES}(?:(?="){passes}){{0,{times}}}+\}}'


def _value(kind: Kind, writing: _Writing | None) -> str:
    """Return the form of a value, null included."""
    if kind.name == "struct":
        return f"(?:{_object(kind, writing)}|null)"
    if kind.name == "array":
        return _many(r"\[", _value(kind.fields[0].kind, writing), r"\]")
    if kind.name == "map":
        return _many(r"\{", f"{_TEXT}{_COLON}{_value(kind.fields[1].kind, writing)}", r"\}")
    return form_of(kind) or (_WORD if kind.name in _WORDS else f"(?:{_TEXT}|{_WORD})")


def _many(begin: str, one: str, end: str) -> str:
    return rf"(?:{begin}{_SPACES}(?:{one}{_COMMA})*+{end}|null)"
