"""Schemas and columns of a pipeline file: wrong ones are told before Spark starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from ottla.pipelines.file.read import read_text
from ottla.pipelines.spec.problem import FileError

FILE = """
[source]
bootstrap_servers = "localhost:9092"
topic = "flights"
{source}
[sink]
target = "./lake/flights"
{sink}
[delivery]
checkpoint = "./checkpoints/flights"
"""


def problems(source: str = "", sink: str = "", more: str = "") -> list[str]:
    try:
        read_text(Path("/p/flights.toml"), FILE.format(source=source, sink=sink) + more, {})
    except FileError as error:
        return [str(problem) for problem in error.problems]
    return []


@pytest.mark.parametrize("field", ["schema", "key_schema"])
def test_a_typing_error_in_a_schema_names_the_field_and_the_type(field: str) -> None:
    (problem,) = problems(f'{field} = "carrier STRNG, delay DOUBLE"')
    assert problem.startswith(f"source.{field}: 'carrier STRNG, delay DOUBLE' is no schema: ")
    assert "STRNG is no type; did you mean STRING? Write fields such as" in problem


def test_a_list_is_no_schema_of_a_value() -> None:
    (problem,) = problems('schema = "ARRAY<INT>"')
    assert problem.startswith("source.schema: write an object's fields or one plain type")


@pytest.mark.parametrize(
    "schema", ["a INT NOT NULL, b STRUCT<c: DATE>", "string", "a VARCHAR(10)", "i INTERVAL DAY"]
)
def test_what_spark_reads_or_must_judge_is_no_problem(schema: str) -> None:
    assert problems(f'schema = "{schema}"') == []


def test_the_schema_of_a_table_to_look_things_up_in() -> None:
    table = '[transform.tables.airlines]\nformat = "csv"\npath = "a.csv"\nschema = "name STRIN"'
    (problem,) = problems(more=table)
    assert problem.startswith("transform.tables.airlines.schema: 'name STRIN' is no schema")


def test_a_key_that_is_no_column_of_the_topic() -> None:
    (problem,) = problems(sink='keys = ["carrier"]\norder_by = "Timestamp"')
    assert problem.startswith("sink.keys: 'carrier' is no column")
    assert problems(sink='keys = ["KEY"]\npartition_by = ["partition"]') == []


def test_sql_may_make_any_column() -> None:
    sql = '[transform]\nsql = "SELECT value.*, partition, offset FROM flights"'
    assert problems(sink='keys = ["carrier"]', more=sql) == []


def test_a_column_that_the_source_adds() -> None:
    assert problems('tombstones = "mark"', 'partition_by = ["tombstone"]') == []
    assert problems(f'{EVENTS}\ntruncate = "apply"', 'partition_by = ["truncation"]') == []
    assert problems('registry = "http://r:8081"\nsource_format = "debezium"') == []
    assert len(problems("", 'partition_by = ["tombstone"]')) == 1


def test_unknown_fields_are_those_of_a_json_object() -> None:
    fields = 'schema = "id INT"'
    assert problems(f'{fields}\nunknown_fields = "reject"') == []
    (problem,) = problems(f'{fields}\nunknown_fields = "kept"')
    assert problem == (
        "source.unknown_fields: 'kept' is not allowed; allowed: 'drop', 'keep', 'reject'; "
        "did you mean 'keep'?"
    )
    for source in ('unknown_fields = "keep"', 'schema = "bigint"\nunknown_fields = "reject"'):
        (problem,) = problems(source)
        assert "is for a value that is a JSON object: give its fields" in problem
    (problem,) = problems('schema = "_unknown INT"\nunknown_fields = "keep"')
    assert problem.endswith("which the schema has: give that one another name")
    assert problems('registry = "http://r:8081"\nunknown_fields = "keep"') == []


EVENTS = 'schema = "id INT NOT NULL"\nsource_format = "debezium"'


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ('truncate = "ignore"', "source.truncate: is for source_format = 'debezium'"),
        ('source_format = "debezium"', "source.schema: source_format = 'debezium' needs the"),
        (f'{EVENTS}\ntombstones = "mark"', "source.tombstones: is not for source_format ="),
        (f'{EVENTS}\nrejects = "keep"', "source.rejects: is not for source_format ="),
        (f'{EVENTS}\nunknown_fields = "keep"', "source.unknown_fields: 'keep' is not for"),
        (
            'registry = "http://r:8081"\nsource_format = "debezium"\nrejects = "keep"',
            "source.rejects: is not for source_format =",
        ),
        (
            'registry = "http://r:8081"\nschema = "string"\nsource_format = "debezium"',
            "source.schema: source_format = 'debezium' needs the",
        ),
    ],
)
def test_what_events_of_debezium_cannot_be_is_told(source: str, said: str) -> None:
    (problem,) = problems(source)
    assert problem.startswith(said)


def test_the_columns_of_events_of_debezium() -> None:
    assert problems(f'{EVENTS}\ntruncate = "ignore"', 'partition_by = ["op"]') == []
    assert problems(f'{EVENTS}\ntruncate = "apply"', 'partition_by = ["truncation"]') == []
    assert problems('registry = "http://r:8081"\nsource_format = "debezium"') == []
    assert len(problems("", 'partition_by = ["op"]')) == 1
