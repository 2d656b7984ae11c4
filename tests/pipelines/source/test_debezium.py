"""Events of Debezium: the row of each, what is rejected, and the table that they make."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ottla.pipelines import PipelineError, to_delta, topic
from ottla.pipelines.kafka.settings import KafkaSettings
from ottla.pipelines.rejects import rejects
from ottla.pipelines.source.ddl import read_ddl
from ottla.pipelines.source.debezium import envelope, envelope_kind
from ottla.pipelines.source.fields import kind_of
from ottla.pipelines.source.parse import read_schema
from ottla.pipelines.source.source import Source
from ottla.pipelines.source.topic import only_rejected, rows_of

pytestmark = pytest.mark.spark

ROW = "id INT NOT NULL, first_name STRING, email STRING"
SOURCE = {
    "version": "3.3.0.Final", "connector": "postgresql", "name": "shop", "ts_ms": 1559033904863,
    "snapshot": "true", "db": "postgres", "sequence": '["24023119","24023128"]',
    "schema": "public", "table": "customers", "txId": 555, "lsn": 24023128, "xmin": None,
}  # fmt: skip
TRANSACTION = {"id": "571:53195829", "total_order": 1, "data_collection_order": 1}


def person(id_: int, name: str | None = "Anne") -> dict[str, Any]:
    return {"id": id_, "first_name": name, "email": None}


def event(op: str | None, before: Any = None, after: Any = None, **more: Any) -> dict[str, Any]:
    found = {"before": before, "after": after, "source": SOURCE, "ts_ms": 1559033904863}
    found |= {"transaction": None} | more
    return found if op is None else found | {"op": op}


def wrapped(payload: dict[str, Any]) -> dict[str, Any]:
    fields = [{"type": "string", "optional": False, "field": "op"}]
    name = "shop.public.customers.Envelope"
    schema = {"type": "struct", "fields": fields, "optional": False, "name": name}
    return {"schema": schema, "payload": payload}


def text(value: Any) -> bytes | None:
    return None if value is None else json.dumps(value).encode()


def source_of(spark: Any, schema: str = ROW) -> Source:
    row: Any = read_schema(schema, "schema")
    schemas = {"key": read_schema(None, "key_schema"), "value": envelope(row)}
    return Source(
        "t", KafkaSettings("b:1"), schemas, tombstones="skip", source_format="debezium",
        truncate="ignore",
    )  # fmt: skip


def raw(spark: Any, *values: Any) -> Any:
    return spark.createDataFrame(
        [(b"k", text(value), "t", 0, number, None, None) for number, value in enumerate(values)],
        "key BINARY, value BINARY, topic STRING, partition INT, offset BIGINT, "
        "timestamp TIMESTAMP, headers ARRAY<STRUCT<key: STRING, value: BINARY>>",
    )


@pytest.mark.parametrize("wrap", [lambda one: one, wrapped], ids=["plain", "with its schema"])
def test_each_event_is_a_row(spark: Any, wrap: Callable[[Any], Any]) -> None:
    events = [
        event("r", after=person(1)),
        event("c", after=person(2), transaction=TRANSACTION, ts_us=1, ts_ns=2),
        event("u", before=person(1), after=person(1, "Eve")),
        event("d", before={"id": 2}),
        None,  # the tombstone after a deletion
        event("t"),
    ]
    records = raw(spark, *(one and wrap(one) for one in events))
    rows = rows_of(records, source_of(spark)).orderBy("offset").collect()
    assert [(row["op"], row["value"]["id"], row["tombstone"]) for row in rows] == [
        ("r", 1, False),
        ("c", 2, False),
        ("u", 1, False),
        ("d", 2, True),
    ]
    assert rows[2]["value"]["first_name"] == "Eve"
    assert rows[2]["before"]["first_name"] == "Anne"
    assert rows[3]["value"].asDict() == {"id": 2, "first_name": None, "email": None}
    assert json.loads(rows[0]["source"]) == SOURCE
    assert json.loads(rows[1]["transaction"]) == TRANSACTION
    assert rows[0]["transaction"] is None
    assert rows[0]["ts_ms"] == 1559033904863


BAD = [
    (event(None, after=person(1)), "value has no op, so it is no event of Debezium"),
    ({"id": 1}, "value has no op, so it is no event of Debezium"),
    (event("m"), "value.op is m, and none of c, r, u, d, t"),
    (event("u", before=person(1)), "value.after is null in an event with op u"),
    (event("d"), "value.before is null in an event with op d, so nothing says which row"),
    (event("c", after={"first_name": "A"}), "value lacks the field after.id, which is NOT NULL"),
    (wrapped(event("c", after=person("x"))), "value is not a JSON object of the schema"),  # type: ignore[arg-type]
]


def test_what_is_no_event_is_rejected_with_the_reason(spark: Any) -> None:
    records = raw(spark, *(value for value, _ in BAD), event("c", after=person(7)))
    source = source_of(spark)
    assert [row["value"]["id"] for row in rows_of(records, source).collect()] == [7]
    found = only_rejected(records, source).orderBy("offset").collect()
    for row, (_, words) in zip(found, BAD, strict=True):
        assert row["reason"].startswith(words) or "payload.after" in row["reason"], row["reason"]


def test_an_envelope_is_the_same_without_spark(spark: Any) -> None:
    row: Any = read_schema(ROW, "schema")
    kind = read_ddl(ROW)
    assert kind is not None
    assert kind_of(envelope(row)) == envelope_kind(kind)


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"source_format": "maxwell"}, "write 'plain' or 'debezium'"),
        ({"truncate": "cascade"}, "write 'stop', 'ignore' or 'apply'"),
        ({"source_format": "plain", "truncate": "ignore"}, "is for source_format='debezium'"),
        ({"schema": None}, "needs the columns of the database's table in schema"),
        ({"rejects": "keep"}, "takes neither rejects='keep'"),
        ({"unknown_fields": "keep"}, "takes neither rejects='keep' nor unknown_fields='keep'"),
        ({"tombstones": "mark"}, "the tombstones after them are left out"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(spark: Any, how: dict[str, Any], said: str) -> None:
    given = {"schema": ROW, "source_format": "debezium"} | how
    with pytest.raises(PipelineError, match=said):
        topic(spark, "t", bootstrap_servers="b:1", **given)


class Job:
    """A pipeline of a database's table into a table with keys."""

    def __init__(self, spark: Any, bootstrap: str, name: str, folder: Path) -> None:
        self.spark, self.bootstrap, self.name, self.folder = spark, bootstrap, name, folder

    def run(self, truncate: Any = "stop", columns: tuple[str, ...] = ("tombstone",)) -> None:
        rows = topic(
            self.spark, self.name, bootstrap_servers=self.bootstrap, schema=ROW,
            source_format="debezium", truncate=truncate,
        )  # fmt: skip
        to_delta(
            rows.select("value.*", "partition", "offset", *columns),
            self.folder / "customers",
            checkpoint=self.folder / "checkpoint",
            trigger={"availableNow": True},
            keys=["id"],
        ).awaitTermination()

    def rows(self, name: str = "customers") -> list[tuple[Any, ...]]:
        frame = self.spark.read.format("delta").load(str(self.folder / name))
        columns = ("offset", "reason") if name.endswith("rejected") else ("id", "first_name")
        return sorted(map(tuple, frame.select(*columns).collect()))


def test_a_table_follows_the_database_over_kills(
    spark: Any,
    bootstrap: str,
    new_topic: Callable[..., str],
    produce: Callable[..., None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    job = Job(spark, bootstrap, new_topic(1), tmp_path)

    def send(*events: Any) -> None:
        produce(job.name, [(b"k", text(one)) for one in events])

    send(*(event("r", after=person(n)) for n in (1, 2, 3)))
    with pytest.raises(PipelineError, match="in the column tombstone, and the frame has no such"):
        job.run(columns=())
    job.run()
    send(event("d", before={"id": 2}), None, event("d"), wrapped(event("u", after=person(1, "E"))))

    def write(*_: Any, **__: Any) -> None:
        raise PipelineError("killed")

    with monkeypatch.context() as patch:
        patch.setattr(rejects.Rejects, "write", write)
        with pytest.raises(PipelineError, match="killed"):
            job.run()
    job.run()
    assert job.rows() == [(1, "E"), (3, "Anne")]
    words = "value.before is null in an event with op d, so nothing says which row was deleted"
    assert job.rows("customers_rejected") == [(5, words)]
    assert "delete no row" not in caplog.text

    # The table is truncated at its source.
    send(event("c", after=person(4)), event("t"), event("c", after=person(5)))
    with pytest.raises(PipelineError, match="at offset 8 says that the database's table was"):
        job.run()
    assert job.rows() == [(1, "E"), (3, "Anne")]
    job.run(truncate="ignore")
    assert [id_ for id_, _ in job.rows()] == [1, 3, 4, 5]
