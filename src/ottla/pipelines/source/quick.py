"""Whether a JSON text needs no closer look, as Spark columns: most texts do not.

Text behind an object, values that the parser changed and fields that the schema lacks each take one
more parse to find. A text that is proved to have none of them is not parsed again.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Final

from ottla.pipelines.source.doubt import unusual_numbers
from ottla.pipelines.source.fields import kind_of
from ottla.pipelines.source.plain import plain, usual

if TYPE_CHECKING:
    from pyspark.sql import Column
    from pyspark.sql.types import StructType

# No JSON text has this character.
_NONE: Final = "\x01"


def may_go_on(data: Column) -> Column:
    """Tell whether text can follow the JSON object: if not, a single '}' is the last byte."""
    from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

    start = F.substring(data, F.lit(1), F.length(data) - 1)
    return F.contains(start, F.lit(b"}")) | (F.substring(data, -1, 1) != F.lit(b"}"))


def is_plain(parsed: Column, goes_on: Column, text: Column, schema: StructType) -> Column:
    """Tell whether a JSON text is proved to need no closer look; not true where it is not.

    `parsed` is what from_json made of the text, `goes_on` what `may_go_on` returns for it.
    """
    from pyspark.sql import functions as F  # noqa: N812

    kind = kind_of(schema)
    expression = plain(kind)
    matches = F.lit(False) if expression is None else text.rlike(expression)
    looked_for = usual(kind)
    if looked_for is None:
        return matches
    # Of an object without objects in it the commas tell how many fields it has at most: with as
    # many values of the schema's fields it has no others. They are counted quickly.
    commas = F.find_in_set(F.lit(_NONE), F.concat(text, F.lit(f",{_NONE}"))) - 2
    values = reduce(
        lambda one, other: one + other,
        [F.when(parsed[name].isNotNull(), 1).otherwise(0) for name in schema.names],
    )
    proved = ~goes_on & (commas + 1 == values)
    for doubt in unusual_numbers(parsed, schema):
        proved &= ~doubt
    if looked_for:
        proved &= ~text.contains("'")
    for one in looked_for:
        proved &= text.rlike(one)
    return F.when(proved, F.lit(True)).otherwise(matches)
