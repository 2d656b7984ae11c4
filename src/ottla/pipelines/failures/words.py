"""Sentences that need more than the fields of a cause: what the rows of `table` cannot say alone.

Each returns a sentence for what was found, None where another row is to say it. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from ottla.pipelines.failures.cause import Cause, one_line
from ottla.pipelines.failures.known import Found
from ottla.pipelines.locations import shown_location

DENIED: Final = (
    r"(?:AccessControl|AccessDenied)Exception: ?(?:Permission denied)?.*|Permission denied|"
    r"Read-only file system|Mkdirs failed to create \S+|Parent path is not a directory: \S+|"
    r"Access ?Denied|403 Forbidden|Operation not permitted"
)

_DENIED_FILE: Final = r"(/\S*)/[^/\s]+ \((?:Permission denied|Read-only file system)\)"


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
        "reason": reason_of(cause),
        "found": _shorten(match[0] if match else cause.message) or cause.short_kind,
        "last": found.causes[-1].plain,
        "whole": match[0] if match else "",
        "first": (match[1] or "").strip() if match and match.re.groups else "",
    }


def reason_of(cause: Cause) -> str:
    """Return the text of a database's exception without its level."""
    return re.sub(r"^(?:ERROR|FATAL|PANIC): ", "", cause.plain).rstrip(".")


def _shorten(text: str) -> str:
    return one_line(re.sub(r"^[\w.$]*Exception: ?", "", text))[:150]


def unknown(causes: Sequence[Cause]) -> str:
    """Quote the innermost cause: its wrappers rarely add anything."""
    cause = next((one for one in reversed(causes) if one.message), causes[-1])
    if not cause.message:
        return cause.short_kind
    return cause.plain if cause.condition else f"{cause.short_kind}: {cause.plain}"


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


def too_far_ahead(found: Found) -> str:
    """A time in ms that has no room in Spark's timestamps, of a record or in an expression."""
    topics = ", ".join(found.about.topics) or "the topic"
    return (
        f"A time is after the year 294247, which Spark's timestamps cannot hold"
        f"{found.about.while_reading}. If it is that of a record of {topics}, begin after it with "
        "a new checkpoint: topic(..., starting={0: 4711}); the setting "
        "message.timestamp.after.max.ms of the topic refuses such records. If an expression such "
        "as timestamp_millis() makes it, mend that"
    )


# ---- file systems, disks, memory ----

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


def disk_full(found: Found) -> str | None:
    if any(one.condition.startswith("SQLSTATE") for one in found.causes):
        return None  # the disk is that of a database
    match = found.search(r"(?:writing rows to|[Cc]annot create) (\S+?)\.?(?:\s|$)")
    where = f" while writing {shown_location(match[1])}" if match else ""
    return (
        f"The disk is full{where} (No space left on device). Free some space: the next start "
        "continues from the checkpoint"
    )


def not_writable(found: Found) -> str:
    match = found.search(r"[Cc]annot create (\S+)")
    denied = found.search(DENIED)
    is_log = found.cause.condition == "DELTA_CANNOT_CREATE_LOG_PATH"
    where = shown_location(match[1]) if match and is_log else _denied_folder(found)
    why = f" ({_shorten(denied[0])})" if denied else ""
    return (
        f"Spark cannot write to {where}{why}. Check that the path exists, that "
        "it is a folder and that this user may write to it"
    )


def _denied_folder(found: Found) -> str:
    """Return the target, or the folder outside of it in which a file cannot be made: that of the
    checkpoint, of the rejected rows, or Spark's own.
    """
    target, match = found.about.target, found.search(_DENIED_FILE)
    folder = match[1] if match else target
    return target if f"{folder}/".startswith(f"{target}/") else folder


def memory(found: Found) -> str:
    what = ((found.match and found.match[1]) or "").strip()
    return (
        f"Spark ran out of memory{f' ({what})' if what else ''}. Give it more, such as "
        "session(conf={'spark.driver.memory': '4g'}). A batch that has begun keeps its "
        "size: for smaller ones use topic(max_rows=), a new checkpoint and starting='table'"
    )


# ---- other runs, Kafka ----


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
