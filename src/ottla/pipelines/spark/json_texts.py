"""How values are written as JSON: whole. Pure.

By default Spark's to_json writes milliseconds, and a TIMESTAMP has microseconds: two keys that
differ in them would be one.
"""

from __future__ import annotations

from typing import Final

from ottla.pipelines.spark.column_names import text

WHOLE_TIMES: Final = {
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}
"""The options of to_json and from_json, and of a writer of JSON."""


def whole_times() -> str:
    """Return these options as SQL."""
    pairs = ", ".join(f"{text(name)}, {text(value)}" for name, value in WHOLE_TIMES.items())
    return f"map({pairs})"
