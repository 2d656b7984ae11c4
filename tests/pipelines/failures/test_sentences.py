"""Chains of causes, as Spark 4.0.0 and Delta 4.0.1 gave them, become one line each."""

import pytest

from ottla.pipelines.failures.cause import Cause, one_line
from ottla.pipelines.failures.known import About
from ottla.pipelines.failures.sentences import sentence_for
from ottla.pipelines.sinks.registered import SINKS

ABOUT = About(
    query="flights",
    target="/lake/flights",
    checkpoint="/cp/flights",
    topics=("flights",),
    servers="localhost:9092",
    hadoop="3.4.1",
    failures=tuple(known for kind in SINKS for known in kind.failures),
)
ANALYSIS = "org.apache.spark.sql.delta.DeltaAnalysisException"
SCHEMAS = """[_LEGACY_ERROR_TEMP_DELTA_0007] A schema mismatch detected when writing to the Delta \
table (Table ID: 513e6bef).
To enable schema migration using DataFrameWriter or DataStreamWriter, please set:
'.option("mergeSchema", "true")'.

Table schema:
root
-- id: long (nullable = true)
-- place: struct (nullable = true)
    |-- name: string (nullable = true)


Data schema:
root
-- id: long (nullable = true)
-- place: struct (nullable = true)
    |-- name: string (nullable = true)
    |-- height: double (nullable = true)
-- extra: integer (nullable = true)

"""
WORKER = """
  An exception was thrown from the Python worker. Please see the stack trace below.
Traceback (most recent call last):
  File "/app/job.py", line 129, in bad
    raise ValueError("no sevens here")
ValueError: no sevens here

"""
CAST = """[CAST_INVALID_INPUT] The value 'w0' of the type "STRING" cannot be cast to "INT" because \
it is malformed. Use `try_cast`. SQLSTATE: 22018
== SQL (line 1, position 1) ==
cast(value.word as int) as n
^^^^^^^^^^^^^^^^^^^^^^^
"""
DATAFRAME = """[DIVIDE_BY_ZERO] Division by zero. SQLSTATE: 22012
== DataFrame ==
"__truediv__" was called from
/app/job.py:12
"""
CONFLICT = (
    "[DELTA_METADATA_CHANGED] MetadataChangedException: The metadata of the Delta table has been "
    "changed by a concurrent update. Please try the operation again.\nConflicting commit: "
    '{"timestamp":1795320655968,"operation":"SET TBLPROPERTIES"}'
)
KAFKA = "org.apache.kafka.common.errors."


@pytest.mark.parametrize(
    ("causes", "parts"),
    [
        (
            [Cause(ANALYSIS, SCHEMAS, "_LEGACY_ERROR_TEMP_DELTA_0007")],
            ["2 columns that the table /lake/flights lacks: place.height DOUBLE, extra INT.",
             "select()"],
        ),
        (
            [
                Cause(ANALYSIS, "Failed to merge fields 'word' and 'word'",
                      "DELTA_FAILED_TO_MERGE_FIELDS"),
                Cause(ANALYSIS, "Failed to merge incompatible data types IntegerType and "
                      "StringType", "DELTA_MERGE_INCOMPATIBLE_DATATYPE"),
            ],
            ["The column word is STRING in the rows and INT in the table /lake/flights", "cast"],
        ),
        (
            [Cause(ANALYSIS, 'Cannot up cast s.row.`amount` from "DOUBLE" to "INT".\nThe type path',
                   "CANNOT_UP_CAST_DATATYPE")],
            ["The column amount is DOUBLE in the rows and INT in the table /lake/flights", "cast"],
        ),
        (
            [Cause("S", "Cannot find main error class 'DELTA_MERGE_UNRESOLVED_EXPRESSION'")],
            ["The table /lake/flights was changed while the query ran, and lacks a column"],
        ),
        (
            [Cause("io.D", "CHECK constraint small (id < 5) violated by row with values:\n - id : "
                   "8\n - word : x", "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES")],
            ["refused a row with id=8 word=x: CHECK constraint small (id < 5)."],
        ),
        (
            [Cause("S", "Job aborted"),
             Cause("R", "[USER_RAISED_EXCEPTION] OTTLA_UNORDERED_KEY {\"id\":7} SQLSTATE: P0001",
                   "USER_RAISED_EXCEPTION")],
            ['The key {"id":7} has records whose order is not known: they are not all in one '
             "partition of flights.", "order_by='timestamp'"],
        ),
        (
            [Cause("R", "[USER_RAISED_EXCEPTION] OTTLA_SHARED_POSITION {\"id\":7} SQLSTATE: P0001",
                   "USER_RAISED_EXCEPTION")],
            ['The key {"id":7} has several rows of one record of flights, and nothing says which',
             "Add the column that tells them apart to keys="],
        ),
        (
            [Cause("io.D", "This table is configured to only allow appends. If you would like",
                   "DELTA_CANNOT_MODIFY_APPEND_ONLY")],
            ["takes appended rows alone (delta.appendOnly), and a batch with keys changes rows"],
        ),
        (
            [Cause("io.D", "NOT NULL constraint violated for column: word.\n",
                   "DELTA_NOT_NULL_CONSTRAINT_VIOLATED")],
            ["the column word is NOT NULL there and null in the row"],
        ),
        (
            [Cause("pyspark.errors.exceptions.captured.PythonException", WORKER)],
            ["raised ValueError: no sevens here (/app/job.py, line 129, in bad)."],
        ),
        (
            [Cause("x.P", WORKER + "\ntopic_task.RefusedError: out: Too large (X)\n")],
            ["refused the rows for /lake/flights: out: Too large (X). Nothing of these"],
        ),
        (
            [Cause("x.P", WORKER + "\ntopic_task.SetBackError: topic out has batch 4\n")],
            ["was set back, for example by a backup", "or is a copy: topic out has batch 4. To"],
        ),
        (
            [Cause("x.P", WORKER + "\ntopic_task.NotWrittenError: out: Away (Y)\n")],
            ["/lake/flights could not be written: out: Away (Y). Check"],
        ),
        (
            [Cause("org.apache.spark.SparkNumberFormatException", CAST, "CAST_INVALID_INPUT")],
            ["in 'cast(value.word as int) as n': The value 'w0' of the type", "`try_cast`"],
        ),
        (
            [Cause("org.apache.spark.SparkArithmeticException", DATAFRAME, "DIVIDE_BY_ZERO")],
            ["in __truediv__() at /app/job.py:12: Division by zero."],
        ),
        (
            [Cause("java.lang.RuntimeException", "java.lang.ClassNotFoundException: Class "
                   "org.apache.hadoop.fs.s3a.S3AFileSystem not found")],
            ["s3a://", "packages=['org.apache.hadoop:hadoop-aws:3.4.1']"],
        ),
        (
            [Cause("org.apache.hadoop.fs.UnsupportedFileSystemException",
                   'No FileSystem for scheme "s3"')],
            ["write s3a:// instead"],
        ),
        (
            [Cause("org.apache.kafka.common.KafkaException",
                   "Failed to create new KafkaAdminClient"),
             Cause("org.apache.kafka.common.KafkaException", "Failed to create new NetworkClient"),
             Cause("javax.security.auth.login.LoginException",
                   "An internal error occurred while retrieving token from callback handler")],
            ["The query cannot log in: An internal error occurred while retrieving token",
             "Check the sasl.* settings"],
        ),
        (
            [Cause("org.apache.hadoop.fs.UnsupportedFileSystemException",
                   'No FileSystem for scheme "gs"')],
            ["gs://", "gcs-connector"],
        ),
        (
            [Cause("org.apache.hadoop.fs.FileAlreadyExistsException",
                   "Destination exists and is not a directory: /cp/flights")],
            ["The checkpoint /cp/flights is a file"],
        ),
        (
            [Cause("d.DeltaIOException", "[X] Cannot create file:/lake/flights/_delta_log",
                   "DELTA_CANNOT_CREATE_LOG_PATH")],
            ["cannot write to /lake/flights/_delta_log.", "this user may write"],
        ),
        (
            [Cause("org.apache.spark.SparkException", "Task failed while writing rows to "
                   "file:/lake/flights.", "TASK_WRITE_FAILED"),
             Cause("java.nio.file.AccessDeniedException", "s3a://lake/flights: AccessDenied")],
            ["cannot write to /lake/flights (s3a://lake/flights: AccessDenied)"],
        ),
        (
            [Cause("java.io.FileNotFoundException", "/cp/flights/offsets/.3.9e95.tmp (Read-only "
                   "file system)")],
            ["cannot write to /cp/flights/offsets (Read-only file system)"],
        ),
        (
            [Cause("java.io.FileNotFoundException", "/lake/flights/day=1/part-0.parquet "
                   "(Permission denied)")],
            ["cannot write to /lake/flights (Permission denied)"],
        ),
        (
            [Cause("org.apache.spark.SparkException", "[TASK_WRITE_FAILED] Task failed while "
                   "writing rows to file:/small/t. SQLSTATE: 58030", "TASK_WRITE_FAILED"),
             Cause("java.io.IOException", "No space left on device")],
            ["The disk is full while writing /small/t (No space left on device)"],
        ),
        (
            [Cause("java.lang.OutOfMemoryError", "Java heap space")],
            ["out of memory (Java heap space)", "spark.driver.memory", "max_rows="],
        ),
        (
            [Cause("ProcessEnded", "Spark's process ended (exit code 134)")],
            ["Spark's process ended (exit code 134). The next start continues"],
        ),
        (
            [Cause("org.apache.spark.SparkException", "Concurrent update to the log.",
                   "CONCURRENT_STREAM_LOG_UPDATE")],
            ["Another run uses the checkpoint /cp/flights"],
        ),
        (
            [Cause("io.delta.exceptions.ConcurrentTransactionException", "x",
                   "DELTA_CONCURRENT_TRANSACTION")],
            ["Another run uses the checkpoint /cp/flights"],
        ),
        (
            [Cause("io.delta.exceptions.MetadataChangedException", CONFLICT,
                   "DELTA_METADATA_CHANGED")],
            ["Another job committed to /lake/flights at the same time (SET TBLPROPERTIES)"],
        ),
        (
            [Cause("java.util.concurrent.ExecutionException", "x"),
             Cause(KAFKA + "UnknownTopicOrPartitionException", "This server does not host")],
            ["flights is no longer on localhost:9092"],
        ),
        (
            [Cause("org.apache.spark.SparkException", "Job aborted"),
             Cause("java.lang.ArithmeticException", "long overflow")],
            ["A time is after the year 294247", "a record of flights", "starting={0: 4711}"],
        ),
        (
            [Cause(KAFKA + "TopicAuthorizationException", "Not authorized to access topics")],
            ["may not read flights on localhost:9092", "READ and DESCRIBE"],
        ),
        (
            [Cause(KAFKA + "SaslAuthenticationException", "Authentication failed")],
            ["localhost:9092 refused the login", "sasl.*"],
        ),
        (
            [Cause(KAFKA + "TimeoutException", "Timed out waiting for a node assignment.")],
            ["localhost:9092 does not answer: Timed out waiting"],
        ),
        (
            [Cause("org.apache.spark.sql.kafka010.KafkaIllegalStateException",
                   "[KAFKA_DATA_LOSS.START_OFFSET_RESET] Some data may have been lost: Kafka "
                   "partition flights-0's start offset was reset.",
                   "KAFKA_DATA_LOSS.START_OFFSET_RESET")],
            ["no longer on localhost:9092", "on_lost='skip'"],
        ),
        (
            [Cause("org.apache.spark.SparkException",
                   "Job aborted because SparkContext was shut down")],
            ["The Spark session was stopped during a batch"],
        ),
        (
            [Cause("org.apache.spark.SparkException", "Job 7 cancelled part of cancellation of all "
                   "jobs")],
            ["A job of the query was cancelled"],
        ),
        (
            [Cause("java.io.IOException", "SlowDown: reduce your request rate (Status Code: 503)")],
            ["The storage of /lake/flights does not answer or slows requests down"],
        ),
        (
            [Cause("org.apache.spark.sql.AnalysisException", "[A.B] Invalid output mode: append. "
                   "SQLSTATE: 42KDE", "A.B")],
            ["Invalid output mode: append."],
        ),
        *(
            (
                [Cause("org.postgresql.util.PSQLException", f"ERROR: why\n  Detail: {state}",
                       f"SQLSTATE {state}"),
                 Cause("java.net.ConnectException", "refused")],
                [words, f"why Detail: {state}."],
            )
            for state, words in (
                ("28P01", "refused the login"),
                ("08006", "The database of /lake/flights does not answer"),
                ("3D000", "There is no such database for /lake/flights"),
                ("53100", "The disk of the database of /lake/flights is full"),
                ("42501", "This user may not write /lake/flights"),
                ("42703", "/lake/flights was changed or deleted while the query ran"),
                ("23505", "The database refused a row of /lake/flights"),
                ("22P02", "The database refused a value for /lake/flights"),
            )
        ),
        (
            [Cause("org.postgresql.util.PSQLException", "The connection attempt failed.",
                   "SQLSTATE 08001"),
             Cause("java.net.UnknownHostException", "db.example")],
            ["The host of the database of /lake/flights is not known: db.example", "Correct url="],
        ),
        ([Cause("x.y.Outer", "wrapped"), Cause("x.y.Inner", "why\n\tat a.b")], ["Inner: why"]),
        ([Cause("x.Silent")], ["Silent"]),
    ],
)  # fmt: skip
def test_each_failure_is_one_line_with_cause_and_way_out(
    causes: list[Cause], parts: list[str]
) -> None:
    said = sentence_for(causes, ABOUT)

    assert "\n" not in said
    for part in parts:
        assert part in said
    for noise in ("SQLSTATE", "[DELTA", "[CAST", "\tat ", "mergeSchema"):
        assert noise not in said


def test_the_place_that_was_read_is_named() -> None:
    about = About(ranges="flights partition 0, offsets 3 to 9")

    said = sentence_for([Cause("x.PythonException", WORKER)], about)

    assert "(/app/job.py, line 129, in bad) while it read flights partition 0, offsets 3 to 9" in (
        said
    )


def test_a_long_text_is_cut() -> None:
    assert len(one_line("word " * 10_000)) < 1_000
    assert one_line(" a\n b\t c ") == "a b c"


RAISED = "org.apache.spark.SparkRuntimeException"


def test_data_of_a_schema_that_the_plan_does_not_know() -> None:
    message = (
        "[USER_RAISED_EXCEPTION] OTTLA_UNKNOWN_SCHEMA_ID: value has the schema id 9 SQLSTATE: P0001"
    )
    assert sentence_for([Cause(RAISED, message)], ABOUT) == (
        "flights: value has the schema id 9, which the plan of the query does not know. Start the "
        "query again, or give what writes, such as to_delta(), a function that returns the frame: "
        "then it is planned again by itself"
    )


def test_executors_without_the_package_protobuf() -> None:
    message = (
        "Traceback (most recent call last):\n  File x\nRuntimeError: OTTLA_NO_PROTOBUF: the "
        "executors' Python lacks the package protobuf. Install it there: pip install protobuf\n"
    )
    cause = Cause("org.apache.spark.api.python.PythonException", message)
    assert sentence_for([cause], About(topics=("flights",))) == (
        "flights: the executors' Python lacks the package protobuf. Install it there: pip install "
        "protobuf"
    )


def test_data_of_a_schema_that_cannot_be_read() -> None:
    message = (
        "[USER_RAISED_EXCEPTION] OTTLA_SCHEMA_CONFLICT: value: version 2 of f (schema 9) cannot "
        "read data of version 1 of f (schema 3): a is missing SQLSTATE: P0001"
    )
    found = sentence_for([Cause(RAISED, message)], ABOUT)
    assert found.startswith(
        "flights: value: version 2 of f (schema 9) cannot read data of version 1 of f (schema 3): "
        "a is missing. Register a version that can read both"
    )
