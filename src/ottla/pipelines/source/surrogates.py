"""Texts of JSON with half of a surrogate pair, as Spark columns.

JSON may write a character beyond U+FFFF as two escapes, \\ud83d\\ude00. A producer that cuts its
texts after so many UTF-16 units leaves one of them alone. No text has such a character: Spark's
from_json makes "?" of it in silence, as Java does where it encodes UTF-8.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.pipelines.source.ddl import Kind

if TYPE_CHECKING:
    from pyspark.sql import Column

# What stands behind a backslash for a whole pair, and for a half. `plain` asks for these, too.
PAIR: Final = r"u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
HALF: Final = r"u[dD][89a-fA-F]"
# What a backslash escapes, be it another backslash, and whole pairs: what is left is in no pair.
_WHOLE: Final = rf"\\(?:[^u]|{PAIR})"


def has_texts(kind: Kind) -> bool:
    """Tell whether a type has texts, at any depth."""
    return kind.name == "string" or any(has_texts(field.kind) for field in kind.fields)


def has_half_pair(text: Column) -> Column:
    """Tell whether a JSON text has half of a surrogate pair, be it in a field that is not read."""
    from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

    half = rf"\\{HALF}"
    found = F.regexp_replace(text, _WHOLE, "").rlike(half)
    # CASE, not AND: Spark evaluates what occurs twice in an AND's right side for every row.
    return F.when(text.rlike(half), found).otherwise(F.lit(False))
