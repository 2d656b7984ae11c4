"""Naming the field whose value does not fit its type, in a JSON object that did not parse."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.pipelines.source.fields import at, fields_of, strings_of

if TYPE_CHECKING:
    from pyspark.sql import Column
    from pyspark.sql.types import DataType, StructType

MAX_SHOWN_CHARACTERS: Final = 40


def name_mismatch(parsed: Column, text: Column, schema: StructType, name: str) -> Column:
    """Return the words for the first value of `text` that does not fit, null if none is found.

    `parsed` is what from_json made of the text: it leaves such a value null and keeps the others
    (`spark.sql.json.enablePartialResults`). So the text is parsed again with text for every type,
    and a field that is null in the one and not in the other is the one that does not fit.
    """
    from pyspark.sql import functions as F  # noqa: N812

    fields = F.from_json(text, strings_of(schema, deep=False))
    leaves = F.from_json(text, strings_of(schema, deep=True))
    found = [
        F.when(
            at(parsed, path).isNull() & at(texts, path).isNotNull(),
            F.concat(
                F.lit(f"{'.'.join([name, *path])} is not a {_words(kind)}: "),
                F.substring(at(texts, path), 1, MAX_SHOWN_CHARACTERS),
            ),
        )
        for path, kind, texts in [
            *((path, kind, fields) for path, kind in fields_of(schema, deep=False)),
            *((path, kind, leaves) for path, kind in fields_of(schema, deep=True)),
        ]
    ]
    return F.coalesce(*found) if found else F.lit(None).cast("string")


def _words(kind: DataType) -> str:
    from pyspark.sql.types import StructType

    return "JSON object" if isinstance(kind, StructType) else str(kind.simpleString())
