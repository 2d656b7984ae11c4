"""Delta gives some columns the wider type of the rows, where new columns are added.

INT becomes BIGINT: its table feature type widening. Pure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.pipelines.target.narrower_types import WHOLE_DIGITS, holds

if TYPE_CHECKING:
    from pyspark.sql.types import DataType


def can_widen(table: DataType, rows: DataType, *, has_feature: bool) -> bool:
    """Tell whether Delta gives a column of a table the type of the rows, which is wider.

    `has_feature`: the table has type widening. Parquet stores BYTE, SHORT and INT as one type, so
    these need no feature. (TypeWidening.isTypeChangeSupportedForSchemaEvolution of Delta.)
    """
    from pyspark.sql.types import DecimalType

    has, wanted = table.typeName(), rows.typeName()
    if isinstance(table, DecimalType):
        return has_feature and isinstance(rows, DecimalType) and holds(table, rows)
    if has in WHOLE_DIGITS and wanted in WHOLE_DIGITS:
        return holds(table, rows) and (has_feature or wanted != "long")
    return has_feature and (has, wanted) == ("float", "double")
