"""Whether a record parses by a schema, as `parse` has Spark decide it, judged without Spark. Pure.

Only what is certain is judged. Spark reads JSON with Jackson, which takes single quotes and NaN,
reads some texts as numbers and times, and more; such records are NOT_CHECKED rather than guessed.
`tests/pipelines/source/test_judge.py` compares each judgement with Spark's own.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, Final

from ottla.pipelines.source.ddl import Field, Kind
from ottla.pipelines.source.unknown_names import unknown_names
from ottla.pipelines.source.words import (
    ALONE,
    COMMA,
    DAY,
    MAX_SHOWN,
    ROUNDED,
    TINY,
    TOO_LARGE,
    UNKNOWN,
    UnknownFields,
)
from ottla.registry.framing import HEAD_BYTES, MAGIC

PARSES: Final = ""
NOT_CHECKED: Final = None
MAX_NUMBER_CHARS: Final = 40

_INTEGERS: Final = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}
_MAX_FLOAT: Final = {"float": 3.0e38, "double": 1.0e308}
_INFINITE: Final = {"float": 3.5e38, "double": 1.79e308}
_TIMESTAMP: Final = re.compile(
    r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?(Z|[+-]\d\d:\d\d)", re.ASCII
)
_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
# What Spark takes for a time of today, and for the first of January or of a month.
_NO_DAY: Final = re.compile(
    r"T?([01]\d|2[0-3]):[0-5]\d(:[0-5]\d)?Z?|[12]\d{3}(-(0[1-9]|1[0-2]))?", re.ASCII
)
_NO_DATE: Final = re.compile(r"[12]\d{3}(-(0[1-9]|1[0-2]))?", re.ASCII)
_PLAIN_INTEGER: Final = re.compile(r"-?\d{1,18}", re.ASCII)
_PLAIN_NUMBER: Final = re.compile(r"-?\d{1,15}(\.\d{1,15})?", re.ASCII)
_WORD: Final = re.compile(r"[A-Za-z]{2,40}", re.ASCII)
# Jackson reads these, and Python does not (JSONOptions: allowSingleQuotes,
# allowNonNumericNumbers), or the other way around.
_ONLY_JACKSON: Final = re.compile(r"'|nan|inf", re.IGNORECASE)
# A value that a reason shows is another one in each record: the reasons are counted without it.
SHOWN: Final = r"( is not an? [^:]*(?=:)|schema id(?= ?\d)).*"
_SHOWN: Final = re.compile(SHOWN, re.DOTALL)

_FRAMED: Final = "begins with the framing of a schema registry (schema id"


class _NotCheckedError(Exception):
    """Only Spark can tell."""


@dataclass(frozen=True, slots=True)
class Sample:
    """What became of some records: `records` in all, `reasons` the most frequent first.

    `unknown`: of those that parse, how many have fields that the schema lacks; `unknown_fields` has
    their names, the most frequent first.
    """

    records: int
    parsed: int
    not_checked: int
    reasons: tuple[tuple[str, int], ...]
    unknown: int = 0
    unknown_fields: tuple[str, ...] = ()

    @property
    def rejected(self) -> int:
        return self.records - self.parsed - self.not_checked

    def document(self) -> dict[str, Any]:
        """Return it for `--json`."""
        return {
            "records": self.records,
            "parsed": self.parsed,
            "not_checked": self.not_checked,
            "reasons": [{"reason": reason, "records": count} for reason, count in self.reasons],
            "unknown": self.unknown,
            "unknown_fields": list(self.unknown_fields),
        }


def judge_all(
    records: Iterable[tuple[bytes | None, bytes | None]],
    kinds: Mapping[str, Kind | None],
    unknown_fields: UnknownFields = "drop",
) -> Sample:
    """Judge records, given as key and value, by the kinds of "key" and "value"."""
    total = parsed = not_checked = unknown = 0
    reasons: Counter[str] = Counter()
    names: Counter[str] = Counter()
    for key, value in records:
        total += 1
        reason = judge({"key": key, "value": value}, kinds)
        lacking = _lacking(value, kinds["value"]) if reason == PARSES else ()
        if lacking and unknown_fields == "reject":
            reason = f"value {UNKNOWN}: {', '.join(lacking[:MAX_SHOWN])}"
        elif lacking:
            unknown += 1
            names.update(lacking)
        if reason is NOT_CHECKED:
            not_checked += 1
        elif reason == PARSES:
            parsed += 1
        else:
            reasons[without_value(reason)] += 1
    found = tuple(name for name, _ in names.most_common())
    return Sample(total, parsed, not_checked, tuple(reasons.most_common()), unknown, found)


def _lacking(value: bytes | None, kind: Kind | None) -> tuple[str, ...]:
    """Return the fields of a value that its schema lacks."""
    if value is None or kind is None or kind.name != "struct":
        return ()
    return unknown_names(value, kind) or ()


def judge(data: Mapping[str, bytes | None], kinds: Mapping[str, Kind | None]) -> str | None:
    """Return the reason for which a record is rejected, PARSES or NOT_CHECKED.

    A reason that shows a value ends where the value begins. The key's reason comes first.
    """
    found: str | None = PARSES
    for column in ("key", "value"):
        given, kind = data[column], kinds[column]
        if given is None:
            continue
        if kind is None:
            return NOT_CHECKED
        reason = _judge_column(column, given, kind)
        if reason != PARSES:
            found = reason
            break
    return found


def without_value(reason: str) -> str:
    """Return a reason without the value that it shows, so that equal reasons can be counted."""
    return _SHOWN.sub(r"\1", reason)


def most_frequent(reasons: Iterable[str]) -> str | None:
    """Return the first of those reasons that are most frequent, whatever value each shows."""
    counted: Counter[str] = Counter()
    first: dict[str, str] = {}
    for reason in reasons:
        kind = without_value(reason)
        counted[kind] += 1
        first.setdefault(kind, reason)
    return first[counted.most_common(1)[0][0]] if first else None


def _judge_column(name: str, given: bytes, kind: Kind) -> str | None:
    if kind.name == "binary":
        return PARSES
    is_framed = len(given) >= HEAD_BYTES and given.startswith(MAGIC)
    if is_framed and kind.name == "struct":  # no JSON begins with a zero byte
        return f"{name} {_FRAMED}"
    try:
        reason = _judge_object(name, given, kind) if kind.name == "struct" else None
        if reason is None:
            reason = _judge_text(name, given, kind)
    except (_NotCheckedError, RecursionError):
        return NOT_CHECKED
    return f"{name} {_FRAMED}" if is_framed and reason == f"{name} {_whole(kind)}" else reason


def _whole(kind: Kind) -> str:
    """Return what is said of data that is none of this kind at all."""
    if kind.name == "struct":
        return "is not a JSON object of the schema"
    return "is not UTF-8 text" if kind.name == "string" else f"is not a {kind.text()}"


def _judge_text(name: str, given: bytes, kind: Kind) -> str:
    text = _decoded(given)
    if text is None:
        return f"{name} {_whole(kind)}"
    if kind.name == "string":
        return PARSES
    if kind.name in _INTEGERS and _PLAIN_INTEGER.fullmatch(text):
        if _fits(int(text), kind.name):
            return PARSES
        raise _NotCheckedError
    if kind.name in _MAX_FLOAT and _PLAIN_NUMBER.fullmatch(text):
        return PARSES
    numbers = kind.name in _INTEGERS or kind.name in _MAX_FLOAT
    if numbers and _WORD.fullmatch(text) and not _ONLY_JACKSON.search(text):
        return f"{name} {_whole(kind)}"
    raise _NotCheckedError


def _judge_object(name: str, given: bytes, kind: Kind) -> str:
    text = _decoded(given)
    if text is None or not text.strip(" \t\r\n"):
        return f"{name} {_whole(kind)}"
    document = _read(text)
    if document is _BAD:
        return f"{name} {_whole(kind)}"
    if document is _MORE:
        return f"{name} has more text after its JSON object"
    if not isinstance(document, dict):
        if document is None or isinstance(document, list):
            raise _NotCheckedError
        return f"{name} {_whole(kind)}"
    missing = ""
    wrong = ""
    changed = ""
    for field in kind.fields:
        value = document.get(field.name)
        if value is None:
            if not field.nullable and not missing:
                missing = f"{name} lacks the field {field.name}, which is NOT NULL"
        elif words := _changed(value, field.kind):
            changed = changed or f"{name}.{field.name} {words}"
        elif not _fits_field(value, field) and not wrong:
            words = "JSON object" if field.kind.name == "struct" else field.kind.text()
            wrong = f"{name}.{field.name} is not a {words}"
    return wrong or missing or changed


def _changed(value: Any, kind: Kind) -> str:
    """Return the words for a value that Spark's parser takes and changes, "" for all others.

    Only values that it takes for certain are judged.
    """
    is_text = isinstance(value, str) and not isinstance(value, _Number)
    if kind.name in _MAX_FLOAT and (isinstance(value, _Number) or type(value) is int):
        return TOO_LARGE if abs(float(value)) > _INFINITE[kind.name] else ""
    if kind.name == "tinyint" and type(value) is int:
        return TINY if 127 < value < 256 else ""
    if kind.name == "timestamp" and is_text and _NO_DAY.fullmatch(value):
        return f"is not a timestamp {DAY}"
    if kind.name == "date" and is_text:
        is_more = _is_date(value[:10]) and value[10:11] in ("T", " ") and value[11:].strip() != ""
        return f"is not a date {ALONE}" if is_more or _NO_DATE.fullmatch(value) else ""
    if kind.name == "decimal" and isinstance(value, str):
        digits = value.replace(",", "")
        if not _keeps_size(digits, kind):
            return ""
        if "," in value:
            return f"is not a {kind.text()} {COMMA}"
        return "" if _keeps_digits(digits, kind) else f"is not a {kind.text()} {ROUNDED}"
    return ""


def _keeps_size(digits: str, kind: Kind) -> bool:
    """Whether a number in plain digits has room before the point for each of its digits."""
    whole, _, _ = digits.removeprefix("-").partition(".")
    is_plain = _PLAIN_NUMBER.fullmatch(digits) is not None
    return is_plain and int(whole) + 1 < 10 ** (kind.precision - kind.scale)


def _keeps_digits(digits: str, kind: Kind) -> bool:
    return len(digits.partition(".")[2].rstrip("0")) <= kind.scale


_BAD: Final = object()
_MORE: Final = object()


class _Number(str):
    """The digits of a number that has a fraction or an exponent."""

    __slots__ = ()


def _read(text: str) -> Any:
    """Return the document, _BAD where the text is no JSON, _MORE where more text follows it."""

    def refuse(_word: str) -> Any:
        raise _NotCheckedError

    def pairs(found: list[tuple[str, Any]]) -> dict[str, Any]:
        document = dict(found)
        if len(document) < len(found):
            raise _NotCheckedError  # which of two equal names counts
        return document

    decoder = json.JSONDecoder(
        parse_constant=refuse, parse_float=_Number, parse_int=_integer, object_pairs_hook=pairs
    )
    begin = len(text) - len(text.lstrip(" \t\r\n"))
    try:
        document, end = decoder.raw_decode(text, begin)
    except ValueError:
        if _ONLY_JACKSON.search(text) and text[begin] in "{['":
            raise _NotCheckedError from None
        return _BAD
    if any(0xD800 <= ord(one) < 0xE000 for one in text) or "\\u" in text:
        raise _NotCheckedError
    if not text[end:].strip(" \t\r\n"):
        return document
    if not isinstance(document, dict):
        return _BAD if isinstance(document, str | int | bool) else refuse("")
    # More text after an object whose fields may be wrong as well: that comes first.
    raise _NotCheckedError


def _integer(digits: str) -> Any:
    if len(digits) > MAX_NUMBER_CHARS:
        raise _NotCheckedError
    return int(digits)


def _fits_field(value: Any, field: Field) -> bool:
    """Whether Spark takes a value of JSON, not null, for a field. Raises _NotCheckedError."""
    kind = field.kind
    if kind.name == "string":
        return True
    if kind.name == "boolean":
        return isinstance(value, bool) or _refused(value)
    if kind.name in _INTEGERS:
        is_integer = isinstance(value, int) and not isinstance(value, bool)
        if is_integer and not _fits(value, kind.name):
            raise _NotCheckedError
        return is_integer or _refused(value)
    if kind.name in _MAX_FLOAT:
        if isinstance(value, _Number) or (isinstance(value, int) and not isinstance(value, bool)):
            if abs(float(value)) > _MAX_FLOAT[kind.name]:
                raise _NotCheckedError
            return True
        return _refused(value)
    if kind.name == "decimal" and isinstance(value, int) and not isinstance(value, bool):
        if abs(value) < 10 ** (kind.precision - kind.scale):
            return True
    elif kind.name == "decimal" and isinstance(value, str):
        if _keeps_size(value, kind) and _keeps_digits(value, kind):
            return True
    elif (kind.name == "timestamp" and _is_time(value)) or (
        kind.name == "date" and _is_date(value)
    ):
        return True
    elif kind.name == "struct" and isinstance(value, dict):
        return _fits_inside(value, kind)
    elif kind.name == "array" and isinstance(value, list):
        return _all_fit(value, kind.fields[0])
    raise _NotCheckedError


def _all_fit(values: list[Any], element: Field) -> bool:
    """Like `_fits_field` for the elements of an array: only what fits is judged."""
    if any(one is None or not _fits_field(one, element) for one in values):
        raise _NotCheckedError
    return True


def _fits_inside(value: dict[str, Any], kind: Kind) -> bool:
    """Like `_fits_field` for an object inside of an object: only what fits is judged."""
    for field in kind.fields:
        inner = value.get(field.name)
        if inner is None and field.nullable:
            continue
        if inner is None or not _fits_field(inner, field):
            raise _NotCheckedError
    return True


def _refused(value: Any) -> bool:
    """Return False for a value that is no number to Spark either. Raises _NotCheckedError."""
    if isinstance(value, _Number):
        return False
    if isinstance(value, str) and (not value.strip() or _ONLY_JACKSON.search(value)):
        raise _NotCheckedError
    return False


def _fits(number: int, name: str) -> bool:
    limit = 1 << (_INTEGERS[name] - 1)
    return -limit <= number < limit


def _is_time(value: Any) -> bool:
    return _is_iso(value, _TIMESTAMP, datetime.fromisoformat)


def _is_date(value: Any) -> bool:
    return _is_iso(value, _DATE, date.fromisoformat)


def _is_iso(value: Any, form: re.Pattern[str], read: Any) -> bool:
    if not isinstance(value, str) or isinstance(value, _Number) or not form.fullmatch(value):
        return False
    try:
        year: int = read(value).year
    except ValueError:
        return False
    # Before, the calendars differ; near the limits, the time zone matters.
    return 1900 <= year < 9999


def _decoded(given: bytes) -> str | None:
    try:
        text = given.decode("utf-8")
    except UnicodeDecodeError:
        return None
    if text.startswith("\ufeff") or "\0" in text[1:]:
        raise _NotCheckedError
    return text
