"""The usual forms of values in JSON, and a regular expression that finds others. Pure.

Spark's parser changes some decimals and times in silence (`changed`). To look for them takes one
more parse of the text. Most texts do not need it: in these, whatever stands behind the name of such
a field has the usual form of its type, wherever in the text that is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from ottla.pipelines.source.ddl import Kind

_SPACE: Final = r"[ \t\r\n]*+"
_TEXT: Final = r'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
ENDS: Final = r"(?=[ \t\r\n,}\]])"
_DATE: Final = r"[+-]?[0-9]{4,6}-[0-9]{1,2}-[0-9]{1,2}"
_TIME: Final = r"[ T][0-9]{1,2}:[0-9]{1,2}"
# JSON may write the letters of other names in another way.
_PLAIN_NAME: Final = re.compile(r"[ !#-.0-\[\]-~]+")

DATE_FORM: Final = rf" *{_DATE} *"
TIMESTAMP_FORM: Final = rf' *{_DATE}(?:{_TIME}[^"\\]*| *)'
NO_ZONE_FORM: Final = rf" *{_DATE}(?:{_TIME}(?::[0-9]{{1,2}}(?:\.[0-9]*)?)?)? *"
"""What a date, a timestamp and one without a zone are as text, without quotes."""

_TEXTS: Final = {"timestamp": TIMESTAMP_FORM, "timestamp_ntz": NO_ZONE_FORM, "date": DATE_FORM}

HIDING: Final = ("\\u00", "'")
"""A text that has neither of these writes each plain name in the usual way."""
MAX_EXPRESSIONS: Final = 8
"""Fields of more names are looked for together."""


def decimal_form(kind: Kind) -> str:
    """Return what a decimal is that keeps all its digits, as text or number."""
    return rf"-?[0-9]++(?:\.[0-9]{{0,{kind.scale}}}0*+)?"


def unusual(kind: Kind) -> list[str] | None:
    """Return expressions that find a value in no usual form; None: no type needs that.

    One of them finds it, and each may find more. Text with HIDING may hide some. Each begins with
    letters, and is one of many: a search that has some to look for skips most of a text.
    """
    forms: dict[str, list[str]] = {}
    for name, form in _named(kind):
        if not _PLAIN_NAME.fullmatch(name):
            return [""]
        forms.setdefault(name, []).append(form)
    if not forms:
        return None
    found = [f'{re.escape(name)}"{_without(same)}' for name, same in forms.items()]
    if len(found) <= MAX_EXPRESSIONS:
        return [f'"{one}' for one in found]
    return [f'"(?:{"|".join(found)})']


def hiding(kind: Kind) -> str:
    """Return what finds the names of `unusual` where they are written in another way."""
    names = dict.fromkeys(re.escape(name) for name, _ in _named(kind))
    return rf"\\u00[2-7]|'(?:{'|'.join(names)})'"


def _without(forms: list[str]) -> str:
    """Return what finds a value that has not all of these forms."""
    found = [f"{_SPACE}:{_SPACE}(?!{form})" for form in dict.fromkeys(forms)]
    return found[0] if len(found) == 1 else f"(?:{'|'.join(found)})"


def _named(kind: Kind) -> Iterator[tuple[str, str]]:
    """Return name and form of each field, at every depth, that has a form."""
    if kind.name == "struct":
        for field in kind.fields:
            form = form_of(field.kind)
            if form is not None:
                yield field.name, form
            else:
                yield from _named(field.kind)
    elif kind.name in ("array", "map"):
        yield from _named(kind.fields[-1].kind)


def form_of(kind: Kind) -> str | None:
    """Return the form of values of a type, null included; None for types that need none."""
    if kind.name == "array":
        element = form_of(kind.fields[0].kind)
        return None if element is None else _listed(r"\[", element, r"\]")
    if kind.name == "map":
        element = form_of(kind.fields[1].kind)
        pair = rf"{_TEXT}{_SPACE}:{_SPACE}{element}"
        return None if element is None else _listed(r"\{", pair, r"\}")
    if kind.name == "decimal":
        form = decimal_form(kind)
        return f'(?:{form}{ENDS}|"{form}"|null)'
    text = _TEXTS.get(kind.name)
    if text is None:
        return None
    number = f"|-?[0-9]{{1,13}}{ENDS}" if kind.name == "timestamp" else ""
    return f'(?:"{text}"{number}|null)'


def _listed(begin: str, one: str, end: str) -> str:
    return rf"(?:{begin}{_SPACE}(?:{one}{_SPACE}(?:,{_SPACE}|(?={end})))*+{end}|null)"
