from pathlib import Path

import pytest

from ottla.pipelines.file.read import read_text
from ottla.pipelines.sinks.files import FilesSpec
from ottla.pipelines.sinks.postgresql import DatabaseSpec
from ottla.pipelines.sinks.topic import TopicSpec
from ottla.pipelines.spec.problem import FileError
from ottla.pipelines.spec.sink import SinkSpec

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
    assert isinstance(found, DatabaseSpec)
    assert found.database.properties()["password"] == "s3cret"
    assert found.database.properties()["sslmode"] == "require"
    assert (found.target, found.keys, found.order_by) == ("lake/last.flights", ("id",), "timestamp")
    assert "s3cret" not in repr(found)


@pytest.mark.parametrize(
    ("sink", "problem"),
    [
        (URL, "sink.target: is missing, such as 'lake.flights'"),
        (URL + 'target = "a.b.c"', "sink.target: 'a.b.c': put a part"),
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
    assert isinstance(found, FilesSpec)
    assert (found.format, found.target) == ("json", "/pipelines/lake/late")
    assert problems('target = "late"\nformat = "csv"')[0].startswith(
        "sink.format: 'csv' is not allowed; allowed: 'delta', 'parquet', 'json'"
    )
    assert "files need a path with a slash" in problems('target = "late"\nformat = "json"')[0]
    small = 'target = "./x"\nformat = "json"\ncompact_after = 9'
    assert problems(small) == [
        "sink.compact_after: is not for files, which are appended: leave it out"
    ]
    vectors = small.replace("compact_after = 9", "deletion_vectors = true")
    assert problems(vectors) == [
        "sink.deletion_vectors: is not for files, which are appended: leave it out"
    ]
    assert "is not for files" in problems('target = "./x"\nformat = "json"\nkeys = ["id"]')[0]


TOPIC_SOURCE = """
[source]
bootstrap_servers = "localhost:9092"
topic = "flights"
[source.kafka]
"client.id" = "late"
[delivery]
checkpoint = "./checkpoints/late"
"""


def read_topic(sink: str) -> TopicSpec:
    (one,) = read_text(Path("/pipelines/late.toml"), TOPIC_SOURCE + sink, {}).pipelines
    assert isinstance(one.sink, TopicSpec)
    assert one.sink.target == f"topic {one.sink.topic}"
    return one.sink


def topic_problems(sink: str) -> list[str]:
    with pytest.raises(FileError) as raised:
        read_topic(sink)
    return list(map(str, raised.value.problems))


def test_the_smallest_sink_is_on_the_cluster_of_the_source() -> None:
    found = read_topic('[sink]\ntopic = "late"')
    assert found.kafka.for_librdkafka() == {
        "bootstrap.servers": "localhost:9092",
        "client.id": "late",
    }
    assert (found.key, found.value, found.headers, found.producer) == (None, None, None, ())


def test_every_field_is_read() -> None:
    found = read_topic(
        """
        [sink]
        topic = "late"
        bootstrap_servers = ["one:9092", "two:9092"]
        key = "carrier"
        value = "struct(carrier, delay)"
        headers = "headers"
        [sink.kafka]
        "client.id" = "writer"
        "compression.type" = "zstd"
        """
    )
    assert found.kafka.for_librdkafka() == {
        "bootstrap.servers": "one:9092,two:9092",
        "client.id": "writer",
    }
    assert found.producer == (("compression.type", "zstd"),)
    assert (found.key, found.value) == ("carrier", "struct(carrier, delay)")
    assert found.headers == "headers"


def test_all_problems_are_found_at_once() -> None:
    found = topic_problems(
        """
        max_rejects = 3
        [sink]
        topic = "no topic"
        kye = "carrier"
        partition_by = "carrier"
        [sink.kafka]
        "group.id" = "mine"
        """
    )
    assert len(found) == 5
    text = "\n".join(found)
    assert "sink.topic: 'no topic' is no topic's name" in text
    assert "sink.kye: there is no such field; did you mean 'key'?" in text
    assert "sink.partition_by: is for tables" in text
    assert "sink.kafka: kafka= cannot take group.id" in text
    assert "delivery.max_rejects: is for tables" in text
