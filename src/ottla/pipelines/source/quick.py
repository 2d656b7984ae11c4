"""A quick proof that a parsed JSON object needs no closer look, as a Spark column.

The expression of `plain` reads each character of a text. For an object of plain values alone it is
enough to count: an object with n fields has n - 1 commas between them, and texts may have more. So
an object with no more than n - 1 commas, of which n fields of the schema were parsed, has these
fields and no others. Bytes that are not UTF-8 are U+FFFD in what was parsed of them, and half of a
surrogate pair is "?". What this does not prove, `plain` may: a text with a comma or a question mark
in a value, or with a null, is not wrong.
"""

from __future__ import annotations

import secrets
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyspark.sql import Column
    from pyspark.sql.types import StructType

_STRING: Final = "string"
_FRACTIONS: Final = ("float", "double")
# Spark's parser changes none of these, nor floating-point numbers that are finite (`changed`).
_UNCHANGED: Final = ("boolean", "smallint", "int", "bigint")
_NO_UTF_8: Final = "\N{REPLACEMENT CHARACTER}"
_HALF_PAIR: Final = "?"
# No text has this between two commas by design or by chance.
_END: Final = secrets.token_hex(8)


def is_quick(parsed: Column, text: Column, schema: StructType) -> Column | None:
    """Tell whether a parsed text is UTF-8, with fields of the schema alone and no changed value.

    None: the schema has names or values that must be looked at. `parsed` is asked for each field:
    where it is a column of the same projection, Spark computes it once. The text is one object with
    nothing behind it, which the caller asks.
    """
    from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

    kinds = [(field.name, field.dataType.simpleString()) for field in schema.fields]
    known = (_STRING, *_UNCHANGED, *_FRACTIONS)
    if not kinds or any(_NO_UTF_8 in name or kind not in known for name, kind in kinds):
        return None
    fits = [_fits(parsed[name], kind) for name, kind in kinds]
    fields = reduce(add, [F.when(one, 1).otherwise(0) for one in fits])
    # The parts between commas: _END makes one more, and is the last of them.
    parts = F.find_in_set(F.lit(_END), F.concat(text, F.lit(f",{_END}")))
    return parts == fields + 1


def _fits(value: Column, kind: str) -> Column:
    """Tell whether a value is there, and surely what the text says."""
    from pyspark.sql import functions as F  # noqa: N812

    if kind in _FRACTIONS:
        return F.abs(value) < F.lit(float("inf"))
    if kind == _STRING:
        return ~(value.contains(_NO_UTF_8) | value.contains(_HALF_PAIR))
    return value.isNotNull()
