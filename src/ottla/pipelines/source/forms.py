"""The usual forms of values that Spark's parser may change in another form (`changed`). Pure."""

from __future__ import annotations

from typing import Final

from ottla.pipelines.source.ddl import Kind

_DATE: Final = r"[+-]?[0-9]{4,6}-[0-9]{1,2}-[0-9]{1,2}"
_TIME: Final = r"[ T][0-9]{1,2}:[0-9]{1,2}"
_ENDS: Final = r"(?=[ \t\r\n,}\]])"

DATE_FORM: Final = rf" *{_DATE} *"
TIMESTAMP_FORM: Final = rf' *{_DATE}(?:{_TIME}[^"\\]*| *)'
NO_ZONE_FORM: Final = rf" *{_DATE}(?:{_TIME}(?::[0-9]{{1,2}}(?:\.[0-9]*)?)?)? *"
"""What a date, a timestamp and one without a zone are as text, without quotes."""

_TEXTS: Final = {"timestamp": TIMESTAMP_FORM, "timestamp_ntz": NO_ZONE_FORM, "date": DATE_FORM}
# A lookbehind at so many digits: numbers with fewer, and this exponent, are not infinite.
_NUMBERS: Final = {
    "float": r"[-.0-9nul]+(?<![.0-9]{25})(?:[eE](?:-[0-9]++|\+?+[0-9](?![0-9])))?+",
    "double": r"[-.0-9nul]+(?<![.0-9]{200})(?:[eE](?:-[0-9]++|\+?+[0-9]{1,2}(?![0-9])))?+",
}
_TINY: Final = rf"(?:-?+(?:[0-9]{{1,2}}|1[01][0-9]|12[0-7]){_ENDS}|null)"


def decimal_form(kind: Kind) -> str:
    """Return what a decimal is that keeps all its digits, as text or number."""
    return rf"-?[0-9]++(?:\.[0-9]{{0,{kind.scale}}}0*+)?"


def form_of(kind: Kind) -> str | None:
    """Return the form of values of a type, null included; None for types that need none."""
    if kind.name == "decimal":
        form = decimal_form(kind)
        return f'(?:{form}{_ENDS}|"{form}"|null)'
    if kind.name == "tinyint":
        return _TINY
    text = _TEXTS.get(kind.name)
    if text is None:
        return _NUMBERS.get(kind.name)
    number = f"|-?[0-9]{{1,13}}{_ENDS}" if kind.name == "timestamp" else ""
    return f'(?:"{text}"{number}|null)'
