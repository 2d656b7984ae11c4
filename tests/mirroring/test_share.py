"""Where the partitions of an instance stand."""

from __future__ import annotations

from ottla.client.topic_partition import TopicPartition
from ottla.mirroring.position import LastRecord, Origin, Position
from ottla.mirroring.share import Share

ORIGIN = Origin("id", "there", ("cluster",))
ONE, TWO = TopicPartition("p.t", 0), TopicPartition("p.u", 1)


def taken() -> Share:
    share = Share()
    share.take(ONE, "t", Position(5, ORIGIN))
    share.take(TWO, "u", Position(0, ORIGIN))
    return share


def test_what_a_transaction_commits() -> None:
    share = taken()
    assert share.changed() == {}
    share.next[ONE] = 9
    changed = share.changed()
    assert changed == {ONE: Position(9, ORIGIN)}
    assert share.names(changed) == {"p.t": "t"}
    share.note_committed(changed)
    assert share.changed() == {}


def test_an_aborted_transaction_is_read_again() -> None:
    share = taken()
    share.move(ONE, 9)
    share.note_last(ONE, 8, 3)
    share.rewind()
    assert share.next_offsets() == {
        TopicPartition("t", 0): (5, None),
        TopicPartition("u", 1): (0, None),
    }


def test_the_source_is_asked_for_the_last_record() -> None:
    """Behind it is a marker, which may be of a later epoch."""
    share = taken()
    share.move(ONE, 9)
    share.note_last(ONE, 8, 3)
    assert share.changed() == {ONE: Position(9, ORIGIN, LastRecord(9, 3))}
    share.move(ONE, 10)
    assert share.changed() == {ONE: Position(10, ORIGIN, LastRecord(9, 3))}
    assert share.next_offsets()[TopicPartition("t", 0)] == (9, 3)
    assert share.is_past(ONE, 9)
    assert not share.is_past(ONE, 8)
    assert not share.is_past(ONE, 10)


def test_where_the_last_record_was_removed_the_position_counts() -> None:
    share = taken()
    share.note_last(ONE, 8, 3)
    share.move(ONE, 20)
    share.forget_removed(ONE, 9)
    assert share.next_offsets()[TopicPartition("t", 0)] == (9, 3)
    share.forget_removed(ONE, 15)
    assert share.next_offsets()[TopicPartition("t", 0)] == (20, None)


def test_a_topic_is_left_out() -> None:
    share = taken()
    share.drop("p.t")
    assert share.by_source == {("u", 1): TWO}
    assert share.next_offsets() == {TopicPartition("u", 1): (0, None)}
    share.clear()
    assert not share.committed
