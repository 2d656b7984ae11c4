"""The lengths that `CHAR(n)` and `VARCHAR(n)` allow inside of a column, as SQL. Pure.

Spark keeps the type of a column as a text where such a type is anywhere in it, such as
`array<struct<code:varchar(3)>>`, and the types of its schema are STRING.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from ottla.pipelines.spark.column_names import quoted

_TEXT: Final = re.compile(r"(?:var)?char\((\d+)\)")
_PARTS: Final = re.compile(r"(array|map|struct)<(.*)>", re.DOTALL)


def fits_limits(kind: str, value: str, depth: int = 0) -> str | None:
    """Return the condition that all texts in a value of this type are short enough, None where the
    type limits none.

    `value`: as SQL names it. A null fits.
    """
    if limit := _TEXT.fullmatch(kind):
        return f"{value} IS NULL OR length({value}) <= {limit[1]}"
    parts = _PARTS.fullmatch(kind)
    if parts is None:
        return None
    inner = list(_split(parts[2]))
    if parts[1] == "struct":
        fields = [one.partition(":") for one in inner]
        found = [fits_limits(of, f"{value}.{quoted(name)}", depth) for name, _, of in fields]
    else:
        item = f"ottla_e{depth}"
        lists = [value] if parts[1] == "array" else [f"map_keys({value})", f"map_values({value})"]
        each = [
            (one, fits_limits(of, item, depth + 1)) for one, of in zip(lists, inner, strict=True)
        ]
        found = [fits and f"forall({one}, {item} -> {fits})" for one, fits in each]
    limits = [f"({one})" for one in found if one is not None]
    return f"{value} IS NULL OR ({' AND '.join(limits)})" if limits else None


def _split(kinds: str) -> Iterator[str]:
    """Return the types between commas that are in no other type."""
    start = depth = 0
    for place, sign in enumerate(kinds):
        depth += (sign in "<(") - (sign in ">)")
        if sign == "," and depth == 0:
            yield kinds[start:place]
            start = place + 1
    yield kinds[start:]
