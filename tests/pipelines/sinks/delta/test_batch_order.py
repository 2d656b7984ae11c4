"""How often the shorter statement is tried."""

from __future__ import annotations

from ottla.pipelines.sinks.delta.batch_order import MAX_BATCHES_BETWEEN, BatchOrder


def tries(order: BatchOrder, late: str) -> str:
    """A letter for each batch: T for a try that succeeded, F for one that failed, - for none.

    `late`: for each batch, x if it has a late record.
    """
    shown = ""
    for batch in late:
        if not order.expects_order():
            shown += "-"
        elif batch == "x":
            order.was_late()
            shown += "F"
        else:
            order.was_in_order()
            shown += "T"
    return shown


def test_batches_in_order_are_always_tried() -> None:
    assert tries(BatchOrder(), "....") == "TTTT"


def test_each_failure_is_followed_by_twice_as_many_batches_without_a_try() -> None:
    assert tries(BatchOrder(), "x" * 12) == "F-F--F----F-"


def test_a_batch_in_order_ends_the_doubling() -> None:
    assert tries(BatchOrder(), "xxx..x..") == "F-F--F--"
    assert tries(BatchOrder(), "xxx...x.x.") == "F-F--TF-F-"


def test_a_stream_that_is_always_late_is_tried_from_time_to_time() -> None:
    shown = tries(BatchOrder(), "x" * 1_000)
    assert shown.strip("F-") == ""
    assert max(map(len, shown.split("F"))) == MAX_BATCHES_BETWEEN
