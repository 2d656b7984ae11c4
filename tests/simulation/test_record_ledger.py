"""What the ledger of transactions with records accepts and what it reports."""

from __future__ import annotations

from simulation.record_ledger import RecordLedger, Value, decode

ONE, TWO = ("w", 0), ("w", 1)
TIMEOUT_MS = 2_500


class Bench:
    """A ledger with one producer."""

    def __init__(self) -> None:
        self.ledger = RecordLedger("id", TIMEOUT_MS)
        self.token = self.take_over()

    def take_over(self) -> int:
        instances = self.ledger.instances
        return instances.initialized(instances.asking(0))

    def written(self, *places: tuple[str, int]) -> list[Value]:
        """The records of a transaction, one in each place."""
        number = self.ledger.begun(0)
        values = []
        for place in places:
            value = self.ledger.sending(number)
            self.ledger.acknowledged(value, place)
            self.ledger.read_uncommitted(value, place)
            values.append(value)
        return values

    def ended(self, values: list[Value], *, is_commit: bool = True) -> list[Value]:
        number = values[0].number
        if is_commit:
            self.ledger.committing(number)
        fenced = self.ledger.instances.is_fenced(self.token)
        self.ledger.ended(number, is_commit=is_commit, was_fenced=fenced)
        return values

    def settled(self) -> list[str]:
        self.ledger.settle({ONE, TWO})
        return self.ledger.anomalies


def test_values_can_be_read_back() -> None:
    value = Value("a/b", 12, 3)
    assert decode(value.encode()) == value


def test_whole_transactions_are_as_they_should_be() -> None:
    bench = Bench()
    one, two = bench.ended(bench.written(ONE, TWO))
    bench.ended(bench.written(ONE, TWO), is_commit=False)
    (last,) = bench.ended(bench.written(ONE))
    for value, place in ((one, ONE), (last, ONE), (two, TWO)):
        bench.ledger.read(value, place)
    assert bench.settled() == []
    assert bench.ledger.committed == 2


def test_a_partly_visible_transaction() -> None:
    bench = Bench()
    one, _ = bench.ended(bench.written(ONE, TWO))
    bench.ledger.read(one, ONE)
    assert bench.settled() == ["id: 1.1 of ('w', 1) was committed and cannot be read"]


def test_a_commit_without_an_answer_may_have_happened_but_not_in_part() -> None:
    bench = Bench()
    one, two = bench.written(ONE, TWO)
    bench.ledger.committing(1)
    bench.ledger.read(one, ONE)
    bench.written(TWO)
    bench.ledger.committing(2)
    assert bench.ledger.committed == 1
    assert bench.settled() == ["id: 1.1 of ('w', 1) was committed and cannot be read"]
    assert two.position == 1


def test_open_and_aborted_records_that_are_read() -> None:
    bench = Bench()
    (value,) = bench.written(ONE)
    bench.ledger.read(value, ONE)
    (other,) = bench.ended(bench.written(TWO), is_commit=False)
    bench.ledger.read(other, TWO)
    assert bench.ledger.anomalies == [
        "id: 1.0 was read, and its transaction is open",
        "id: 2.0 was read, and its transaction is aborted",
    ]


def test_records_that_are_read_twice_or_in_another_order() -> None:
    bench = Bench()
    first, second = bench.ended(bench.written(ONE, ONE))
    bench.ledger.read(second, ONE)
    bench.ledger.read(first, ONE)
    bench.ledger.read(first, TWO)
    assert bench.ledger.anomalies == [
        "id: 1.0 was read after 1.1 in ('w', 0)",
        "id: 1.0 was read twice, in ('w', 0) and ('w', 1)",
    ]


def test_an_acknowledged_record_stays_in_the_log_even_if_it_is_aborted() -> None:
    bench = Bench()
    number = bench.ledger.begun(0)
    value = bench.ledger.sending(number)
    bench.ledger.acknowledged(value, ONE)
    bench.ledger.ended(number, is_commit=False, was_fenced=False)
    assert bench.settled() == ["id: 1.0 of ('w', 0) was acknowledged and is not in the log"]


def test_a_fenced_producer_that_commits() -> None:
    bench = Bench()
    values = bench.written(ONE)
    bench.take_over()
    bench.ended(values)
    assert bench.ledger.anomalies == ["id: a fenced producer committed 1"]


def test_a_producer_that_is_fenced_for_nothing() -> None:
    bench = Bench()
    number = bench.ledger.begun(0)
    bench.ledger.refused(bench.token, number, TIMEOUT_MS, "it timed out")
    assert bench.ledger.anomalies == []
    bench.ledger.refused(bench.token, number, 10, "X")
    assert bench.ledger.anomalies == ["id: the only producer was fenced in 1, 10 ms: X"]
    bench.take_over()
    bench.ledger.refused(bench.token, number, 10, "Y")
    assert len(bench.ledger.anomalies) == 1


def test_offsets_and_records_of_one_transaction_belong_together() -> None:
    bench = Bench()
    (value,) = bench.written(ONE)
    bench.ledger.offset_accepted(1)
    bench.ledger.own_offset_accepted(1)
    bench.ended([value])
    bench.ledger.read(value, ONE)
    assert (bench.ledger.offset_floor, bench.ledger.own_groups) == (1, [1])
    bench.ledger.read_offset(1, 1)
    bench.ledger.settle_offset(1)
    bench.ledger.settle_own_offset(1, 1)
    assert bench.settled() == bench.ledger.offset_anomalies == []


def test_records_whose_offset_is_missing() -> None:
    bench = Bench()
    (value,) = bench.written(ONE)
    bench.ledger.offset_accepted(1)
    bench.ledger.own_offset_accepted(1)
    bench.ledger.committing(1)
    bench.ledger.read(value, ONE)
    bench.ledger.settle_offset(0)
    bench.ledger.settle_own_offset(1, 0)
    assert bench.ledger.offset_anomalies == [
        "id: the offset is 0, after 1 was committed",
        "id: 1 is committed, and its own offset is not",
    ]


def test_an_offset_whose_records_are_missing() -> None:
    bench = Bench()
    bench.written(ONE)
    bench.ledger.offset_accepted(1)
    bench.ledger.committing(1)
    bench.ledger.settle_offset(1)
    assert bench.settled() == ["id: 1.0 of ('w', 0) was committed and cannot be read"]


def test_records_that_are_read_although_the_offset_shows_the_abort() -> None:
    bench = Bench()
    (value,) = bench.written(ONE)
    bench.ledger.offset_accepted(1)
    bench.ledger.committing(1)
    bench.ledger.settle_offset(0)
    bench.ledger.read(value, ONE)
    assert bench.ledger.anomalies == ["id: 1.0 was read, and its transaction is aborted"]


def test_offsets_of_open_and_aborted_transactions() -> None:
    bench = Bench()
    bench.written(ONE)
    bench.ledger.read_offset(1, 0)
    bench.ended(bench.written(ONE), is_commit=False)
    bench.ledger.read_offset(2, 0)
    bench.ledger.settle_own_offset(2, 1)
    assert bench.ledger.offset_anomalies == [
        "id: the offset of 1 is committed, and it is open",
        "id: the offset of 2 is committed, and it is aborted",
        "id: the own offset of 2 is 1",
    ]


def test_clocks_that_differ_may_end_a_transaction_early() -> None:
    ledger = RecordLedger("id", TIMEOUT_MS, lambda: TIMEOUT_MS - 10)
    token = ledger.instances.initialized(ledger.instances.asking(0))
    ledger.refused(token, ledger.begun(0), 10, "it timed out")
    assert ledger.anomalies == []


def test_what_may_be_deleted_may_be_missing() -> None:
    bench = Bench()
    number = bench.ledger.begun(0)
    for offset in (4, 5, -1):
        bench.ledger.acknowledged(bench.ledger.sending(number), ONE, offset)
    bench.ledger.acknowledged(bench.ledger.sending(number), TWO, 0)
    bench.ledger.deleting(ONE, 5)
    assert bench.ledger.may_be_forgotten(ONE)
    assert not bench.ledger.may_be_forgotten(TWO)
    assert bench.settled() == [
        "id: 1.1 of ('w', 0) was acknowledged and is not in the log",
        "id: 1.3 of ('w', 1) was acknowledged and is not in the log",
    ]
