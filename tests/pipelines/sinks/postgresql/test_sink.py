"""Batches into a real PostgreSQL: values, order, batches that are written twice, refusals."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from components.postgres import PASSWORD, USER, Postgres, fetched_driver
from components.postgres import PostgresError as PostgresError
from py4j.protocol import Py4JJavaError

from components import fixture
from ottla.pipelines import PipelineError, latest_by_key
from ottla.pipelines.failures.known import About
from ottla.pipelines.failures.sentences import sentence_for
from ottla.pipelines.sinks.postgresql import sink as jdbc
from ottla.pipelines.sinks.postgresql.settings import read_database
from ottla.pipelines.sinks.postgresql.sink import JdbcSink, UnorderedKeyError
from ottla.pipelines.sinks.postgresql.table import read_table_name
from ottla.pipelines.spark.jvm.arrow_texts import chunks_of
from ottla.pipelines.spark.jvm.causes import causes_of
from ottla.pipelines.target.commit_metadata import CommitMetadata
from ottla.pipelines.target.constraints import fitting, refused
from ottla.pipelines.target.keyed_table import read_keyed_table
from ottla.pipelines.target.port import NO_VERSION, Batch

pytestmark = [pytest.mark.spark, pytest.mark.full]
postgres = fixture.postgres

SCHEMA = "id INT, word STRING, partition INT, offset BIGINT, tombstone BOOLEAN"
Make = Callable[..., JdbcSink]


@pytest.fixture
def make(spark: Any, postgres: Postgres) -> Make:
    """Make the sink of a frame, and its table."""
    spark.sql(f"ADD JAR '{fetched_driver()}'")
    database = read_database(postgres.url, USER, PASSWORD)

    def made(frame: Any, name: str = "t", **how: Any) -> JdbcSink:
        keys = how.pop("keys", ())
        ordering = {one: how.pop(one) for one in ("order_by", "deletes") if one in how}
        keyed = read_keyed_table(frame.schema, keys, **ordering) if keys else None
        sink = JdbcSink(spark, database, read_table_name(name), frame.schema, keyed=keyed, **how)
        sink.check()
        sink.make()
        return sink

    return made


@pytest.fixture(params=["computed first", "copied while computed"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both ways in which rows come to the connection."""
    if request.param == "copied while computed":
        monkeypatch.setattr(jdbc, "STREAMED_BYTES", 0)


def batch(number: int = 0, query: str = "query", *, once: bool = True) -> Batch:
    return Batch(query, number, f'{{"batch": {number}}}', once)


def test_values_of_each_type_arrive_as_they_are(spark: Any, postgres: Postgres, make: Make) -> None:
    frame = spark.sql(
        "SELECT true AS b, 1Y AS y, 2S AS s, 3 AS i, 4L AS l, float('NaN') AS f, "
        "double('-Infinity') AS d, 12.340BD AS n, 'tab\\t nl\\n cr\\r \\\\N \\\\. ü\"' AS t, "
        "X'00FF' AS x, DATE'2024-02-29' AS dd, "
        "from_utc_timestamp(TIMESTAMP'2026-10-25 00:30:00', 'UTC') AS ts, "
        "TIMESTAMP_NTZ'2026-10-25 02:30:00.123456' AS tn, array(1, null) AS a, "
        "map('k', struct('v\\t' AS v)) AS m, string(null) AS nothing, '' AS empty, "
        "array(TIMESTAMP_NTZ'2026-10-25 02:30:00.123456') AS times"
    )
    name = 'select "x"'
    sink = make(frame, name)
    assert sink.write(frame, batch()) == NO_VERSION

    table = '"select ""x"""'
    (row,) = postgres.query(f"SELECT * FROM {table}")
    assert row[:8] == ["t", "1", "2", "3", "4", "NaN", "-Infinity", "12.340"]
    assert row[8] == 'tab\t nl\n cr\r \\N \\. ü"'
    assert row[9:11] == ["\\x00ff", "2024-02-29"]
    assert row[12:15] == ["2026-10-25 02:30:00.123456", "[1, null]", '{"k": {"v": "v\\t"}}']
    assert row[17] == '["2026-10-25T02:30:00.123456"]'
    (found,) = postgres.query(
        f"SELECT extract(epoch FROM ts)::bigint, nothing IS NULL, empty = '' FROM {table}"
    )
    seconds = frame.selectExpr("unix_seconds(ts)").first()[0]
    assert found == [str(seconds), "t", "t"]


@pytest.mark.usefixtures("way")
def test_rows_of_several_chunks_and_partitions_arrive_as_they_are(
    spark: Any, postgres: Postgres, make: Make
) -> None:
    word = "if(id % 3 = 0, concat('\\\\', id, '\\t\\n\\r ü'), repeat('x', int(id % 50)))"
    rows = spark.range(0, 27_000, 1, 3).where("id NOT BETWEEN 9000 AND 17999")
    frame = rows.selectExpr("id", f"{word} AS word")
    make(frame).write(frame, batch())

    found = {int(row[0]): row[1] for row in postgres.query("SELECT id, word FROM t")}
    assert found == {
        number: f"\\{number}\t\n\r ü" if number % 3 == 0 else "x" * (number % 50)
        for number in (*range(9_000), *range(18_000, 27_000))
    }


def test_texts_that_look_like_parts_of_a_line_arrive_as_they_are(
    spark: Any, postgres: Postgres, make: Make
) -> None:
    texts = [
        "\x01",
        "\x01,\x01\n",
        "a\x01\x01b",
        ",",
        '"',
        "\\.",
        "\\.\n\\.",
        "\r",
        "\\N",
        "",
        None,
    ]
    frame = spark.createDataFrame(enumerate(texts), "id INT, word STRING")
    frame = frame.selectExpr("id", "word", "array(word, ',') AS more")
    make(frame).write(frame, batch())
    found = postgres.query("SELECT word, word IS NULL, more FROM t ORDER BY id")
    assert [row[:2] for row in found] == [
        [text or "", "t" if text is None else "f"] for text in texts
    ]
    assert [json.loads(row[2])[0] for row in found] == texts

    alone = frame.select("word")
    make(alone, "alone").write(alone, batch())
    assert postgres.query("SELECT count(*), count(word) FROM alone") == [["11", "10"]]


@pytest.mark.usefixtures("way")
def test_a_setting_that_compresses_the_rows_is_refused(
    spark: Any, postgres: Postgres, make: Make
) -> None:
    frame = spark.range(3)
    sink = make(frame)
    setting = "spark.sql.execution.arrow.compression.codec"
    spark.sparkContext.setLocalProperty(setting, "zstd")
    try:
        if spark.version < "4.1":  # It does not compress.
            assert sink.write(frame, batch()) == NO_VERSION
            return
        with pytest.raises(PipelineError, match=f"leave out the setting {setting}"):
            sink.write(frame, batch())
        assert sink.last_batch("query") is None
    finally:
        spark.sparkContext.setLocalProperty(setting, None)


def test_both_moments_of_a_repeated_hour_arrive(spark: Any, postgres: Postgres, make: Make) -> None:
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    try:
        moments = (1792888200, 1792891800)  # 02:30 twice, on 2026-10-25
        frame = spark.createDataFrame([(one,) for one in moments], "s BIGINT")
        frame = frame.selectExpr("timestamp_seconds(s) AS at")
        make(frame).write(frame, batch())
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)
    found = postgres.query("SELECT extract(epoch FROM at)::bigint FROM t ORDER BY 1")
    assert [int(row[0]) for row in found] == list(moments)


def test_a_database_that_lacks_batches_takes_no_more(
    spark: Any, postgres: Postgres, make: Make
) -> None:
    """As after a failover to a replica that had not got the last batches."""
    frame = spark.range(3)
    sink = make(frame)
    sink.write(frame, batch(3))
    with pytest.raises(PipelineError, match=r"batches up to 3 .* the database was set back"):
        sink.write(frame, replace(batch(5), checkpoint="cp", promised=4))
    assert postgres.query("SELECT count(*) FROM t") == [["3"]]
    assert sink.write(frame, replace(batch(4), checkpoint="cp", promised=3)) == NO_VERSION


def test_a_batch_that_does_not_begin_where_the_one_before_ends_is_refused(
    spark: Any, make: Make
) -> None:
    """A run on a copy of the checkpoint wrote the batch before, with other ends."""
    frame = spark.range(3)
    sink = make(frame)
    ends, others = {"t": {0: 3}}, {"t": {0: 4_711}}
    metadata = CommitMetadata("q", "query", 3, "c", {"t": "id-t"}, ends)
    sink.write(frame, replace(batch(3), metadata=metadata.text()))
    with pytest.raises(PipelineError, match="or is a copy"):
        sink.write(frame, replace(batch(4), checkpoint="cp", promised=3, begins=others))
    assert sink.write(frame, replace(batch(4), checkpoint="cp", begins=ends)) == NO_VERSION


@pytest.mark.usefixtures("way")
def test_a_batch_is_there_once_and_says_what_it_is(
    spark: Any, postgres: Postgres, make: Make
) -> None:
    frame = spark.range(3)
    sink = make(frame)
    assert sink.last_batch("query") is None
    assert [sink.write(frame, batch(number)) for number in (0, 1, 1, 0)] == [
        NO_VERSION,
        NO_VERSION,
        None,
        None,
    ]
    assert postgres.query("SELECT count(*) FROM t") == [["6"]]
    assert sink.write(frame, batch(1, once=False)) == NO_VERSION
    assert sink.write(frame, batch(0, "another")) == NO_VERSION
    assert postgres.query("SELECT count(*) FROM t") == [["12"]]
    assert sink.last_batch("query") == 1
    assert list(sink.metadata()) == ['{"batch": 0}', '{"batch": 1}']
    assert not sink.rejected_hold("query", 0)
    sink.rejected(frame.schema).make()
    sink.rejected(frame.schema).write(frame, batch(3))
    assert sink.rejected_hold("query", 3)
    assert sink.late(frame.schema).rows() is None
    kept = sink.rejected(frame.schema).rows()
    assert kept is not None
    assert kept.count() == frame.count()
    assert not sink.rejected_hold("query", 4)

    first = sink.table_id()
    postgres.query("DROP TABLE t")
    assert sink.table_id() == ""
    with pytest.raises(PipelineError, match="was deleted while the query ran"):
        sink.write(frame, batch(2))
    sink.make()
    assert sink.table_id() not in ("", first)
    assert list(sink.metadata()) == []


def test_a_query_of_many_rows_copies_them_while_they_are_computed(
    spark: Any, postgres: Postgres, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = spark.range(0, 9_000, 1, 3)
    sink = make(frame)
    monkeypatch.setattr(jdbc, "STREAMED_BYTES", 10_000)
    before: list[Any] = []

    def computed_first(lines: Any) -> Any:
        before.append(lines)
        return chunks_of(lines)

    monkeypatch.setattr(jdbc, "chunks_of", computed_first)
    for number in range(3):
        sink.write(frame, batch(number))
    assert len(before) == 1
    # A row behind a shuffle may be computed twice.
    sink.write(frame.repartition(2), batch(3))
    assert len(before) == 2
    assert postgres.query("SELECT count(*), count(DISTINCT id) FROM t") == [["36000", "9000"]]


@pytest.mark.usefixtures("way")
def test_a_batch_that_fails_leaves_nothing(spark: Any, postgres: Postgres, make: Make) -> None:
    frame = spark.range(10)
    sink = make(frame)
    for bad in ("assert_true(id < 9)", "raise_error('no')"):
        failing = frame.selectExpr("id", f"{bad} AS x").where("x IS NULL").select("id")
        with pytest.raises(Exception, match=r"is not true|no"):
            sink.write(failing, batch())
    postgres.query("ALTER TABLE t ADD CHECK (id < 9)")
    with pytest.raises(Exception, match="check constraint"):
        sink.write(frame, batch())
    assert postgres.query("SELECT count(*) FROM t") == [["0"]]
    assert sink.last_batch("query") is None


# Without an order, older records are not recognized, and "mark" is refused.
@pytest.mark.parametrize(
    ("order_by", "deletes"), [(None, "remove"), ("word", "remove"), ("word", "mark")]
)
def test_a_table_with_keys_has_the_last_record_of_each(
    spark: Any, postgres: Postgres, make: Make, order_by: str | None, deletes: str
) -> None:
    # Words that PostgreSQL's own collations order in another way than their bytes.
    words = ["a", "B", "b", "C", "ä", "Z", "zz"]
    rows = [
        (
            number * 7 % 5,
            words[number * 3 % len(words)],
            number * 7 % 5 % 2,
            number,
            number % 4 == 0,
        )
        for number in range(40)
    ]
    whole = spark.createDataFrame(rows, SCHEMA)
    how = {"order_by": order_by, "deletes": deletes} if order_by else {}
    sink = make(whole, keys=["id"], **how)
    for number, first in enumerate(range(0, 40, 8)):
        sink.write(spark.createDataFrame(rows[first : first + 8], SCHEMA), batch(number))

    last = sorted(list(row) for row in latest_by_key(whole, "id", order_by=order_by).collect())
    where = "WHERE NOT is_deleted" if deletes == "mark" else ""
    found = postgres.query(f'SELECT id, word, partition, "offset" FROM t {where} ORDER BY id')
    if order_by is None or deletes == "mark":
        assert [[int(a), b, int(c), int(d)] for a, b, c, d in found] == last
    else:
        # A removed row leaves nothing to compare an older record with.
        assert {int(row[0]) for row in found} >= {row[0] for row in last}


def test_the_order_of_batches_does_not_matter_with_an_order(
    spark: Any, postgres: Postgres, make: Make
) -> None:
    rows = [(1, "c", 0, 5, False), (1, "b", 1, 9, True), (1, "c", 1, 1, False)]
    for number, order in enumerate(itertools.permutations(rows)):
        name = f"t{number}"
        frame = spark.createDataFrame(rows, SCHEMA)
        sink = make(frame, name, keys=["id"], order_by="word", deletes="mark")
        for position, row in enumerate(order):
            sink.write(spark.createDataFrame([row], SCHEMA), batch(position))
        assert postgres.query(f'SELECT word, partition, "offset" FROM {name}') == [["c", "1", "1"]]


def test_a_key_without_an_order_stops_the_batch(spark: Any, make: Make) -> None:
    one = spark.createDataFrame([(1, "a", 0, 5, False)], SCHEMA)
    sink = make(one, keys=["id"])
    sink.write(one, batch())
    other = spark.createDataFrame([(1, "b", 1, 6, False)], SCHEMA)
    with pytest.raises(UnorderedKeyError, match=r'OTTLA_UNORDERED_KEY \{"id" : 1\}'):
        sink.write(other, batch(1))
    assert sink.last_batch("query") == 0


def test_a_key_of_two_topics_needs_an_order_too(spark: Any, postgres: Postgres, make: Make) -> None:
    schema = "id INT, word STRING, topic STRING, partition INT, offset BIGINT"
    rows = [(1, "x", "b", 0, 5), (1, "x", "a", 0, 5), (1, "y", "a", 0, 4)]
    one, other, newer = (spark.createDataFrame([row], schema) for row in rows)
    sink = make(one, keys=["id"])
    sink.write(one, batch())
    with pytest.raises(UnorderedKeyError, match=r'OTTLA_UNORDERED_KEY \{"id" : 1\}'):
        sink.write(other, batch(1))

    ordered = make(one, "u", keys=["id"], order_by="word")
    found = []
    for number, frame in enumerate((one, other, newer)):
        ordered.write(frame, batch(number))
        found += postgres.query("SELECT word, topic FROM u")
    assert found == [["x", "b"], ["x", "b"], ["y", "a"]]


def test_rows_that_the_table_refuses_are_marked(spark: Any, postgres: Postgres, make: Make) -> None:
    postgres.query(
        "CREATE DOMAIN short AS varchar(3); "
        "CREATE TABLE t (id int NOT NULL, word short, day date, more jsonb)"
    )
    rows = [
        (1, "abc", "2026-01-01", ["x"]),
        (None, "a", None, None),
        (2, "abcd", None, None),
        (3, "a\0", None, None),
        (4, None, "9999-12-31", ["y\0"]),
        (5, None, None, None),
        (7, None, None, ["\\u0000"]),
        (8, None, None, ["\\\0"]),
    ]
    frame = spark.createDataFrame(rows, "id INT, word STRING, day STRING, more ARRAY<STRING>")
    frame = frame.withColumn("day", frame["day"].cast("date"))
    later = frame.where("id = 5").selectExpr(
        "6 AS id", "word", "date_add(DATE'9999-12-31', 1) AS day", "more"
    )
    sink = make(frame)
    marked = sink.constrained(frame.unionByName(later))
    good, bad = fitting(marked), refused(marked)
    reasons = sorted(row["reason"] for row in bad.collect())
    assert reasons == [
        "the column day is outside of the years 1 to 9999",
        "the column id is null, but NOT NULL",
        *["the column more has the character U+0000, which PostgreSQL cannot store"] * 2,
        "the column word has the character U+0000, which PostgreSQL cannot store",
        "the column word is longer than the 3 characters that the table allows",
    ]
    sink.write(good, batch())
    assert postgres.query("SELECT id FROM t ORDER BY id") == [["1"], ["5"], ["7"]]
    assert postgres.query("SELECT more ->> 0 FROM t WHERE id = 7") == [["\\u0000"]]


def test_a_rejected_row_shows_u0000_in_its_reason_and_headers(
    spark: Any, postgres: Postgres, make: Make
) -> None:
    reason = "value.id is not a bigint: \0\0x \\u0000"
    headers = [("\0\0", None), ("\\u0000", b"\0"), ("\\\0", None)]
    schema = "value BINARY, headers ARRAY<STRUCT<key STRING, value BINARY>>, reason STRING"
    frame = spark.createDataFrame([(bytearray(b"\0"), headers, reason)], schema)
    sink = make(spark.createDataFrame([(1,)], "id INT")).rejected(frame.schema)
    sink.make()
    sink.write(frame, batch())
    (found,) = postgres.query("SELECT reason, headers, value FROM t_rejected")
    assert found[0] == "value.id is not a bigint: \\u0000\\u0000x \\u0000"
    assert [one["key"] for one in json.loads(found[1])] == [
        "\\u0000\\u0000",
        "\\u0000",
        "\\\\u0000",
    ]
    assert found[2] == "\\x00"


def test_a_key_in_a_padded_column(spark: Any, postgres: Postgres, make: Make) -> None:
    postgres.query('CREATE TABLE t (id char(3) PRIMARY KEY, partition int, "offset" bigint)')
    columns = "id STRING, partition INT, offset BIGINT"
    frame = spark.createDataFrame([("ab", 0, 1), ("ab ", 0, 2), ("c", 0, 3)], columns)
    sink = make(frame, keys=["id"])
    marked = sink.constrained(frame)
    assert [row["reason"][:36] for row in refused(marked).collect()] == [
        "the key column id ends with a space,"
    ]
    sink.write(fitting(marked), batch())
    sink.write(spark.createDataFrame([("ab", 0, 4)], columns), batch(1))
    found = postgres.query('SELECT trim(id), "offset" FROM t ORDER BY id')
    assert found == [["ab", "4"], ["c", "3"]]


def test_records_from_the_future_are_marked(spark: Any, make: Make) -> None:
    rows = [(1, "2026-01-01", 0, 1), (2, "9000-01-01", 0, 2)]
    frame = spark.createDataFrame(rows, "id BIGINT, at STRING, partition INT, offset BIGINT")
    frame = frame.withColumn("at", frame["at"].cast("timestamp"))
    sink = make(frame, keys=["id"], order_by="at")
    assert refused(sink.constrained(frame)).count() == 0
    marked = replace(sink, max_ahead="1 day").constrained(frame)
    assert [row["reason"][-32:] for row in refused(marked).collect()] == [
        "more than 1 day ahead of the clock"[-32:]
    ]


def test_a_table_that_does_not_fit_is_refused(spark: Any, postgres: Postgres, make: Make) -> None:
    frame = spark.range(1)
    postgres.query(
        "CREATE VIEW v AS SELECT 1 AS id; CREATE TABLE wide (id int); "
        "CREATE TABLE twice (id bigint); "
        "CREATE TABLE auto (id bigint GENERATED ALWAYS AS IDENTITY); CREATE SCHEMA lake; "
        "CREATE UNLOGGED TABLE gone (id bigint); "
        "CREATE TABLE parts (id bigint) PARTITION BY LIST (id); "
        "CREATE UNLOGGED TABLE part PARTITION OF parts FOR VALUES IN (1); "
        "CREATE TABLE far (id bigint) PARTITION BY LIST (id); CREATE FOREIGN DATA WRAPPER nothing; "
        "CREATE SERVER away FOREIGN DATA WRAPPER nothing; "
        "CREATE FOREIGN TABLE far_part PARTITION OF far DEFAULT SERVER away"
    )
    placed = spark.createDataFrame([(1, 0, 0)], "id BIGINT, partition INT, offset BIGINT")
    postgres.query('CREATE TABLE no_index (id bigint, partition int, "offset" bigint)')
    for name, words in (
        ("v", "is no table but a view"),
        ("wide", "id is bigint in the rows and integer in the table"),
        ("auto", "always generated"),
        ("nowhere.t", "There is no schema nowhere"),
        ("gone", r'is UNLOGGED, or has a partition.*ALTER TABLE "public"."gone" SET LOGGED'),
        ("parts", "is UNLOGGED, or has a partition that is"),
        ("far", "has a partition that is a foreign table"),
    ):
        with pytest.raises(PipelineError, match=words):
            make(frame, name)
    with pytest.raises(PipelineError, match=r'CREATE UNIQUE INDEX ON "public"."no_index" \("id"\)'):
        make(placed, "no_index", keys=["id"])
    postgres.query("CREATE UNIQUE INDEX ON no_index (id) INCLUDE (partition)")
    sink = make(placed, "no_index", keys=["id"])
    sink.write(placed, batch())
    sink = make(frame.withColumnRenamed("id", "Id"), "lake.new")
    assert (sink.name, sink.short_name) == ("lake.new", "new")
    with pytest.raises(PipelineError, match="it has Id: give the column that name"):
        make(frame, "lake.new")
    wider = make(frame.selectExpr("id AS Id", "1 AS n"), "lake.new", schema_changes="add")
    assert wider.check() == []
    assert PASSWORD not in repr(replace(wider))


def test_what_keeps_rows_from_a_table_is_refused_or_said(
    spark: Any, postgres: Postgres, make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    postgres.query(
        "CREATE FUNCTION skip() RETURNS trigger AS 'BEGIN IF NEW.id % 3 = 0 THEN RETURN NULL; END "
        "IF; RETURN NEW; END' LANGUAGE plpgsql; CREATE EXTENSION citext; "
        'CREATE TABLE plain (id int, word text, partition int, "offset" bigint); '
        "CREATE TABLE keyed (LIKE plain, PRIMARY KEY (id)); CREATE TABLE ruled (LIKE keyed "
        "INCLUDING ALL); CREATE TABLE folded (id int, word citext, partition int, "
        '"offset" bigint, PRIMARY KEY (id), UNIQUE (word)); '
        "CREATE TRIGGER skip BEFORE INSERT ON plain FOR EACH ROW EXECUTE FUNCTION skip(); "
        "CREATE TABLE parted (LIKE keyed, PRIMARY KEY (id)) PARTITION BY LIST (id); "
        "CREATE TABLE part PARTITION OF parted DEFAULT; "
        "CREATE TRIGGER skip BEFORE INSERT ON keyed FOR EACH ROW EXECUTE FUNCTION skip(); "
        "CREATE TRIGGER skip BEFORE INSERT ON part FOR EACH ROW EXECUTE FUNCTION skip(); "
        "CREATE RULE quiet AS ON INSERT TO ruled WHERE new.id = 1 DO INSTEAD NOTHING"
    )
    columns = "id INT, word STRING, partition INT, offset BIGINT"
    frame = spark.createDataFrame([(n, f"w{n}", 0, n) for n in range(7)], columns)
    for name, keys in (("plain", ()), ("keyed", ("id",)), ("parted", ("id",))):
        caplog.clear()
        sink = make(frame, name, keys=keys)
        for number in range(2):
            sink.write(frame, batch(number))
        assert caplog.messages == [
            f"3 rows of batch 0 did not change the table public.{name}: a trigger of it leaves out "
            "what is inserted, updated or deleted, or puts it elsewhere"
        ]
    assert postgres.query("SELECT count(*) FROM keyed") == [["4"]]
    with pytest.raises(PipelineError, match=r"public\.ruled has the rule quiet"):
        make(frame, "ruled", keys=["id"])
    with pytest.raises(PipelineError, match=r"word of the table public\.folded is citext"):
        make(frame, "folded", keys=["id"], order_by="word")


@pytest.mark.parametrize("how", [{}, {"order_by": "offset"}])
def test_what_comes_before_updates_and_deletions_while_the_query_runs_is_refused_or_said(
    spark: Any,
    postgres: Postgres,
    make: Make,
    caplog: pytest.LogCaptureFixture,
    how: dict[str, str],
) -> None:
    postgres.query(
        "CREATE OR REPLACE FUNCTION keep() RETURNS trigger AS 'BEGIN RETURN NULL; END' LANGUAGE "
        "plpgsql"
    )
    caplog.set_level("WARNING")

    def rows(*wanted: tuple[Any, ...]) -> Any:
        return spark.createDataFrame(list(wanted), SCHEMA)

    first = [(number, "old", 0, number, False) for number in range(4)]
    later = [(number, "new", 0, 4 + number, number > 1) for number in range(4)]
    for event, word in (("UPDATE", "updated"), ("DELETE", "deleted")):
        name = word + "_ordered" * bool(how)
        sink = make(rows(*first), name, keys=["id"], **how)
        sink.write(rows(*first), batch())
        postgres.query(
            f"CREATE TRIGGER keep BEFORE {event} ON {name} FOR EACH ROW WHEN (OLD.id % 2 = 0) "
            "EXECUTE FUNCTION keep()"
        )
        caplog.clear()
        sink.write(rows(*later), batch(1))
        assert len(postgres.query(f"SELECT id FROM {name}")) == 2 + (event == "DELETE")
        assert [text.partition(":")[0] for text in caplog.messages] == [
            f"1 row of batch 1 did not change the table public.{name}"
        ]
        # What the batch has as it is there is no change that is left out.
        caplog.clear()
        make(rows(*first), name, keys=["id"], **how).write(rows(first[1]), batch(2))
        assert caplog.messages == []
        postgres.query(f"CREATE RULE quiet AS ON DELETE TO {name} DO INSTEAD NOTHING")
        with pytest.raises(PipelineError, match=rf"{name} has the rule quiet"):
            sink.write(rows(*later), batch(3))


def test_a_key_does_not_replace_another_one_that_the_table_has_as_the_same(
    spark: Any, postgres: Postgres, make: Make
) -> None:
    postgres.query(
        "CREATE EXTENSION IF NOT EXISTS citext; CREATE COLLATION ci (provider = icu, "
        "locale = 'und-u-ks-level2', deterministic = false); "
        'CREATE TABLE folded (id int, word citext PRIMARY KEY, partition int, "offset" bigint); '
        "CREATE TABLE collated (LIKE folded); ALTER TABLE collated ALTER word TYPE text "
        "COLLATE ci, ADD PRIMARY KEY (word); CREATE TABLE two (LIKE folded); ALTER TABLE two "
        "ALTER word TYPE text, ADD PRIMARY KEY (word); CREATE UNIQUE INDEX other ON two "
        "(word COLLATE ci); CREATE TABLE uuids (LIKE folded); ALTER TABLE uuids ALTER word "
        "TYPE uuid USING NULL, ADD PRIMARY KEY (word)"
    )

    def rows(*wanted: tuple[Any, ...]) -> Any:
        return spark.createDataFrame(list(wanted), SCHEMA)

    first, uuid = (1, "a", 0, 0, False), "0f8fad5b-d9cb-469f-a165-70867728950e"
    for name in ("folded", "collated"):
        sink = make(rows(first), name, keys=["word"])
        sink.write(rows(first), batch())
        for number, others in enumerate(
            (
                [(2, "A", 0, 1, False)],
                [(2, "A", 0, 1, True)],
                [(2, "b", 0, 1, True), (3, "B", 0, 2, False)],
            )
        ):
            with pytest.raises(PipelineError, match=rf"are two for Spark and one for .*{name}"):
                sink.write(rows(*others), batch(number + 1))
        sink.write(rows((4, "a", 0, 3, False)), batch(9))
        assert postgres.query(f"SELECT id, word FROM {name}") == [["4", "a"]]
    with pytest.raises(PipelineError, match=r"unique index other of the table public\.two has"):
        make(rows(first), "two", keys=["word"])

    alike = rows((1, uuid, 0, 1, False), (2, uuid.upper(), 0, 2, False))
    sink = make(alike, "uuids", keys=["word"])
    with pytest.raises(Py4JJavaError) as failed:
        sink.write(alike, batch())
    said = sentence_for(causes_of(failed.value), About(target="uuids", failures=sink.failures))
    assert "two rows whose keys Spark tells apart and uuids does not" in said


def test_no_value_is_rounded(spark: Any, postgres: Postgres, make: Make) -> None:
    postgres.query(
        "CREATE DOMAIN money2 AS numeric(10,2); CREATE TABLE t (id int PRIMARY KEY, "
        'partition int, "offset" bigint, amount money2, at timestamp(3) with time zone)'
    )
    frame = spark.sql(
        "SELECT i AS id, 0 AS partition, i AS offset, 1.23BD AS amount, "
        "timestamp_micros(1000 + 1000L * i + i DIV 2) AS at FROM (SELECT explode(array(1, 2)) AS i)"
    ).selectExpr(
        "id", "partition", "BIGINT(offset)", "CAST(amount AS DECIMAL(10,2)) AS amount", "at"
    )
    with pytest.raises(PipelineError, match=r"amount is decimal\(10,4\) in the rows and money2 in"):
        make(frame.withColumn("amount", frame["amount"].cast("decimal(10,4)")), keys=["id"])
    sink = make(frame, keys=["id"])
    marked = sink.constrained(frame)
    assert [(row["row"][6:7], row["reason"][:33]) for row in refused(marked).collect()] == [
        ("2", "the column at has parts of a seco")
    ]
    sink.write(fitting(marked), batch())

    # The types are those of the start, or the batch is not written.
    postgres.query("ALTER TABLE t ALTER amount TYPE numeric(10,1)")
    with pytest.raises(PipelineError, match=r"numeric\(10,1\) in the table public.t, which would"):
        sink.write(fitting(marked), batch(1))
    postgres.query("ALTER TABLE t ALTER amount TYPE numeric(12,3), ALTER at TYPE timestamptz(0)")
    with pytest.raises(PipelineError, match="were changed while the query ran; this batch is not"):
        sink.write(fitting(marked), batch(1))
    postgres.query("ALTER TABLE t ALTER at TYPE timestamptz, ADD COLUMN other int")
    sink.write(fitting(marked), batch(1))
    assert postgres.query("SELECT id, amount FROM t") == [["1", "1.230"]]
