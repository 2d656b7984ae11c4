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

# What a backslash escapes, be it another backslash, and whole pairs: what is left is in no pair.
_WHOLE: Final = r"(?i)\\(?:[^u]|ud[89ab][0-9a-f]{2}\\ud[c-f][0-9a-f]{2})"
_HALF: Final = r"(?i)\\ud[89a-f][0-9a-f]{2}"


def has_texts(kind: Kind) -> bool:
    """Tell whether a type has texts, at any depth."""
    return kind.name == "string" or any(has_texts(field.kind) for field in kind.fields)


def has_half_pair(text: Column) -> Column:
    """Tell whether a JSON text has half of a surrogate pair, be it in a field that is not read."""
    from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

    found = F.regexp_replace(text, _WHOLE, "").rlike(_HALF)
    # CASE, not AND: Spark evaluates what occurs twice in an AND's right side for every row.
    return F.when(text.rlike(_HALF), found).otherwise(F.lit(False))
