"""Who has which record of a share partition: Kafka's SharePartition, as KIP-932 describes it."""

import pytest
from tests.share.shares import (
    ACCEPT,
    REJECT,
    RELEASE,
    RENEW,
    SETTINGS,
    acquire,
    loaded,
    log,
    say,
    states,
    wish,
    write,
)

from ottla.protocol.errors import ApiError, ErrorCode
from ottla.share import share_partition
from ottla.share.record_state import Cause
from ottla.share.share_partition import (
    MAX_RUNS,
    MAX_RUNS_ACQUIRED,
    AckBatch,
    Letter,
    SharePartition,
    StoredState,
)


def refused(partition: SharePartition, *args: int, member: str = "m", **more: object) -> ErrorCode:
    with pytest.raises(ApiError) as caught:
        say(partition, *args, member=member, **more)  # type: ignore[arg-type]
    return caught.value.code


def test_accepted_records_are_over_once_they_are_written() -> None:
    partition = loaded(10)
    assert acquire(partition, log((10, 19))) == [(10, 19, 1)]
    assert partition.next_fetch_offset() == 20
    say(partition, 10, 14, ACCEPT)
    assert partition.start_offset == 10
    assert write(partition) == [(10, 14, 2, 1)]
    assert partition.start_offset == 15
    say(partition, 15, 19, ACCEPT)
    write(partition)
    assert (partition.start_offset, partition.in_flight_count, states(partition)) == (20, 0, [])


def test_the_middle_waits_for_the_beginning() -> None:
    partition = loaded()
    acquire(partition, log((0, 9)))
    say(partition, 3, 5, ACCEPT)
    write(partition)
    assert partition.start_offset == 0
    assert partition.begin_write().delivery_complete_count == 3
    partition.end_write(is_written=True)
    say(partition, 0, 2, REJECT)
    write(partition)
    assert partition.start_offset == 6


def test_each_record_may_have_its_own_type() -> None:
    partition = loaded()
    acquire(partition, log((0, 4)))
    say(partition, 0, 4, ACCEPT, RELEASE, REJECT, 0, RENEW, now=7)
    assert write(partition) == [(0, 0, 2, 1), (1, 1, 0, 1), (2, 3, 4, 1)]
    assert states(partition) == [
        (1, 1, "AVAILABLE", 1),
        (2, 3, "ARCHIVED", 1),
        (4, 4, "ACQUIRED", 1),
    ]
    assert partition.next_fetch_offset() == 1
    assert partition.next_lock_end_ms() == 7 + SETTINGS.lock_ms
    assert acquire(partition, log((0, 4))) == [(1, 1, 2)]


def test_a_released_record_comes_again_and_is_archived_at_the_limit() -> None:
    partition = loaded()
    for count in range(1, SETTINGS.max_deliveries + 1):
        assert acquire(partition, log((0, 0))) == [(0, 0, count)]
        say(partition, 0, 0, RELEASE)
        state = 4 if count == SETTINGS.max_deliveries else 0
        assert write(partition) == [(0, 0, state, count)]
    assert (partition.start_offset, partition.next_fetch_offset()) == (1, 1)


def test_a_write_that_fails_is_taken_back() -> None:
    partition = loaded()
    acquire(partition, log((0, 9)), now=100)
    say(partition, 0, 4, ACCEPT)
    say(partition, 5, 6, RELEASE)
    assert refused(partition, 0, 4, ACCEPT) is ErrorCode.invalid_record_state
    assert write(partition, is_written=False) == [(0, 4, 2, 1), (5, 6, 0, 1)]
    assert states(partition) == [(0, 9, "ACQUIRED", 1)]
    say(partition, 0, 9, ACCEPT)
    write(partition)
    assert partition.start_offset == 10


def test_what_is_said_during_a_write_waits_for_the_next() -> None:
    partition = loaded()
    acquire(partition, log((0, 9)))
    say(partition, 0, 4, ACCEPT)
    partition.begin_write()
    say(partition, 5, 9, ACCEPT)
    assert partition.has_unwritten
    partition.end_write(is_written=True)
    assert partition.start_offset == 5
    assert write(partition) == [(5, 9, 2, 1)]
    assert partition.start_offset == 10
    assert not partition.has_unwritten


def test_a_lock_that_is_over_gives_the_records_to_others() -> None:
    partition = loaded()
    acquire(partition, log((0, 4)), wish("a"), now=0)
    acquire(partition, log((0, 9)), wish("b"), now=10)
    assert partition.next_lock_end_ms() == SETTINGS.lock_ms
    assert not partition.expire_locks(SETTINGS, SETTINGS.lock_ms - 1)
    assert partition.expire_locks(SETTINGS, SETTINGS.lock_ms)
    assert refused(partition, 0, 4, ACCEPT, member="a") is ErrorCode.invalid_record_state
    assert acquire(partition, log((0, 9)), wish("c")) == [(0, 4, 2)]
    # Written as it was before it was acquired again: nothing is stored of who has it.
    assert write(partition) == [(0, 4, 0, 1)]


def test_an_end_that_is_being_written_outlives_its_lock() -> None:
    partition = loaded()
    acquire(partition, log((0, 4)))
    say(partition, 0, 4, ACCEPT)
    partition.begin_write()
    assert not partition.expire_locks(SETTINGS, SETTINGS.lock_ms)
    partition.end_write(is_written=False)
    assert partition.expire_locks(SETTINGS, SETTINGS.lock_ms)
    assert states(partition) == [(0, 4, "AVAILABLE", 1)]


def test_a_release_is_written_again_until_it_is_written() -> None:
    partition = loaded()
    acquire(partition, log((0, 4)), wish("a"))
    acquire(partition, log((0, 9)), wish("b"))
    assert partition.release("a", SETTINGS)
    assert not partition.release("a", SETTINGS)
    assert write(partition, is_written=False) == [(0, 4, 0, 1)]
    assert partition.has_unwritten
    assert write(partition) == [(0, 4, 0, 1)]
    assert not partition.has_unwritten
    assert partition.next_fetch_offset() == 0


def test_an_archived_record_does_not_move_the_start_before_it_is_written() -> None:
    settings = SETTINGS._replace(max_deliveries=1)
    partition = loaded()
    acquire(partition, log((0, 4)), settings=settings)
    assert partition.expire_locks(settings, settings.lock_ms)
    write(partition, is_written=False)
    assert partition.start_offset == 0
    assert write(partition) == [(0, 4, 4, 1)]
    assert partition.start_offset == 5


def test_only_the_owner_may_acknowledge() -> None:
    partition = loaded(5)
    assert refused(partition, 5, 6, ACCEPT) is ErrorCode.invalid_record_state
    acquire(partition, log((5, 9)))
    assert refused(partition, 5, 6, ACCEPT, member="x") is ErrorCode.invalid_record_state
    assert refused(partition, 8, 10, ACCEPT) is ErrorCode.invalid_request
    assert refused(partition, 12, 13, ACCEPT) is ErrorCode.invalid_request
    assert refused(partition, 6, 5, ACCEPT) is ErrorCode.invalid_request
    assert refused(partition, 5, 6, 5) is ErrorCode.invalid_request
    assert refused(partition, 5, 7, ACCEPT, ACCEPT) is ErrorCode.invalid_request
    say(partition, 2, 4, ACCEPT)  # before the start: over already
    say(partition, 3, 6, ACCEPT)
    assert write(partition) == [(5, 6, 2, 1)]


def test_a_request_holds_whole_or_not_at_all() -> None:
    partition = loaded()
    acquire(partition, log((0, 4)), wish("a"))
    acquire(partition, log((0, 9)), wish("b"))
    batches = [AckBatch(0, 4, [ACCEPT]), AckBatch(5, 9, [ACCEPT])]
    with pytest.raises(ApiError):
        partition.acknowledge("a", batches, SETTINGS, 0)
    assert not partition.has_unwritten
    batches = [AckBatch(0, 4, [ACCEPT]), AckBatch(4, 4, [ACCEPT])]
    with pytest.raises(ApiError):
        partition.acknowledge("a", batches, SETTINGS, 0)
    assert not partition.has_unwritten


def test_locks_are_not_renewed_where_the_group_forbids_it() -> None:
    partition = loaded()
    acquire(partition, log((0, 4)))
    settings = SETTINGS._replace(can_renew=False)
    assert refused(partition, 0, 4, RENEW, settings=settings) is ErrorCode.invalid_record_state


def test_batches_are_whole_unless_the_limit_is_strict() -> None:
    batches = log((0, 9), (10, 19), (20, 29))
    partition = loaded()
    assert acquire(partition, batches, wish(most=12)) == [(0, 19, 1)]
    partition = loaded()
    assert acquire(partition, batches, wish(size=10)) == [(0, 9, 1), (10, 19, 1), (20, 29, 1)]
    partition = loaded()
    assert acquire(partition, batches, wish(most=12, strict=True)) == [(0, 11, 1)]
    assert partition.next_fetch_offset() == 12
    assert acquire(partition, batches, wish("n", 3, strict=True)) == [(12, 14, 1)]
    assert acquire(partition, batches, wish("n")) == [(15, 19, 1), (20, 29, 1)]


def test_no_more_is_locked_than_may_be() -> None:
    settings = SETTINGS._replace(max_in_flight=15)
    partition = loaded()
    batches = log((0, 9), (10, 19), (20, 29))
    assert acquire(partition, batches, settings=settings) == [(0, 19, 1)]
    assert not partition.can_acquire(settings)
    assert acquire(partition, batches, settings=settings) == []
    say(partition, 3, 5, RELEASE)
    write(partition)
    assert partition.can_acquire(settings)
    assert acquire(partition, batches, settings=settings) == [(3, 5, 2)]


def test_a_suspect_comes_with_few_others_and_at_last_alone() -> None:
    partition = loaded(0, (0, 7, 0, 3), (8, 9, 0, 1))
    batches = log((0, 9))
    assert acquire(partition, batches, wish("a")) == [(0, 3, 4)]
    partition = loaded(0, (0, 7, 0, 4), (8, 9, 0, 1))
    assert acquire(partition, batches, wish("a")) == [(0, 0, 5)]
    assert acquire(partition, batches, wish("b")) == [(1, 1, 5)]
    partition = loaded(0, (0, 1, 0, 1), (2, 9, 0, 4))
    assert acquire(partition, batches, wish("a")) == [(0, 1, 2)]


def test_a_lower_limit_archives_what_was_delivered_too_often() -> None:
    settings = SETTINGS._replace(max_deliveries=2)
    partition = loaded(0, (0, 4, 0, 3), (5, 9, 0, 1))
    assert acquire(partition, log((0, 9)), settings=settings) == [(5, 9, 2)]
    assert write(partition) == [(0, 4, 4, 3)]


def test_what_was_acquired_before_a_failover_comes_again() -> None:
    partition = loaded(0, (3, 5, 2, 1), (8, 9, 0, 2))
    assert partition.next_fetch_offset() == 0
    batches = log((0, 4), (5, 9), (10, 19))
    assert acquire(partition, batches, wish(most=2, strict=True)) == [(0, 1, 1)]
    assert acquire(partition, batches) == [(2, 2, 1), (6, 7, 1), (8, 9, 3), (10, 19, 1)]
    assert partition.next_fetch_offset() == 20


def test_records_that_the_log_has_no_more_are_over() -> None:
    partition = loaded(0, (4, 5, 2, 1), (6, 9, 0, 1))
    # Compaction left nothing before offset 8.
    assert partition.acquire(wish(), 0, log((8, 12)), SETTINGS, 0)[0].first == 8
    assert partition.start_offset == 8
    say(partition, 8, 12, ACCEPT)
    write(partition)
    assert partition.start_offset == 13


def test_retention_moves_the_start() -> None:
    partition = loaded()
    acquire(partition, log((0, 9)))
    partition.move_start(5)
    assert (partition.start_offset, partition.next_fetch_offset()) == (5, 10)
    say(partition, 0, 9, ACCEPT)
    assert write(partition) == [(5, 9, 2, 1)]
    partition.move_start(50)
    partition.move_start(20)
    assert (partition.start_offset, partition.next_fetch_offset()) == (50, 50)
    assert acquire(partition, log((50, 51))) == [(50, 51, 1)]


def test_retention_may_pass_what_is_being_written() -> None:
    partition = loaded()
    acquire(partition, log((0, 9)))
    say(partition, 0, 9, ACCEPT)
    partition.begin_write()
    partition.move_start(5)
    partition.end_write(is_written=False)
    assert states(partition) == [(5, 9, "ACQUIRED", 1)]


def test_aborted_records_are_never_handed_out() -> None:
    partition = loaded()
    batches = log((0, 4), (5, 9), (10, 14))
    assert acquire(partition, batches, aborted=log((0, 4), (8, 9))) == [(5, 7, 1), (10, 14, 1)]
    assert partition.start_offset == 5
    assert not partition.has_unwritten
    partition = loaded()
    assert acquire(partition, batches, aborted=log((0, 14))) == []
    assert (partition.start_offset, partition.next_fetch_offset()) == (15, 15)


def test_a_start_that_was_chosen_is_written_until_it_is_written() -> None:
    partition = SharePartition(StoredState(0, 7, ()), is_start_new=True)
    assert partition.has_unwritten
    write(partition, is_written=False)
    assert partition.has_unwritten
    assert partition.begin_write().start_offset == 7
    assert not partition.has_unwritten
    partition.end_write(is_written=True)
    assert not partition.has_unwritten


def test_a_fetch_that_begins_inside_of_a_batch() -> None:
    partition = loaded(7)
    assert acquire(partition, log((5, 9))) == [(7, 9, 1)]


def test_stored_batches_that_are_in_no_order_are_refused() -> None:
    with pytest.raises(ValueError, match="stored batch 3 to 4 behind offset 5"):
        loaded(5, (3, 4, 0, 1))
    with pytest.raises(ValueError, match="stored batch 6 to 9"):
        loaded(5, (5, 7, 0, 1), (6, 9, 0, 1))


def test_an_offset_that_is_over_at_load_is_not_kept() -> None:
    partition = loaded(5, (5, 7, 2, 1), (8, 9, 4, 5))
    assert (partition.start_offset, partition.next_offset, states(partition)) == (10, 10, [])


def test_records_are_in_only_so_many_runs() -> None:
    partition = loaded()
    count = 2 * MAX_RUNS
    acquire(partition, log((0, count - 1)))
    either = (ACCEPT, RELEASE)
    assert refused(partition, 0, count - 1, *either * MAX_RUNS) is ErrorCode.invalid_request
    assert len(partition.runs) == 1
    batches = [AckBatch(first, first, [ACCEPT]) for first in range(0, count, 2)]
    with pytest.raises(ApiError):  # a run for each batch of the request
        partition.acknowledge("m", batches, SETTINGS, 0)
    say(partition, 0, MAX_RUNS - 3, *either * (MAX_RUNS // 2 - 1))
    assert len(partition.runs) == MAX_RUNS - 1
    say(partition, MAX_RUNS - 2, MAX_RUNS - 2, ACCEPT)
    assert refused(partition, MAX_RUNS, MAX_RUNS, ACCEPT) is ErrorCode.invalid_request
    say(partition, MAX_RUNS - 1, count - 1, RELEASE)
    assert len(partition.runs) == MAX_RUNS
    write(partition)
    assert partition.start_offset == 1


def test_many_more_types_than_there_may_be_runs_are_not_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A request may have a million of them, for one run or for several."""
    made = []
    right = share_partition._Decision

    def decision(*given: int) -> object:
        made.append(given)
        return right(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(share_partition, "_Decision", decision)
    count = 4 * MAX_RUNS
    for batches in (log((0, count - 1)), log((0, MAX_RUNS - 1), (MAX_RUNS, count - 1))):
        partition = loaded()
        made.clear()
        acquire(partition, batches)
        code = refused(partition, 0, count - 1, *(ACCEPT, RELEASE) * (count // 2))
        assert code is ErrorCode.invalid_request
        assert len(made) <= MAX_RUNS + 1


def test_single_acquisitions_of_a_huge_batch_make_only_so_many_runs() -> None:
    partition = loaded()
    count = 3 * MAX_RUNS_ACQUIRED
    batches = log((0, count - 1))
    for number in range(MAX_RUNS_ACQUIRED + 10):
        strict = wish(f"m{number}", 1, strict=True)
        acquire(partition, batches, strict, now=number)
    assert len(partition.runs) == MAX_RUNS_ACQUIRED
    # The first one is given back: it is handed out again, and the rest stays as it is.
    partition.release("m0", SETTINGS)
    assert acquire(partition, batches, wish("x", 1, strict=True)) == [(0, 0, 2)]
    assert acquire(partition, batches, wish("x", 1, strict=True)) == []
    # Locks end, and the runs become one again.
    partition.expire_locks(SETTINGS, 10 * SETTINGS.lock_ms)
    write(partition)
    assert len(partition.runs) == 3
    assert acquire(partition, batches, wish("x", 1, strict=True)) == [(0, 0, 3)]


def test_a_partition_whose_states_alternate_goes_on() -> None:
    settings = SETTINGS._replace(max_runs=10)
    partition = loaded()
    batches = log((0, 99))
    acquire(partition, batches)
    for first in range(0, 100, 4):  # two accepted, two given back
        say(partition, first, first + 3, ACCEPT, ACCEPT, RELEASE, RELEASE)
        write(partition)
    one = wish("x", 1, strict=True)
    found = []
    for _ in range(100):
        got = acquire(partition, batches, one, settings=settings)
        if not got:
            break
        found += got
        assert len(partition.runs) <= 50
        say(partition, got[0][0], got[0][1], ACCEPT, member="x")
        write(partition)
    expected = [offset for offset in range(100) if offset % 4 >= 2]
    assert [first for first, _, _ in found] == expected
    assert partition.start_offset == 100


DEAD = SETTINGS._replace(has_dead_letters=True, max_deliveries=2)


def test_a_dead_letter_is_due_once_it_is_stored_that_the_record_is_archiving() -> None:
    """KIP-1191."""
    partition = loaded()
    acquire(partition, log((0, 9)), settings=DEAD)
    say(partition, 0, 9, *[ACCEPT] * 2, *[REJECT] * 3, *[RELEASE] * 5, settings=DEAD)
    assert partition.take_letters(DEAD) == []
    assert write(partition)[1] == (2, 4, 3, 1)
    letter = Letter(2, 4, 1, Cause.REJECTED)
    assert partition.take_letters(DEAD) == [letter]
    assert partition.take_letters(DEAD) == []  # somebody writes it
    assert (partition.start_offset, partition.has_letters) == (2, True)
    assert acquire(partition, log((0, 9)), settings=DEAD) == [(5, 9, 2)]
    partition.end_letter(letter)
    assert write(partition) == [(2, 4, 4, 1)]
    assert (partition.start_offset, partition.has_letters) == (5, False)


def test_what_was_delivered_too_often_gets_dead_letters() -> None:
    """Released, its lock over, its member gone, and the limit lowered meanwhile."""
    partition = loaded(0, (0, 9, 0, 1))
    lock_ms = DEAD.lock_ms
    for first in (0, 2, 4):
        acquire(partition, log((first, first + 1)), wish(most=2, strict=True), settings=DEAD)
    say(partition, 0, 1, RELEASE, settings=DEAD)
    partition.release("m", DEAD)
    acquire(partition, log((6, 7)), wish("x", 2, strict=True), settings=DEAD)
    partition.expire_locks(DEAD, lock_ms)
    lowered = DEAD._replace(max_deliveries=1)
    assert acquire(partition, log((8, 9)), settings=lowered) == []
    write(partition)
    cause = Cause.DELIVERED_TOO_OFTEN
    assert [each._replace(delivery_count=0) for each in partition.take_letters(DEAD)] in (
        [Letter(0, 9, 0, cause)],
        [Letter(0, 7, 0, cause), Letter(8, 9, 0, cause)],
    )


def test_an_end_that_is_not_written_has_no_dead_letter() -> None:
    partition = loaded()
    acquire(partition, log((0, 1)), settings=DEAD)
    say(partition, 0, 0, REJECT, settings=DEAD)
    write(partition, is_written=False)
    assert partition.take_letters(DEAD) == []
    say(partition, 0, 1, ACCEPT, settings=DEAD)
    write(partition)
    assert not partition.has_letters
    assert partition.start_offset == 2


def test_the_log_may_begin_behind_a_dead_letter() -> None:
    partition = loaded()
    acquire(partition, log((0, 9)), settings=DEAD)
    say(partition, 0, 9, REJECT, settings=DEAD)
    write(partition)
    (letter,) = partition.take_letters(DEAD)
    partition.move_start(4)
    partition.end_letter(letter)
    assert write(partition) == [(4, 9, 4, 1)]
    assert partition.start_offset == 10


def test_records_of_a_leader_before_this_one_get_their_dead_letters() -> None:
    partition = loaded(0, (0, 0, 3, 1), (1, 1, 3, 2), (2, 2, 4, 1))
    letters = [Letter(0, 0, 1, Cause.REJECTED), Letter(1, 1, 2, Cause.DELIVERED_TOO_OFTEN)]
    assert partition.take_letters(DEAD) == letters
    for each in letters:
        partition.end_letter(each)
    write(partition)
    assert partition.start_offset == 3


def test_without_dead_letters_records_are_archived_at_once() -> None:
    partition = loaded()
    acquire(partition, log((0, 1)))
    say(partition, 0, 1, REJECT)
    assert write(partition) == [(0, 1, 4, 1)]
    assert partition.take_letters(SETTINGS) == []
