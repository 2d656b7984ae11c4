"""`[sink]` of a pipeline file with `format = "iceberg"`."""

from pathlib import Path

import pytest

from ottla.pipelines.file.read import read_text
from ottla.pipelines.sinks.iceberg.spec import IcebergSpec
from ottla.pipelines.spec.problem import FileError
from ottla.pipelines.spec.sink import SinkSpec

FILE = """
[source]
bootstrap_servers = "localhost:9092"
topic = "flights"
[transform]
sql = "SELECT value.*, partition, offset FROM flights"
[sink]
format = "iceberg"
{}
[delivery]
checkpoint = "./cp"
"""


def read(sink: str) -> SinkSpec:
    (one,) = read_text(Path("/jobs/flights.toml"), FILE.format(sink), {}).pipelines
    return one.sink


def test_a_table_with_keys() -> None:
    found = read('target = "lake.db.flights"\nkeys = "id"\npartition_by = ["day"]')
    assert found == IcebergSpec("lake.db.flights", keys=("id",), partition_by=("day",))
    assert found.folder is None
    assert found.keeps_rejects


@pytest.mark.parametrize(
    ("sink", "words"),
    [
        (
            'target = "./lake/flights"',
            "sink.target: './lake/flights': write the name of an Iceberg",
        ),
        ('target = "a.b"\nhistory = true', "sink.history: is not for a table of Iceberg: leave it"),
        ('target = "a.b"\ndeletes = "mark"', "sink.deletes: is for a table with keys"),
    ],
)
def test_what_is_refused(sink: str, words: str) -> None:
    with pytest.raises(FileError) as refused:
        read(sink)
    assert words in str(refused.value)
