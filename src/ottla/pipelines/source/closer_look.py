"""A closer look at the text of a JSON object, as a Spark column.

from_json does not say what it left out or changed: text behind the object, bytes that are not
UTF-8, fields that the schema lacks. What tells that reads the text again, so only texts are looked
at that `plain` does not prove to need none.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Final

from ottla.pipelines.source.changed import written_in_json
from ottla.pipelines.source.fields import kind_of
from ottla.pipelines.source.plain import plain
from ottla.pipelines.source.surrogates import has_half_pair, has_texts
from ottla.pipelines.source.unknown import looked_for

if TYPE_CHECKING:
    from pyspark.sql import Column
    from pyspark.sql.types import StructType

# What a closer look has.
BROKEN: Final = "broken"
TRAILING: Final = "trailing"
HALF_PAIR: Final = "half_pair"
SAID: Final = "said"
TEXT: Final = "text"
# No record can hold this name by design or by chance.
_END: Final = f"_ottla_{secrets.token_hex(8)}"


def closer_look(data: Column, fields: StructType, *, names_unknown: bool) -> Column:
    """Return a closer look at the bytes of a JSON object, null for those that need none.

    `names_unknown`: it has what `unknown_names` asks for.
    """
    from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

    text = data.cast("string")
    kind = kind_of(fields)
    # The text itself: without it here Spark would carry the data of all records on.
    found = {
        TEXT: text,
        BROKEN: ~F.is_valid_utf8(text),
        TRAILING: _has_trailing(data),
        HALF_PAIR: has_half_pair(text) if has_texts(kind) else F.lit(False),
    }
    said = written_in_json(text, fields)
    if said is not None:
        found[SAID] = said
    if names_unknown:
        found |= looked_for(text, fields)
    whole = F.struct(*[column.alias(part) for part, column in found.items()])
    expression = plain(kind)
    if expression is None:
        return F.when(data.isNotNull(), whole)
    is_plain = F.is_valid_utf8(text) & text.rlike(expression)
    return F.when(data.isNull() | is_plain, F.lit(None)).otherwise(whole)


def _has_trailing(column: Column) -> Column:
    """Tell whether text follows the JSON object: from_json stops at the object's end.

    Where text may follow, the object is read once more as the first of exactly two elements of an
    array: text that closes the array or adds elements to it changes their number.
    """
    from pyspark.sql import functions as F  # noqa: N812

    # A single '}' in the last byte ends it.
    start = F.substring(column, F.lit(1), F.length(column) - 1)
    more = F.contains(start, F.lit(b"}")) | (F.substring(column, -1, 1) != F.lit(b"}"))
    array = F.concat(F.lit("["), column.cast("string"), F.lit(f',{{"{_END}":true}}]'))
    elements = F.from_json(array, f"array<struct<{_END}: boolean>>")
    whole = (F.size(elements) == 2) & elements[1][_END]
    # CASE, not AND: Spark evaluates what occurs twice in an AND's right side for every row.
    return F.when(more, ~F.coalesce(whole, F.lit(False))).otherwise(F.lit(False))
