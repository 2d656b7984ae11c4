"""What a pipeline says to brokers of where its rows go; the broker's reader understands it."""

import json

import pytest

from ottla.pipelines.destination import Destination, read_destination
from ottla.timelines.delivery_metadata import read_delivery
from ottla.timelines.destination import destination_of


@pytest.mark.parametrize(
    "to",
    [
        Destination("delta", "/lake/flights", called="Delta"),
        Destination("parquet", "hdfs://lake/files", called="Parquet files", place_is="folder"),
        Destination("postgresql", "public.f in postgresql://db/lake", "upsert", "timestamp"),
        Destination("delta", "/lake/flights", "history", "timestamp", "remove", True),
    ],
)
def test_the_broker_reads_what_a_pipeline_writes(to: Destination) -> None:
    document = to.document(7)
    assert read_destination(document) == to
    commit = {"ottla.pipeline": 1, "query": "q", "id": "i", "batch": 3, "sink": document}
    found = read_delivery(json.dumps(commit))
    assert found is not None
    assert found.version == 7
    read = destination_of(found.table)
    assert read is not None
    assert (read.kind, read.place, read.rows) == (to.kind, to.place, to.rows)
    assert (read.order, read.deletes) == (to.order, to.deletes)
    assert read.by_message_key is to.by_message_key
    assert read.place_is == to.place_is
    assert read.called == to.called


@pytest.mark.parametrize("document", [None, 3, {}, {"kind": "delta"}, {"place": "/lake"}])
def test_what_is_no_destination(document: object) -> None:
    assert read_destination(document) is None
