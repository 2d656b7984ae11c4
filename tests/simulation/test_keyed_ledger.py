"""What the ledger of a compacted partition accepts and what it reports."""

from __future__ import annotations

from simulation.keyed_ledger import Keyed, KeyedLedger


class Bench:
    """A ledger, and one reader."""

    def __init__(self) -> None:
        self.ledger = KeyedLedger("k-0")
        self.last: dict[str, tuple[int, Keyed]] = {}

    def written(self, key: str, offset: int, *, is_tombstone: bool = False) -> Keyed:
        record = self.ledger.sending(key, is_tombstone=is_tombstone)
        self.ledger.acknowledged(record, offset)
        return record

    def read(self, record: Keyed, offset: int) -> None:
        found = self.ledger.read(
            record.number, record.key, offset, is_tombstone=record.is_tombstone
        )
        if found is not None:
            self.last[record.key] = offset, found

    def judged(self, end_offset: int) -> list[str]:
        self.ledger.read_all(self.last, end_offset, "the reader")
        return self.ledger.anomalies


def test_earlier_records_of_a_key_may_be_missing() -> None:
    bench = Bench()
    bench.written("a", 0)
    last = bench.written("a", 1)
    other = bench.written("b", 2)
    for record, offset in ((last, 1), (other, 2)):
        bench.read(record, offset)
    assert bench.judged(3) == []


def test_the_last_record_of_a_key_is_there() -> None:
    bench = Bench()
    first = bench.written("a", 0)
    bench.written("a", 1)
    bench.written("b", 2)
    bench.read(first, 0)
    assert bench.judged(3) == [
        "k-0: the reader has a of 0, its last record is at 1",
        "k-0: the reader has no b, whose last record is at 2",
    ]


def test_a_key_may_be_missing_whose_last_record_is_a_tombstone() -> None:
    bench = Bench()
    bench.written("a", 0)
    bench.written("a", 1, is_tombstone=True)
    assert bench.judged(2) == []


def test_a_later_record_without_an_answer_may_take_its_place() -> None:
    bench = Bench()
    bench.written("a", 0)
    bench.read(bench.ledger.sending("a", is_tombstone=False), 1)
    assert bench.judged(2) == []


def test_a_record_has_one_offset_and_an_offset_one_record() -> None:
    bench = Bench()
    first, second = bench.written("a", 0), bench.ledger.sending("a", is_tombstone=False)
    bench.read(first, 1)
    bench.read(second, 0)
    assert bench.ledger.anomalies == [
        "k-0: 0 of a is at 0 and at 1",
        "k-0: 0 has 0 of a, and 1",
    ]


def test_what_was_not_sent_is_not_read() -> None:
    bench = Bench()
    record = bench.written("a", 0)
    bench.read(record._replace(key="b"), 0)
    bench.read(record._replace(number=7), 0)
    bench.read(record._replace(is_tombstone=True), 0)
    assert len(bench.ledger.anomalies) == 3


def test_an_acknowledged_record_beyond_the_end_is_lost() -> None:
    bench = Bench()
    bench.read(bench.written("a", 4), 4)
    assert bench.judged(4) == ["k-0: a was acknowledged at 4, and the log ends at 4"]


def test_a_fetch_does_not_go_back() -> None:
    ledger = KeyedLedger("k-0")
    ledger.wrong_batch(9, 7, 8)
    assert ledger.anomalies == ["k-0: a fetch at 9 got the batch 7 to 8"]
