from pathlib import Path

import pytest

from ottla.pipelines.file.problem import FileError
from ottla.pipelines.file.read import read_text
from ottla.pipelines.spec.pipeline import SinkSpec

SOURCE = """
[source]
bootstrap_servers = "localhost:9092"
topic = "flights"
[transform]
sql = "SELECT value.*, timestamp FROM flights"
[delivery]
checkpoint = "./checkpoints/late"
"""
URL = 'url = "jdbc:postgresql://localhost:5432/lake"\n'


def read(sink: str) -> SinkSpec:
    variables = {"LAKE_PASSWORD": "s3cret"}
    (one,) = read_text(Path("/pipelines/late.toml"), f"{SOURCE}[sink]\n{sink}", variables).pipelines
    return one.sink


def problems(sink: str) -> list[str]:
    with pytest.raises(FileError) as raised:
        read(sink)
    found = list(map(str, raised.value.problems))
    assert not any("s3cret" in one for one in found)
    return found


def test_a_table_of_a_database() -> None:
    found = read(
        URL + 'target = "lake/last.flights"\nuser = "app"\npassword = "${LAKE_PASSWORD}"\n'
        'keys = ["id"]\norder_by = "timestamp"\n[sink.settings]\nsslmode = "require"'
    )
    assert found.database is not None
    assert found.database.properties()["password"] == "s3cret"
    assert found.database.properties()["sslmode"] == "require"
    assert (found.target, found.keys, found.order_by) == ("lake/last.flights", ("id",), "timestamp")
    assert "s3cret" not in repr(found)


@pytest.mark.parametrize(
    ("sink", "problem"),
    [
        (URL, "sink.target: is missing, such as 'lake.flights'"),
        (URL + 'target = "a.b.c"', "sink.target: target='a.b.c': put a part"),
        ('url = "jdbc:h2:mem"\ntarget = "t"', "sink.url: 'jdbc:h2:mem' is not that of"),
        (URL + 'target = "t"\npassword = 7', "sink.password: is no text"),
        (URL + 'target = "t"\nhistory = true', "sink.history: is not for a table of a database"),
        (URL + 'target = "t"\ncompact_after = 9', "sink.compact_after: is not for a table of a"),
        (
            URL + 'target = "t"\ndeletion_vectors = false',
            "sink.deletion_vectors: is not for a table of a database",
        ),
        (URL + 'target = "t"\norder_by = "x"', "sink.order_by: is for a table with keys"),
        (
            URL + 'target = "t"\nkeys = "id"\nmax_ahead = "soon"',
            "sink.max_ahead: 'soon': write a number and a unit",
        ),
        (
            URL + 'target = "t"\nurll = "x"',
            "sink.urll: there is no such field; did you mean 'url'?",
        ),
        (
            URL + 'target = "t"\n[sink.settings]\nuser = "x"',
            "sink.settings: write user= as an argument of its own",
        ),
    ],
)
def test_what_is_refused(sink: str, problem: str) -> None:
    assert [one for one in problems(sink) if one.startswith(problem)]


def test_files_by_their_format() -> None:
    found = read('target = "./lake/late"\nformat = "json"\npartition_by = ["day"]')
    assert (found.format, found.target) == ("json", "/pipelines/lake/late")
    assert problems('target = "late"\nformat = "csv"')[0].startswith(
        "sink.format: 'csv' is not allowed; allowed: 'delta', 'parquet', 'json'"
    )
    assert "files need a path with a slash" in problems('target = "late"\nformat = "json"')[0]
    small = 'target = "./x"\nformat = "json"\ncompact_after = 9'
    assert problems(small) == ["sink.compact_after: is for Delta tables: leave it out"]
    vectors = small.replace("compact_after = 9", "deletion_vectors = true")
    assert problems(vectors) == ["sink.deletion_vectors: is for Delta tables: leave it out"]
    assert "files are appended" in problems('target = "./x"\nformat = "json"\nkeys = ["id"]')[0]
