"""Sentences that need more than the fields of a cause: what the rows of `table` cannot say alone.

Each returns a sentence for what was found, None where another row is to say it. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ottla.pipelines.failures.cause import About, Cause, one_line

INCOMPATIBLE: Final = r"incompatible (?:data|decimal) types? (.+) and (.+)"
DENIED: Final = (
    r"(?:AccessControl|AccessDenied)Exception: ?(?:Permission denied)?.*|Permission denied|"
    r"Read-only file system|Mkdirs failed to create \S+|Parent path is not a directory: \S+|"
    r"Access ?Denied|403 Forbidden|Operation not permitted"
)


@dataclass(frozen=True, slots=True)
class Found:
    """A cause that a row of the table matches, in its chain; `match` is that of its text."""

    cause: Cause
    match: re.Match[str] | None
    causes: Sequence[Cause]
    about: About

    def search(self, pattern: str) -> re.Match[str] | None:
        """Search the classes and texts of all causes, the innermost first."""
        return search(self.causes, pattern)

    def of_kind(self, pattern: str) -> Cause | None:
        """Return the outermost cause whose class matches."""
        return next((one for one in self.causes if re.search(pattern, one.kind)), None)


def search(causes: Sequence[Cause], pattern: str) -> re.Match[str] | None:
    found = (re.search(pattern, f"{one.kind}: {one.message}") for one in reversed(causes))
    return next((one for one in found if one), None)


def fields(found: Found) -> dict[str, str]:
    """Return the fields of a sentence: those of `About`, and of the cause.

    `plain`: its text. `reason`: that without a database's level. `found`: what matched, short.
    `last`: the text of the innermost cause. `1`: what the pattern's first group holds.
    """
    about, cause, match = found.about, found.cause, found.match
    topics = ", ".join(about.topics)
    return {
        "query": about.query,
        "target": about.target,
        "checkpoint": about.checkpoint,
        "servers": about.servers,
        "topics": topics or "the topic",
        "Topics": topics or "The topic",
        "plain": cause.plain,
        "reason": _reason(cause),
        "found": _shorten(match[0] if match else cause.message) or cause.short_kind,
        "last": found.causes[-1].plain,
        "whole": match[0] if match else "",
        "first": (match[1] or "").strip() if match and match.re.groups else "",
    }


def _reason(cause: Cause) -> str:
    return re.sub(r"^(?:ERROR|FATAL|PANIC): ", "", cause.plain).rstrip(".")


def _shorten(text: str) -> str:
    return one_line(re.sub(r"^[\w.$]*Exception: ?", "", text))[:150]


def unknown(causes: Sequence[Cause]) -> str:
    """Quote the innermost cause: its wrappers rarely add anything."""
    cause = next((one for one in reversed(causes) if one.message), causes[-1])
    if not cause.message:
        return cause.short_kind
    return cause.plain if cause.condition else f"{cause.short_kind}: {cause.plain}"


# ---- the schema of the rows and of the table ----


def other_columns(found: Found) -> str:
    target, message = found.about.target, found.cause.message
    if "artition columns do not match" in message:
        return f"The table {target} is partitioned by other columns than partition_by says"
    table, _, rows = message.partition("Data schema:")
    there = _tree(table.partition("Table schema:")[2])
    extra = [f"{name} {kind}" for name, kind in _tree(rows).items() if name not in there]
    if not extra:
        return f"The rows do not fit the table {target}: {found.cause.plain}"
    count = "a column" if len(extra) == 1 else f"{len(extra)} columns"
    return (
        f"The rows have {count} that the table {target} lacks: {', '.join(extra)}. Leave it out "
        "with select(), or add it to the table: ALTER TABLE ... ADD COLUMNS, or "
        "schema_changes='add'"
    )


def _tree(text: str) -> dict[str, str]:
    """Return the fields of a schema that is printed as a tree, nested ones with dots.

    Delta prints no bar in front of the top level, one in front of the next, and so on.
    """
    path: list[str] = []
    found = {}
    for line in text.splitlines():
        match = re.match(r"([ |]*)-- (.+?): (\w+)", line)
        if match:
            path = [*path[: match[1].count("|")], match[2]]
            found[".".join(path)] = _sql_type(match[3].capitalize() + "Type")
    return found


_SQL_TYPES: Final = {"Integer": "INT", "Long": "BIGINT", "Short": "SMALLINT", "Byte": "TINYINT"}


def _sql_type(name: str) -> str:
    """Return Spark's `IntegerType` as SQL's INT; types with parts stay as Spark prints them."""
    plain = re.fullmatch(r"(\w+)Type", name)
    return _SQL_TYPES.get(plain[1], plain[1].upper()) if plain else name


def other_type(found: Found) -> str:
    target = found.about.target
    merged = next((c for c in found.causes if c.condition == "DELTA_FAILED_TO_MERGE_FIELDS"), None)
    field = re.search(r"fields '(.+?)' and '", merged.message) if merged else None
    column = f"The column {field[1]}" if field else "A column"
    types = found.search(INCOMPATIBLE)
    if types is None:
        return f"{column} has another type than in the table {target}: cast it in the query"
    there, here = (_sql_type(name.strip()) for name in types.groups())
    return (
        f"{column} is {here} in the rows and {there} in the table {target}: "
        "cast it in the query, or write to a new table"
    )


def check_violated(found: Found) -> str:
    pattern = r"CHECK constraint (.+?) violated by row with values:\s*(.*)"
    match = re.search(pattern, found.cause.message, re.DOTALL)
    values = re.sub(r"\s*\n?\s*- (\w+) : ", r" \1=", match[2]).strip() if match else ""
    name = match[1] if match else found.cause.plain
    return (
        f"The table {found.about.target} refused a row{' with ' + values if values else ''}: CHECK "
        f"constraint {name}. Filter such rows in the query, or drop the constraint"
    )


def null_refused(found: Found) -> str:
    column = re.search(r"column: (.+?)\.?\s*$", found.cause.message)
    return (
        f"The table {found.about.target} refused a row: the column {column[1] if column else '?'} "
        "is NOT NULL there and null in the row. Filter such rows in the query, or give a default"
    )


# ---- a value that cannot be computed ----


def python_function(found: Found) -> str | None:
    cause = next((one for one in found.causes if _is_of_python(one)), None)
    if cause is None:
        return None
    trace = cause.message.rstrip()
    lines = re.findall(r'File "(.+?)", line (\d+), in (\S+)', trace)
    # The user's own line is the last one that is not of PySpark's worker.
    own = [line for line in lines if "/pyspark/" not in line[0] and "pyspark.zip" not in line[0]]
    bare = re.sub(r"\n\s*SQLSTATE.*", "", trace)
    raised = re.findall(r"^(\w[\w.]*(?:: .*)?)$", bare, re.MULTILINE)
    where = "{}, line {}, in {}".format(*(own or lines)[-1]) if lines else "an unknown line"
    return (
        f"A Python function of the query raised {raised[-1] if raised else 'an error'} ({where})"
        f"{found.about.while_reading}. Handle such a value in the function, or filter it before"
    )


def _is_of_python(cause: Cause) -> bool:
    worker = "PythonException" in cause.kind or "Python worker" in cause.message
    return worker and "Traceback (most recent call last)" in cause.message


def row(found: Found) -> str:
    cause = found.cause
    context = re.search(r"== SQL \(.*?\) ==\s*\n(.+)", cause.message)
    # DataFrame code has no SQL text; Spark names the function and the line that called it.
    call = re.search(r'== DataFrame ==\s*\n"(.+?)" was called from\s*\n(\S.*)', cause.message)
    where = f" in {context[1].strip()!r}" if context else ""
    where = f" in {call[1]}() at {call[2].strip()}" if call else where
    return f"A row could not be computed{where}{found.about.while_reading}: {cause.plain}"


# ---- places: file systems, disks, memory ----

_FILE_SYSTEMS: Final = (
    ("s3a", "org.apache.hadoop:hadoop-aws"),
    ("abfs", "org.apache.hadoop:hadoop-azure"),
    ("azurebfs", "org.apache.hadoop:hadoop-azure"),
    ("wasb", "org.apache.hadoop:hadoop-azure"),
    ("gs", "com.google.cloud.bigdataoss:gcs-connector"),
)


def file_system(found: Found) -> str:
    """`match` holds the scheme, or the class of its file system."""
    assert found.match is not None
    name = found.match[1]
    if name == "s3":
        return "Hadoop has no file system for s3://: write s3a:// instead"
    for scheme, package in _FILE_SYSTEMS:
        if f".{scheme}." in f".{name}." or f".{scheme}s." in name:
            version = found.about.hadoop if "hadoop:" in package else "<version>"
            return (
                f"Spark has no jar for the file system of {scheme}://: start it with "
                f"session(..., packages=['{package}:{version}'])"
            )
    return f"Spark has no jar for this file system ({name}): add it with packages= "


def disk_full(found: Found) -> str:
    place = found.search(r"(?:writing rows to|[Cc]annot create) (\S+?)\.?(?:\s|$)")
    where = f" while writing {place[1].removeprefix('file:')}" if place else ""
    return (
        f"The disk is full{where} (No space left on device). Free some space: the next start "
        "continues from the checkpoint"
    )


def not_writable(found: Found) -> str:
    place = found.search(r"[Cc]annot create (\S+)")
    denied = found.search(DENIED)
    is_log = found.cause.condition == "DELTA_CANNOT_CREATE_LOG_PATH"
    where = place[1].removeprefix("file:") if place and is_log else found.about.target
    why = f" ({_shorten(denied[0])})" if denied else ""
    return (
        f"Spark cannot write to {where}{why}. Check that the path exists, that "
        "it is a folder and that this user may write to it"
    )


def memory(found: Found) -> str:
    what = ((found.match and found.match[1]) or "").strip()
    return (
        f"Spark ran out of memory{f' ({what})' if what else ''}. Give it more, such as "
        "session(conf={'spark.driver.memory': '4g'}). A batch that has begun keeps its "
        "size: for smaller ones use topic(max_rows=), a new checkpoint and starting='table'"
    )


# ---- databases, other runs, Kafka ----


def unknown_host(found: Found) -> str | None:
    host = found.of_kind(r"\bUnknownHostException$")
    if host is None:
        return None
    # The driver's own words are "The connection attempt failed".
    return (
        f"The host of the database of {found.about.target} is not known: {host.plain}. Correct "
        "url=, or the name service; the next start continues from the checkpoint"
    )


def other_database(found: Found) -> str:
    return (
        f"The database refused to write {found.about.target}: {_reason(found.cause)} "
        f"({found.cause.condition})"
    )


def other_commit(found: Found) -> str:
    by = re.search(r'"operation":"(.+?)"', found.cause.message)
    return (
        f"Another job committed to {found.about.target} at the same time"
        f"{f' ({by[1]})' if by else ''}: {found.cause.plain.partition(' Conflicting commit')[0]} "
        "Start again when the other job is done, or let the two write at different times"
    )


def data_loss(found: Found) -> str:
    text = re.sub(r"Some data may have been .*", "", found.cause.plain, flags=re.DOTALL)
    return (
        f"Records that were not read yet are no longer on {found.about.servers} (retention or a "
        f"deleted topic): {text.strip()} Set on_lost='skip' to continue with the records that "
        "remain"
    )


def no_login(found: Found) -> str | None:
    if found.of_kind(r"^org\.apache\.kafka\.common\.(errors\.|KafkaException)") is None:
        return None
    return f"The query cannot log in: {found.cause.plain}. Check the sasl.* settings in kafka="
