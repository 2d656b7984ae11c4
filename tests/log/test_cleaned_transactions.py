from ottla.log.cleaned_transactions import CleanedTransactions
from ottla.log.transaction_index import AbortedTransaction
from ottla.records.control import ControlType
from ottla.records.header import BatchHeader

ABORT, COMMIT = ControlType.abort, ControlType.commit


def _batch(offset: int, producer_id: int = 7, attributes: int = 0x10) -> BatchHeader:
    return BatchHeader(offset, 100, 0, 2, 0, attributes, 0, 0, 0, producer_id, 0, 0, 1)


def test_batches_between_first_offset_and_marker_are_aborted() -> None:
    transactions = CleanedTransactions()
    entry = AbortedTransaction(7, 10, 12, 13)
    transactions.add_aborted([entry])
    assert not transactions.batch_read(_batch(9)), "of the transaction before"
    assert not transactions.marker_read(_batch(9), COMMIT)
    assert transactions.batch_read(_batch(10))
    assert not transactions.batch_read(_batch(11, producer_id=8))
    assert not transactions.batch_read(_batch(11, attributes=0)), "not transactional"
    assert not transactions.marker_read(_batch(12), ABORT)
    assert transactions.kept == [entry]
    assert not transactions.batch_read(_batch(13))


def test_markers_without_batches_may_go() -> None:
    transactions = CleanedTransactions()
    transactions.add_aborted([AbortedTransaction(7, 10, 12, 13)])
    assert transactions.marker_read(_batch(12), ABORT)
    assert transactions.marker_read(_batch(13), COMMIT)
    assert transactions.marker_read(_batch(14), None), "an empty control batch"
    assert transactions.kept == []


def test_a_transaction_that_two_segments_list_counts_once() -> None:
    """The index of a later segment names a transaction that the reading is in already."""
    transactions = CleanedTransactions()
    entry = AbortedTransaction(7, 10, 30, 31)
    transactions.add_aborted([entry])
    assert transactions.batch_read(_batch(10))
    transactions.add_aborted([entry])
    assert transactions.batch_read(_batch(20))
    assert not transactions.marker_read(_batch(30), ABORT)
    assert not transactions.batch_read(_batch(31))
    assert transactions.kept == [entry]


def test_they_begin_in_the_order_of_their_first_offsets() -> None:
    transactions = CleanedTransactions()
    transactions.add_aborted([AbortedTransaction(8, 11, 13, 10), AbortedTransaction(7, 10, 14, 15)])
    assert transactions.batch_read(_batch(10))
    assert transactions.batch_read(_batch(11, producer_id=8))
    assert not transactions.marker_read(_batch(13, producer_id=8), ABORT)
    assert not transactions.marker_read(_batch(14), ABORT)
    assert [entry.producer_id for entry in transactions.kept] == [8, 7]
