"""From specifications to Spark."""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from components.postgres import PASSWORD, USER, Postgres, fetched_driver

from components import fixture
from ottla.pipelines import PipelineError
from ottla.pipelines.file.build import build_frame, plan_pipeline, start_pipeline
from ottla.pipelines.file.read import read_file
from ottla.pipelines.sinks.delta import DeltaSpec
from ottla.pipelines.sinks.postgresql import DatabaseSpec
from ottla.pipelines.spec.pipeline import PipelineSpec

pytestmark = pytest.mark.spark
postgres = fixture.postgres

GUIDE = Path(__file__).parents[3] / "docs" / "pipelines.md"
TEXT = """
[source]
bootstrap_servers = "{bootstrap}"
topic = "{topic}"
schema = "carrier STRING NOT NULL, dep_delay DOUBLE"

[transform]
view = "flights"
{transform}

[sink]
{sink}

[delivery]
checkpoint = "./checkpoints/flights"
trigger = "available-now"
"""
TABLE = '[transform.tables.airlines]\nformat = "csv"\npath = "airlines.csv"\n'


@pytest.fixture(autouse=True)
def no_views_left(spark: Any) -> Iterator[None]:
    """The session is shared: other tests name tables as the views here."""
    yield
    for table in spark.catalog.listTables():
        if table.isTemporary:
            spark.catalog.dropTempView(table.name)


@pytest.fixture
def write(
    bootstrap: str, new_topic: Callable[..., str], tmp_path: Path
) -> Callable[..., PipelineSpec]:
    """Writes a pipeline file on a topic of its own, and gives its specification."""
    topic = new_topic()
    (tmp_path / "airlines.csv").write_text("carrier,name\nUA,United\n")

    def make(transform: str, sink: str = 'target = "./lake/flights"') -> PipelineSpec:
        file = tmp_path / "flights.toml"
        tables = {"transform": transform, "sink": sink}
        file.write_text(TEXT.format(bootstrap=bootstrap, topic=topic, **tables))
        return read_file(file, {}).pipelines[0]

    return make


def test_the_guides_file_joins_a_lookup_table_into_delta(
    spark: Any,
    bootstrap: str,
    new_topic: Callable[..., str],
    produce: Callable[..., None],
    tmp_path: Path,
) -> None:
    example = re.findall(r"```toml\n(.*?)```", GUIDE.read_text(), re.DOTALL)[0]
    topic = new_topic()
    for old, new in (
        ("localhost:9092", bootstrap),
        ('topic = "flights"', f'topic = "{topic}"'),
        ("[transform]\n", '[transform]\nview = "flights"\n'),
        ('trigger = "10 seconds"', 'trigger = "available-now"'),
    ):
        assert example.count(old) == 1
        example = example.replace(old, new)
    (tmp_path / "late.toml").write_text(example)
    (tmp_path / "airlines.csv").write_text("carrier,name\nUA,United\n")
    spec = read_file(tmp_path / "late.toml", {}).pipelines[0]
    rows = ('{"carrier": "UA", "dep_delay": 70}', '{"carrier": "AA", "dep_delay": 99}')
    produce(topic, [(None, row) for row in (*rows, '{"carrier": "UA", "dep_delay": 60}', "?")])

    planned = plan_pipeline(spark, spec)
    assert planned.sink.shown == str(tmp_path / "lake/late")
    assert not (tmp_path / "lake").exists()
    assert not (tmp_path / "checkpoints").exists()
    start_pipeline(spark, spec).awaitTermination()

    written = spark.read.format("delta").load(str(tmp_path / "lake/late"))
    assert {tuple(row) for row in written.select("carrier", "dep_delay", "airline").collect()} == {
        ("UA", 70.0, "United"),
        ("AA", 99.0, None),
    }
    rejected = spark.read.format("delta").load(str(tmp_path / "lake/late_rejected"))
    assert rejected.count() == 1
    assert (tmp_path / "checkpoints/late/commits/0").is_file()


def test_the_plan_finds_a_key_that_is_no_column(
    spark: Any, write: Callable[[str], PipelineSpec]
) -> None:
    spec = write('sql = "SELECT value.*, partition, offset FROM flights"')
    assert isinstance(spec.sink, DeltaSpec)
    keyed = replace(spec, sink=replace(spec.sink, keys=("carier",)))
    with pytest.raises(PipelineError, match=r"no column 'carier'; did you mean 'carrier'\?"):
        plan_pipeline(spark, keyed)


def test_a_function_makes_the_rows(
    spark: Any, write: Callable[[str], PipelineSpec], tmp_path: Path
) -> None:
    spec = write('function = "late.py:late"')
    code = "def late(rows):\n    return rows.select('value.carrier')\n"
    (tmp_path / "late.py").write_text(code)
    assert build_frame(spark, spec).columns == ["carrier"]


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("def late(rows):\n    return rows.nowhere\n", r"late\.py:2: .*nowhere"),
        ("import nowhere_at_all\n", r"late\.py:1: ModuleNotFoundError: .*nowhere_at_all"),
        ("import sys\nsys.exit(0)\n", r"late\.py:2: SystemExit: 0"),
        ("def late(rows):\n    return 7\n", r"late\.py: late returned int; return a DataFrame"),
    ],
)
def test_a_function_that_fails_is_one_line(
    spark: Any, write: Callable[[str], PipelineSpec], tmp_path: Path, code: str, said: str
) -> None:
    (tmp_path / "late.py").write_text(code)
    spec = write('function = "late.py:late"')
    with pytest.raises(PipelineError, match=said) as raised:
        build_frame(spark, spec)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("transform", "said"),
    [
        ('sql = "SELECT value.nowhere FROM flights"', "^transform.sql: .*nowhere"),
        ('sql = "SELCT 1"', "^transform.sql: .*SELCT"),
        ('sql = "SELECT * FROM no_such_table"', "^transform.sql: .*no_such_table"),
        (TABLE.replace("airlines.csv", "nowhere.csv"), "^transform.tables.airlines: .*nowhere.csv"),
        (TABLE.replace('"csv"', '"cvs"'), "^transform.tables.airlines: .*cvs"),
    ],
)
def test_what_spark_refuses_is_one_line(
    spark: Any, write: Callable[[str], PipelineSpec], transform: str, said: str
) -> None:
    with pytest.raises(PipelineError, match=said) as raised:
        build_frame(spark, write(transform))
    assert "\n" not in str(raised.value)


def test_a_topic_as_the_sink(
    spark: Any,
    write: Callable[..., PipelineSpec],
    produce: Callable[..., None],
    bootstrap: str,
    new_topic: Callable[..., str],
) -> None:
    late = new_topic()
    spec = write('sql = "SELECT value.* FROM flights"', f'topic = "{late}"\nkey = "carrier"')
    produce(spec.source.topic, [(None, '{"carrier": "UA", "dep_delay": 7}'), (None, "?")])

    assert plan_pipeline(spark, spec).sink.shown == f"topic {late}"
    query = start_pipeline(spark, spec)
    query.awaitTermination()
    assert query.name == "flights"  # as the file, not as the topic: so a journey shows it

    reader = spark.read.format("kafka").option("kafka.bootstrap.servers", bootstrap)
    (row,) = reader.option("subscribe", late).load().collect()
    assert (bytes(row["key"]), bytes(row["value"])) == (b"UA", b'{"carrier":"UA","dep_delay":7.0}')


@pytest.mark.full
def test_files_and_a_table_of_a_database_as_the_sink(
    spark: Any,
    write: Callable[..., PipelineSpec],
    produce: Callable[..., None],
    postgres: Postgres,
    tmp_path: Path,
) -> None:
    sql = 'sql = "SELECT value.*, partition, offset FROM flights"'
    spec = write(sql, 'target = "./lake/out"\nformat = "json"\npartition_by = ["carrier"]')
    produce(spec.source.topic, [(None, '{"carrier": "UA", "dep_delay": 7}'), (None, "?")])
    assert plan_pipeline(spark, spec).sink.shown == str(tmp_path / "lake/out")
    assert not (tmp_path / "lake").exists()
    query = start_pipeline(spark, spec)
    query.awaitTermination()
    assert query.name == "flights"
    for folder in ("out", "out_rejected"):
        assert spark.read.json(str(tmp_path / "lake" / folder)).count() == 1

    spark.sql(f"ADD JAR '{fetched_driver()}'")
    login = f'url = "{postgres.url}"\nuser = "{USER}"\npassword = "{PASSWORD}"'
    again = write(sql, f'target = "out"\nkeys = ["carrier"]\n{login}')
    moved = replace(again.delivery, checkpoint=str(tmp_path / "checkpoints/out"))
    again = replace(again, delivery=moved)
    assert PASSWORD not in repr(again)
    assert isinstance(again.sink, DatabaseSpec)
    wrong = replace(again.sink, password="wrong")
    with pytest.raises(PipelineError, match=r"refused the login: .*password") as raised:
        plan_pipeline(spark, replace(again, sink=wrong))
    assert "\n" not in str(raised.value)
    planned = plan_pipeline(spark, again)
    assert planned.sink.shown == f"public.out in {postgres.url.removeprefix('jdbc:')}"
    assert postgres.query("SELECT to_regclass('out') IS NULL") == [["t"]]
    start_pipeline(spark, again).awaitTermination()
    assert postgres.query("SELECT carrier, dep_delay FROM out") == [["UA", "7"]]
