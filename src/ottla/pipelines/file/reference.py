"""The page docs/pipeline-file.md, printed from the descriptions of the options.

`python -m ottla.pipelines.file.reference docs/pipeline-file.md` writes it. A test fails if the page
and the code differ.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Final

from ottla.pipelines.sinks.registered import SINKS
from ottla.pipelines.spec.option import Option, options_of
from ottla.pipelines.spec.pipeline import (
    DeliverySpec,
    SourceSpec,
    SparkSpec,
    TableSpec,
    TransformSpec,
)

_HEAD: Final = """# Fields of a pipeline file

Printed from the code, by `python -m ottla.pipelines.file.reference`. [The pipeline \
file](pipelines.md#the-pipeline-file) shows one, and how it is run; [pipeline \
sources](pipeline-sources.md) and [pipeline sinks](pipeline-sinks.md) say what the fields do.
"""
_SERVERS: Final = Option(
    "bootstrap_servers",
    "the brokers, of any Kafka cluster",
    takes="`host:port`, several with commas or as a list",
    is_required=True,
)
_NAME: Final = Option(
    "name", "what the journey, Spark's UI and commits call the pipeline; by default the file's name"
)
_TABLES: Final[tuple[tuple[str, type, tuple[Option, ...]], ...]] = (
    ("`[source]`: the topic", SourceSpec, (_SERVERS,)),
    ("`[transform]`: what is written, by default all columns", TransformSpec, ()),
    ("`[transform.tables.NAME]`: a table to look things up in", TableSpec, ()),
    *((kind.title, kind, kind.besides) for kind in SINKS),
    ("`[delivery]`: how the rows get there", DeliverySpec, ()),
    ("`[spark]`: the session of all pipelines of the file", SparkSpec, ()),
)


def page() -> str:
    """Return the page's text."""
    tables = [_table(title, *options_of(kind).values(), *more) for title, kind, more in _TABLES]
    return "\n".join([_HEAD, _table("Beside the tables", _NAME), *tables])


def _table(title: str, *options: Option) -> str:
    rows = map(_row, options)
    head = "| field | what it takes | default | meaning |\n|---|---|---|---|\n"
    return f"## {title}\n\n{head}{''.join(rows)}"


def _row(option: Option) -> str:
    default = "required" if option.is_required else _shown(option.default)
    return f"| `{option.name}` | {option.taken} | {default} | {option.help} |\n"


def _shown(default: Any) -> str:
    if default is None or default in ("", ()):
        return ""
    if isinstance(default, bool):
        return f"`{str(default).lower()}`"
    return f'`"{default}"`' if isinstance(default, str) else f"`{default}`"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(page(), encoding="utf-8")
