"""Failures of Spark, Delta, Kafka and storage as one sentence: cause, row or field, way out.

Pure. Conditions are Spark's and Delta's own names (error-conditions.json of Spark,
delta-error-classes.json of Delta); where a failure has none, the exception's class or text
decides. The first rule that matches wins, so the more specific ones come first.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from ottla.pipelines.checkpoint.next_batch import set_back
from ottla.pipelines.sinks.upsert_statement import SHARED, UNORDERED
from ottla.pipelines.source.framed import CONFLICT, UNKNOWN_ID
from ottla.pipelines.source.protobuf_decoder import NO_PROTOBUF
from ottla.pipelines.spark.jvm.causes import Cause

MAX_WORDS: Final = 400


@dataclass(frozen=True, slots=True)
class About:
    """The names of the query and its surroundings that a sentence may use."""

    query: str = "the query"
    target: str = "the target"
    checkpoint: str = "its checkpoint"
    topics: tuple[str, ...] = ()
    servers: str = "the broker"
    hadoop: str = "<Hadoop version>"
    place: str = ""  # what a failed task was reading: "flights partition 0, offsets 3 to 9"


def sentence_for(causes: Sequence[Cause], about: About) -> str:
    """Return one line for a chain of causes, the outermost first."""
    for rule in _RULES:
        if sentence := rule(causes, about):
            return one_line(sentence)
    return one_line(_unknown(causes) + _while_reading(about))


def one_line(text: str) -> str:
    """Return a text as one line of at most MAX_WORDS characters or a little more."""
    line = re.sub(r"\s+", " ", text).strip()
    return line if len(line) <= 2 * MAX_WORDS else line[: 2 * MAX_WORDS] + " ..."


def _unknown(causes: Sequence[Cause]) -> str:
    """Quote the innermost cause: its wrappers rarely add anything."""
    cause = next((one for one in reversed(causes) if one.message), causes[-1])
    if not cause.message:
        return cause.short_kind
    return _plain(cause) if cause.condition else f"{cause.short_kind}: {_plain(cause)}"


def _plain(cause: Cause) -> str:
    """Return a message without Spark's condition, SQLSTATE and quotation of the query."""
    text = re.sub(r"^\s*\[[A-Z0-9_.]+\]\s*", "", cause.message)
    text = re.split(r"\s*SQLSTATE: \w{5}|\n== SQL|\n== DataFrame|\n\tat |\nJVM stacktrace", text)[0]
    words = one_line(text)
    return words if len(words) <= MAX_WORDS else words[:MAX_WORDS] + " ..."


def _with_condition(causes: Sequence[Cause], pattern: str) -> Cause | None:
    return next((one for one in causes if re.fullmatch(pattern, one.condition)), None)


def _of_kind(causes: Sequence[Cause], pattern: str) -> Cause | None:
    return next((one for one in causes if re.search(pattern, one.kind)), None)


def _search(causes: Sequence[Cause], pattern: str) -> re.Match[str] | None:
    found = (re.search(pattern, f"{one.kind}: {one.message}") for one in reversed(causes))
    return next((one for one in found if one), None)


# ---- the schemas of a registry ----


def _topics(about: About) -> str:
    return ", ".join(about.topics) or "The topic"


def _new_schema(causes: Sequence[Cause], about: About) -> str | None:
    found = _search(causes, rf"{UNKNOWN_ID}: (\w+ has the schema id \d+)")
    if found is None:
        return None
    return (
        f"{_topics(about)}: {found[1]}, which the plan of the query does "
        "not know. Start the query again, or give to_delta(), to_files() or to_jdbc() a function "
        "that returns the frame: then it is planned again by itself"
    )


def _schema_conflict(causes: Sequence[Cause], about: About) -> str | None:
    found = _search(causes, rf"{CONFLICT}: ([^\n]+?)(?: SQLSTATE|\n|$)")
    if found is None:
        return None
    return (
        f"{_topics(about)}: {found[1]}. Register a version that can read "
        "both, name a version to read by (schema='registry:SUBJECT@VERSION'), or begin after these "
        "records (starting=)"
    )


def _no_protobuf(causes: Sequence[Cause], about: About) -> str | None:
    found = _search(causes, rf"{NO_PROTOBUF}: ([^\n]+)")
    return None if found is None else f"{_topics(about)}: {found[1]}"


# ---- the schema of the rows and of the table ----


def _other_columns(causes: Sequence[Cause], about: About) -> str | None:
    cause = _with_condition(causes, "_LEGACY_ERROR_TEMP_DELTA_0007|DELTA_SCHEMA_MISMATCH")
    if cause is None:
        return None
    if "artition columns do not match" in cause.message:
        return f"The table {about.target} is partitioned by other columns than partition_by says"
    table, _, rows = cause.message.partition("Data schema:")
    there = _fields(table.partition("Table schema:")[2])
    extra = [f"{name} {kind}" for name, kind in _fields(rows).items() if name not in there]
    if not extra:
        return f"The rows do not fit the table {about.target}: {_plain(cause)}"
    columns = ", ".join(extra)
    return (
        f"The rows have {_count(extra, 'column')} that the table {about.target} lacks: {columns}. "
        "Leave it out with select(), or add it to the table: "
        "ALTER TABLE ... ADD COLUMNS, or schema_changes='add'"
    )


def _fields(tree: str) -> dict[str, str]:
    """Return the fields of a schema that is printed as a tree, nested ones with dots.

    Delta prints no bar in front of the top level, one in front of the next, and so on.
    """
    path: list[str] = []
    found = {}
    for line in tree.splitlines():
        match = re.match(r"([ |]*)-- (.+?): (\w+)", line)
        if match:
            depth = match[1].count("|")
            path = [*path[:depth], match[2]]
            found[".".join(path)] = _sql_type(match[3].capitalize() + "Type")
    return found


def _count(names: Sequence[str], word: str) -> str:
    return f"a {word}" if len(names) == 1 else f"{len(names)} {word}s"


_SQL_TYPES: Final = {"Integer": "INT", "Long": "BIGINT", "Short": "SMALLINT", "Byte": "TINYINT"}


def _sql_type(name: str) -> str:
    """Return Spark's `IntegerType` as SQL's INT; types with parts stay as Spark prints them."""
    plain = re.fullmatch(r"(\w+)Type", name)
    return _SQL_TYPES.get(plain[1], plain[1].upper()) if plain else name


def _other_type(causes: Sequence[Cause], about: About) -> str | None:
    merge = _with_condition(causes, "DELTA_FAILED_TO_MERGE_FIELDS")
    types = _search(causes, r"incompatible (?:data|decimal) types? (.+) and (.+)")
    field = re.search(r"fields '(.+?)' and '", merge.message) if merge else None
    if merge is None and types is None:
        return None
    column = f"The column {field[1]}" if field else "A column"
    if types is None:
        return f"{column} has another type than in the table {about.target}: cast it in the query"
    there, here = (_sql_type(name.strip()) for name in types.groups())
    return (
        f"{column} is {here} in the rows and {there} in the table {about.target}: "
        f"cast it in the query, or write to a new table"
    )


def _constraint(causes: Sequence[Cause], about: About) -> str | None:
    check = _with_condition(causes, "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES")
    if check:
        match = re.search(r"CHECK constraint (.+?) violated by row with values:\s*(.*)",
                          check.message, re.DOTALL)  # fmt: skip
        values = re.sub(r"\s*\n?\s*- (\w+) : ", r" \1=", match[2]).strip() if match else ""
        name = match[1] if match else _plain(check)
        return (
            f"The table {about.target} refused a row{' with ' + values if values else ''}: CHECK "
            f"constraint {name}. Filter such rows in the query, or drop the constraint"
        )
    null = _with_condition(causes, "DELTA_NOT_NULL_CONSTRAINT_VIOLATED")
    if null is None:
        return None
    column = re.search(r"column: (.+?)\.?\s*$", null.message)
    return (
        f"The table {about.target} refused a row: the column {column[1] if column else '?'} is "
        "NOT NULL there and null in the row. Filter such rows in the query, or give a default"
    )


# ---- a value that cannot be computed ----


def _topic_task(causes: Sequence[Cause], about: About) -> str | None:
    """A task of `to_topic`; see `sinks.topic_task` for its exceptions."""
    found = _search(causes, r"\b(NotWritten|Refused|SetBack)Error: (.+)")
    if found is None:
        return None
    if found[1] == "SetBack":
        return set_back(about.checkpoint, found[2].strip())
    if found[1] == "Refused":
        return (
            f"{about.servers} refused the rows for {about.target}: {found[2].strip()}. Nothing of "
            "these transactions is visible; the next start continues from the checkpoint"
        )
    return (
        f"{about.target} could not be written: {found[2].strip()}. Check {about.servers}; the next "
        "start continues from the checkpoint"
    )


def _python_function(causes: Sequence[Cause], about: About) -> str | None:
    cause = next((one for one in causes if _is_of_python(one)), None)
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
        f"{_while_reading(about)}. Handle such a value in the function, or filter it before"
    )


def _is_of_python(cause: Cause) -> bool:
    worker = "PythonException" in cause.kind or "Python worker" in cause.message
    return worker and "Traceback (most recent call last)" in cause.message


_ROW_CONDITIONS: Final = (
    r"CAST_INVALID_INPUT|CAST_OVERFLOW\w*|DIVIDE_BY_ZERO|INTERVAL_DIVIDED_BY_ZERO|"
    r"REMAINDER_BY_ZERO|ARITHMETIC_OVERFLOW|BINARY_ARITHMETIC_OVERFLOW|"
    r"NUMERIC_VALUE_OUT_OF_RANGE\S*|INVALID_ARRAY_INDEX\w*|MAP_KEY_DOES_NOT_EXIST|"
    r"CANNOT_PARSE_\w+|CONVERSION_INVALID_INPUT|INVALID_PARAMETER_VALUE\S*|NULL_MAP_KEY|"
    r"DUPLICATED_MAP_KEY|USER_RAISED_EXCEPTION|MALFORMED_\w+\S*|FAILED_EXECUTE_UDF|"
    r"INVALID_FRACTION_OF_SECOND|DATETIME_OVERFLOW|ROW_VALUE_IS_NULL|NOT_NULL_ASSERT_VIOLATION"
)


def _row(causes: Sequence[Cause], about: About) -> str | None:
    cause = _with_condition(causes, _ROW_CONDITIONS)
    if cause is None:
        return None
    context = re.search(r"== SQL \(.*?\) ==\s*\n(.+)", cause.message)
    # DataFrame code has no SQL text; Spark names the function and the line that called it.
    call = re.search(r'== DataFrame ==\s*\n"(.+?)" was called from\s*\n(\S.*)', cause.message)
    where = f" in {context[1].strip()!r}" if context else ""
    where = f" in {call[1]}() at {call[2].strip()}" if call else where
    return f"A row could not be computed{where}{_while_reading(about)}: {_plain(cause)}"


def _unordered_key(causes: Sequence[Cause], about: About) -> str | None:
    found = _search(causes, rf"{UNORDERED} (\{{.*?\}})(?:\s|$)")
    if found is None:
        return None
    topics = ", ".join(about.topics) or "a topic"
    return (
        f"The key {found[1]} has records whose order is not known: they are not all in one "
        f"partition of {topics}. Name the column that orders them, such as order_by='timestamp'"
    )


def _shared_place(causes: Sequence[Cause], about: About) -> str | None:
    found = _search(causes, rf"{SHARED} (\{{.*?\}})(?:\s|$)")
    if found is None:
        return None
    topics = ", ".join(about.topics) or "a topic"
    return (
        f"The key {found[1]} has several rows of one record of {topics}, and nothing says which of "
        "them is the last: an explode, a join or a union of the query makes them. Add the column "
        "that tells them apart to keys=, or name one that orders them in order_by"
    )


def _while_reading(about: About) -> str:
    return f" while it read {about.place}" if about.place else ""


# ---- places: folders, file systems, disks ----

_FILE_SYSTEMS: Final = (
    ("s3a", "org.apache.hadoop:hadoop-aws"),
    ("abfs", "org.apache.hadoop:hadoop-azure"),
    ("azurebfs", "org.apache.hadoop:hadoop-azure"),
    ("wasb", "org.apache.hadoop:hadoop-azure"),
    ("gs", "com.google.cloud.bigdataoss:gcs-connector"),
)


def _file_system(causes: Sequence[Cause], about: About) -> str | None:
    missing = _search(causes, r"(?:Class |NotFoundException: )(\S*FileSystem) not found")
    scheme = _search(causes, r'No FileSystem for scheme:? "?(\w+)')
    if missing is None and scheme is None:
        return None
    if scheme and scheme[1] == "s3":
        return "Hadoop has no file system for s3://: write s3a:// instead"
    found = missing[1] if missing else f".{scheme[1]}." if scheme else ""
    for name, package in _FILE_SYSTEMS:
        if f".{name}." in found or f".{name}s." in found:
            version = about.hadoop if "hadoop:" in package else "<version>"
            return (
                f"Spark has no jar for the file system of {name}://: start it with "
                f"session(..., packages=['{package}:{version}'])"
            )
    return f"Spark has no jar for this file system ({found.strip('.')}): add it with packages= "


def _checkpoint_file(causes: Sequence[Cause], about: About) -> str | None:
    taken = _search(causes, r"Destination exists and is not a directory: (\S+)")
    if taken is None:
        return None
    return (
        f"The checkpoint {taken[1]} is a file: give a folder, which is created if it does not exist"
    )


def _disk_full(causes: Sequence[Cause], about: About) -> str | None:
    if not _search(causes, r"No space left on device|Disk quota exceeded|not enough space"):
        return None
    place = _search(causes, r"(?:writing rows to|[Cc]annot create) (\S+?)\.?(?:\s|$)")
    where = f" while writing {place[1].removeprefix('file:')}" if place else ""
    return (
        f"The disk is full{where} (No space left on device). Free some space: the next start "
        "continues from the checkpoint"
    )


def _not_writable(causes: Sequence[Cause], about: About) -> str | None:
    path = _with_condition(causes, "DELTA_CANNOT_CREATE_LOG_PATH")
    denied = _search(
        causes,
        r"(?:AccessControl|AccessDenied)Exception: ?(?:Permission denied)?.*|Permission denied|"
        r"Read-only file system|Mkdirs failed to create \S+|Parent path is not a directory: \S+|"
        r"Access ?Denied|403 Forbidden|Operation not permitted",
    )
    if path is None and denied is None:
        return None
    place = re.search(r"[Cc]annot create (\S+)", path.message) if path else None
    where = place[1].removeprefix("file:") if place else about.target
    why = f" ({_shorten(denied[0])})" if denied else ""
    return (
        f"Spark cannot write to {where}{why}. Check that the path exists, that "
        "it is a folder and that this user may write to it"
    )


def _shorten(text: str) -> str:
    words = one_line(re.sub(r"^[\w.$]*Exception: ?", "", text))
    return words[:150]


# ---- databases ----


def _database(causes: Sequence[Cause], about: About) -> str | None:
    """A database's own refusal; the codes are PostgreSQL's (SQLSTATE, appendix A of its manual)."""
    cause = _with_condition(causes, r"SQLSTATE \w{5}")
    if cause is None:
        return None
    words = one_line(re.sub(r"^(?:ERROR|FATAL|PANIC): ", "", cause.message))
    reason = (words if len(words) <= MAX_WORDS else words[:MAX_WORDS] + " ...").rstrip(".")
    state = cause.condition.removeprefix("SQLSTATE ")
    if state.startswith("08") and (host := _of_kind(causes, r"\bUnknownHostException$")):
        # The driver's own words are "The connection attempt failed".
        return (
            f"The host of the database of {about.target} is not known: {_plain(host)}. Correct "
            "url=, or the name service; the next start continues from the checkpoint"
        )
    for pattern, sentence in _DATABASE:
        if re.match(pattern, state):
            return sentence.format(target=about.target, reason=reason)
    return f"The database refused to write {about.target}: {reason} ({cause.condition})"


_DATABASE: Final = (
    (
        r"28",
        "The database of {target} refused the login: {reason}. Check user= and password=",
    ),
    (
        r"08|57P0|53300",
        "The database of {target} does not answer: {reason}. Start it: the next start continues "
        "from the checkpoint",
    ),
    (
        r"3D000",
        "There is no such database for {target}: {reason}. Create it, or correct url=",
    ),
    (
        r"53100",
        "The disk of the database of {target} is full: {reason}. Free some space: the next start "
        "continues from the checkpoint",
    ),
    (
        r"42501",
        "This user may not write {target}: {reason}. GRANT the right in the database",
    ),
    (
        r"42P01|42703",
        "{target} was changed or deleted while the query ran: {reason}. Start again to compare its "
        "columns",
    ),
    (
        r"23",
        "The database refused a row of {target}: {reason}. Filter such rows in the query, or drop "
        "the constraint",
    ),
    (
        r"22|42804",
        "The database refused a value for {target}: {reason}. Cast it in the query, or filter such "
        "rows",
    ),
)


# ---- other runs ----


def _second_run(causes: Sequence[Cause], about: About) -> str | None:
    condition = "CONCURRENT_STREAM_LOG_UPDATE|DELTA_CONCURRENT_TRANSACTION|CONCURRENT_QUERY"
    if not _with_condition(causes, condition):
        return None
    return (
        f"Another run uses the checkpoint {about.checkpoint}, and one must end. Stop one of them, "
        "then start again: the batches are in the table once"
    )


def _conflict(causes: Sequence[Cause], about: About) -> str | None:
    cause = _of_kind(causes, r"io\.delta\.exceptions\.\w+Exception|CommitFailedException")
    if cause is None:
        return None
    by = re.search(r'"operation":"(.+?)"', cause.message)
    return (
        f"Another job committed to {about.target} at the same time{f' ({by[1]})' if by else ''}: "
        f"{_plain(cause).partition(' Conflicting commit')[0]} Start again when the other job is "
        "done, or let the two write at different times"
    )


def _changed_query(causes: Sequence[Cause], about: About) -> str | None:
    cause = _with_condition(
        causes,
        r"STREAMING_STATEFUL_OPERATOR_NOT_MATCH_IN_STATE_METADATA|STATE_STORE_\w*SCHEMA\w*\S*|"
        r"STATE_STORE_INVALID_\w+",
    )
    if cause is None:
        return None
    return (
        f"The query no longer fits the state in {about.checkpoint}: its aggregation, join or "
        f"deduplication was changed. Give it a new checkpoint ({_plain(cause)})"
    )


# ---- Kafka ----


def _kafka(causes: Sequence[Cause], about: About) -> str | None:
    lost = _with_condition(causes, r"KAFKA_DATA_LOSS\.\S+") or next(
        (one for one in causes if re.search(r"failOnDataLoss|data may have been", one.message)),
        None,
    )
    if lost:
        text = re.sub(r"Some data may have been .*", "", _plain(lost), flags=re.DOTALL)
        return (
            f"Records that were not read yet are no longer on {about.servers} (retention or a "
            f"deleted topic): {text.strip()} Set on_lost='skip' to continue with "
            "the records that remain"
        )
    cause = _of_kind(causes, r"^org\.apache\.kafka\.common\.(errors\.|KafkaException)")
    if cause is None:
        return None
    kind = cause.short_kind
    topics = ", ".join(about.topics) or "the topic"
    if re.match("UnknownTopic", kind):
        return f"{topics} is no longer on {about.servers}: it was deleted while the query ran"
    if login := _of_kind(causes, r"^javax\.security\.auth\.login\.LoginException$"):
        # Before the broker is asked: a token endpoint (KIP-768) gives no token, for example.
        return f"The query cannot log in: {_plain(login)}. Check the sasl.* settings in kafka="
    if "Authentication" in kind or "Ssl" in kind:
        return (
            f"{about.servers} refused the login of the query: {_plain(cause)}. Check the sasl.* "
            "and ssl.* settings in kafka="
        )
    if "Authorization" in kind:
        return (
            f"This user may not read {topics} on {about.servers}: {_plain(cause)}. Allow it: READ "
            "and DESCRIBE on the topic"
        )
    if "RecordTooLarge" in kind or "Corrupt" in kind:
        return f"{about.servers} sent a batch of records that cannot be read: {_plain(cause)}"
    bootstrap = _search(causes, r"No resolvable bootstrap urls")
    if bootstrap:
        return f"The name in bootstrap_servers={about.servers!r} cannot be resolved"
    return f"{about.servers} does not answer: {_plain(cause)}. Start it: the next start continues "\
        "from the checkpoint"  # fmt: skip


def _kafka_poll(causes: Sequence[Cause], about: About) -> str | None:
    if not _search(causes, r"[Cc]annot fetch record"):
        return None
    return (
        f"{about.servers} sent no records for too long: {_plain(causes[-1])}. Start it: the next "
        "start continues from the checkpoint"
    )


# ---- Spark itself ----


def _memory(causes: Sequence[Cause], about: About) -> str | None:
    found = _search(causes, r"OutOfMemoryError:? ?([\w ]*)|exit code 52\b|Cannot allocate memory")
    if found is None:
        return None
    what = (found.group(1) or "").strip()
    return (
        f"Spark ran out of memory{f' ({what})' if what else ''}. Give it more, such as "
        "session(conf={'spark.driver.memory': '4g'}). A batch that has begun keeps its "
        "size: for smaller ones use topic(max_rows=), a new checkpoint and starting='table'"
    )


def _ended(causes: Sequence[Cause], about: About) -> str | None:
    ended = _search(causes, r"Spark's process ended.*")
    if ended:
        return f"{ended[0].rstrip('.')}. The next start continues from the checkpoint"
    if _search(causes, r"SparkContext was shut ?down|stopped SparkContext|SparkContext .*stopped"):
        return (
            "The Spark session was stopped during a batch. The next start continues from the "
            "checkpoint"
        )
    if _search(causes, r"[Jj]ob \d* ?cancelled|part of cancellation of all jobs"):
        return "A job of the query was cancelled. The next start continues from the checkpoint"
    return None


def _storage(causes: Sequence[Cause], about: About) -> str | None:
    found = _search(
        causes,
        r"SlowDown|[Ss]tatus [Cc]ode: 50[0234]\b|(?:SocketTimeout|Connect|NoRouteToHost|Socket)"
        r"Exception:.*|safe mode|Unable to execute HTTP request.*",
    )
    if found is None:
        return None
    return (
        f"The storage of {about.target} does not answer or slows requests down "
        f"({_shorten(found[0])}). The next start continues from the checkpoint"
    )


_RULES: Final[tuple[Callable[[Sequence[Cause], About], str | None], ...]] = (
    _new_schema,
    _schema_conflict,
    _no_protobuf,
    _database,
    _disk_full,
    _memory,
    _other_columns,
    _other_type,
    _constraint,
    _topic_task,
    _python_function,
    _unordered_key,
    _shared_place,
    _row,
    _file_system,
    _checkpoint_file,
    _second_run,
    _conflict,
    _changed_query,
    _kafka,
    _kafka_poll,
    _not_writable,
    _ended,
    _storage,
)
