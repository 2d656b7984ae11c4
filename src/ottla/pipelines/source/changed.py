"""Values that Spark's parsers change in silence, as Spark columns.

from_json takes "1,5" for the decimal 15, rounds 1.239 to fit a DECIMAL(5,2), lets 200 be the
TINYINT -56 and 1e999 the DOUBLE Infinity. A TIMESTAMP "12:30" is of the day of the run, "2026" is
the first of January, a number of microseconds overflows into any year, and a DATE drops what
follows it. A cast of text does most of that, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from ottla.pipelines.source.fields import kind_of
from ottla.pipelines.source.forms import DATE_FORM, NO_ZONE_FORM, TIMESTAMP_FORM, decimal_form
from ottla.pipelines.source.words import ALONE, COMMA, DAY, ROUNDED, SECONDS, TINY, TOO_LARGE

if TYPE_CHECKING:
    from pyspark.sql import Column
    from pyspark.sql.types import DataType, StructType

    Pair: TypeAlias = Callable[[Column, Column], Column]

MAX_SHOWN_CHARACTERS: Final = 40

_FORMS: Final = {
    "timestamp": (TIMESTAMP_FORM, DAY),
    "timestamp_ntz": (NO_ZONE_FORM, DAY),
    "date": (DATE_FORM, ALONE),
}


class _Check(NamedTuple):
    """`fails` takes a value and what the text has in its place; `shown` takes the latter."""

    fails: Pair
    words: str
    shown: Callable[[Column], Column] | None


def written_in_json(text: Column, schema: StructType) -> Column | None:
    """Return what a JSON text has in place of the values that may be changed; None: none may be."""
    from pyspark.sql import functions as F  # noqa: N812

    said = _with_leaves(schema)
    return None if said is None else F.from_json(text, said)


def changed_in_json(
    parsed: Column, said: Column, text: Column, schema: StructType, name: str
) -> Column:
    """Return the words for the first value of a JSON object that is not what its text says.

    It is null where there is none. `said` is what `written_in_json` returns.
    """
    from pyspark.sql import functions as F  # noqa: N812

    return F.coalesce(
        *[
            F.when(
                check.fails(parsed, said),
                F.lit(check.words)
                if check.shown is None
                else F.concat(
                    F.lit(f"{check.words}: "),
                    F.substring(check.shown(said), 1, MAX_SHOWN_CHARACTERS),
                ),
            )
            for check in _of(schema, name, text)
        ]
    )


def changed_in_text(
    value: Column, text: Column, kind: DataType, name: str
) -> list[tuple[Column, str]]:
    """Return what can have changed in a value that is cast from text, each with its words."""
    from pyspark.sql import functions as F  # noqa: N812

    type_name = kind.simpleString()
    words = f"{name} is not a {type_name}"
    if type_name in _FORMS:
        form, how = _FORMS[type_name]
        return [(~text.rlike(rf"^(?:{form})$"), f"{words} {how}")]
    if type_name in ("float", "double"):
        infinite = F.abs(value) == F.lit(float("inf"))
        return [
            (infinite & ~F.lower(text).contains("inf"), f"{name} {TOO_LARGE}"),
            (text.rlike(r"[0-9.][dDfF]\s*$"), words),  # Java's own
        ]
    if _is_decimal(kind):
        return [(_rounds(kind)(value, text), f"{words} {ROUNDED}")]
    return []


def _of(kind: DataType, path: str, text: Column) -> Iterator[_Check]:
    """Return the checks of the values inside of a value, in the order of the schema."""
    from pyspark.sql import functions as F  # noqa: N812
    from pyspark.sql.types import ArrayType, MapType, StructType

    if isinstance(kind, StructType):
        for field in kind.fields:
            for check in _of(field.dataType, f"{path}.{field.name}", text):
                yield _in_field(field.name, check)
    elif isinstance(kind, ArrayType):
        for check in _of(kind.elementType, f"{path}[]", text):
            yield _Check(_any(check.fails, lambda column: column), check.words, None)
    elif isinstance(kind, MapType):
        for check in _of(kind.valueType, f"{path}{{}}", text):
            yield _Check(_any(check.fails, F.map_values), check.words, None)
    else:
        for fails, words in _of_leaf(kind, text):
            shows = words not in (SECONDS, TINY, TOO_LARGE)
            said = f"{path} is not a {kind.simpleString()} {words}" if shows else f"{path} {words}"
            yield _Check(fails, said, (lambda column: column.cast("string")) if shows else None)


def _in_field(name: str, check: _Check) -> _Check:
    shown = check.shown
    return _Check(
        lambda value, other: check.fails(value[name], other[name]),
        check.words,
        None if shown is None else lambda other: shown(other[name]),
    )


def _any(fails: Pair, values: Callable[[Column], Column]) -> Pair:
    from pyspark.sql import functions as F  # noqa: N812

    return lambda value, other: F.exists(
        F.zip_with(values(value), values(other), fails), lambda one: one
    )


def _of_leaf(kind: DataType, text: Column) -> list[tuple[Pair, str]]:
    """Return the checks of a value against its text, numbers as Jackson writes them again."""
    name = kind.simpleString()
    if name in _FORMS:
        form, how = _FORMS[name]
        if name == "timestamp":
            return [(_overflows, SECONDS), (_lacks_day, how)]
        return [(lambda _value, given: ~given.rlike(rf"^(?:{form})$"), how)]
    if name in ("float", "double"):
        return [(_is_too_large(text), TOO_LARGE)]
    if name == "tinyint":
        return [(lambda value, given: (value < 0) & ~given.startswith("-"), TINY)]
    if _is_decimal(kind):
        return [
            (lambda _value, given: given.cast("string").contains(","), COMMA),
            (_rounds(kind), ROUNDED),
        ]
    return []


def _seconds_of(value: Column, given: Column) -> Column:
    """Tell whether digits are a timestamp's seconds: text of a year is not."""
    from pyspark.sql import functions as F  # noqa: N812

    whole = F.unix_micros(value) % 1_000_000 == 0
    return whole & (F.unix_seconds(value).cast("string") == given)


def _overflows(value: Column, given: Column) -> Column:
    return given.rlike("^-?[0-9]{14,}$") & ~_seconds_of(value, given)


def _lacks_day(value: Column, given: Column) -> Column:
    from pyspark.sql import functions as F  # noqa: N812

    digits = given.rlike("^-?[0-9]+$")
    return F.when(digits, ~_seconds_of(value, given)).otherwise(
        ~given.rlike(rf"^(?:{TIMESTAMP_FORM})$")
    )


def _is_too_large(text: Column) -> Pair:
    from pyspark.sql import functions as F  # noqa: N812

    # Taken as text, an infinite number is in quotes of its own, be it 1e999 or Infinity as
    # Python's json writes it.
    bare = text.rlike(r"[:\[,]\s*[-+]?(Infinity|INF)")

    def is_too_large(value: Column, given: Column) -> Column:
        number = ~F.lower(given).contains("inf") | given.startswith('"')
        return (F.abs(value) == F.lit(float("inf"))) & number & ~bare

    return is_too_large


def _rounds(kind: DataType) -> Pair:
    form = decimal_form(kind_of(kind))

    def rounds(value: Column, given: Column) -> Column:
        from pyspark.sql import functions as F  # noqa: N812

        text = given.cast("string")
        digits = text.rlike(r"^\s*-?[0-9]+(?:\.[0-9]*)?\s*$")
        # With an exponent the digits say little; so do those of a number with more than 38.
        as_double = value.cast("double") != text.try_cast("double")
        return F.when(digits, ~text.rlike(rf"^\s*(?:{form})\s*$")).otherwise(as_double)

    return rounds


def _given(kind: DataType) -> DataType | None:
    """Return the type that keeps what the text has in place of a value; None: it is not asked."""
    from pyspark.sql.types import StringType, VariantType

    # As text a number has the digits of a double; as a variant those of a decimal.
    if _is_decimal(kind):
        return VariantType()
    is_asked = kind.simpleString() in (*_FORMS, "float", "double", "tinyint")
    return StringType() if is_asked else None


def _is_decimal(kind: DataType) -> bool:
    from pyspark.sql.types import DecimalType

    return isinstance(kind, DecimalType)


def _with_leaves(kind: DataType) -> DataType | None:
    """Return the type of what the text has: `_given` for the leaves, without those not asked."""
    from pyspark.sql.types import ArrayType, MapType, StructField, StructType

    if isinstance(kind, StructType):
        found = [(field.name, _with_leaves(field.dataType)) for field in kind.fields]
        fields = [StructField(name, made) for name, made in found if made is not None]
        return StructType(fields) if fields else None
    if isinstance(kind, ArrayType):
        made = _with_leaves(kind.elementType)
        return None if made is None else ArrayType(made)
    if isinstance(kind, MapType):
        made = _with_leaves(kind.valueType)
        return None if made is None else MapType(kind.keyType, made)
    return _given(kind)
