"""Answers of two brokers become equal where only ids, times and wording differ."""

from __future__ import annotations

from conformance.differential.normal import Names, differences

from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages import messages_of
from ottla.records.build import build_batch
from ottla.records.control import ControlType, write_end_marker
from ottla.records.record import Record


def test_ids_get_names_and_errors_too() -> None:
    names = Names()
    for producer_id, expected in ((4_711, "P1"), (12, "P2"), (4_711, "P1"), (-1, "-1")):
        answer = messages_of(22, 5).InitProducerIdResponse(
            error_code=ErrorCode.producer_fenced, producer_id=producer_id, producer_epoch=3
        )
        assert names.normal(answer) == {
            "error_code": "producer_fenced",
            "producer_id": expected,
            "producer_epoch": 3,
        }


def test_records_are_decoded() -> None:
    data = build_batch(
        [Record(0, 5, None, b"x"), Record(0, 6, None, b"y")],
        base_offset=3,
        producer_id=9,
        producer_epoch=1,
        base_sequence=4,
        is_transactional=True,
    ) + write_end_marker(ControlType.abort, 9, 2, 0, 7)
    common = {"producer": "P1", "transactional": True}
    assert Names().normal(data, "records") == [
        {**common, "offset": 3, "epoch": 1, "sequence": 4, "values": ["x", "y"]},
        {**common, "offset": 0, "epoch": 2, "sequence": -1, "marker": "abort"},
    ]


def test_aborted_transactions_after_the_last_stable_offset_do_not_count() -> None:
    build = messages_of(1, 12)
    aborted = tuple(build.AbortedTransaction(producer_id=7, first_offset=each) for each in (0, 3))
    data = build.PartitionData(last_stable_offset=2, aborted_transactions=aborted, records=b"")
    assert Names().normal(data)["aborted_transactions"] == [
        {"producer_id": "P1", "first_offset": 0}
    ]


def test_what_differs_is_named_with_its_place() -> None:
    one = {"a": [{"x": 1, "y": "s"}], "b": 2}
    assert differences(one, {"a": [{"x": 1, "y": "s"}], "b": 2}) == []
    assert differences(one, {"a": [{"x": 3, "y": "s"}], "c": 2}) == [
        "a[0].x: 1, 3",
        "b: the second has none",
        "c: the first has none",
    ]
    assert differences(one, {"a": [], "b": 2}) == ["a: [{'x': 1, 'y': 's'}], []"]
