from collections.abc import Callable

import pytest

from ottla.log import verification
from ottla.log.verification import NOT_REQUIRED, Guard, Verifications
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.records.header import BatchHeader


def _header(sequence: int, producer_id: int = 7, epoch: int = 0) -> BatchHeader:
    return BatchHeader(0, 100, 0, 2, 0, 0x10, 0, 0, 0, producer_id, epoch, sequence, 1)


def _begin(
    verifications: Verifications, sequence: int = 0, *, epoch: int = 0, version_2: bool = False
) -> Guard:
    return verifications.begin(7, epoch, sequence, version_2=version_2, now_ms=1_000)


def _refuses(verifications: Verifications, guard: Guard | None) -> bool:
    try:
        verifications.check_guard(7, guard)
    except ApiError as error:
        return error.code is ErrorCode.invalid_txn_state
    return False


def test_only_the_guard_of_the_verification_passes() -> None:
    verifications = Verifications()
    assert _refuses(verifications, None)
    assert _refuses(verifications, Guard())
    guard = _begin(verifications)
    assert not _refuses(verifications, guard)
    assert _refuses(verifications, None)
    assert _refuses(verifications, Guard())
    assert not _refuses(verifications, NOT_REQUIRED)


def test_batches_that_wait_share_a_verification() -> None:
    verifications = Verifications()
    assert _begin(verifications) is _begin(verifications, 5)
    assert len(verifications.by_producer) == 1


def test_a_guard_does_not_outlive_its_transaction() -> None:
    """The coordinator's answer may come after the marker, and after the next transaction began."""
    ends: list[Callable[[Verifications], object]] = [
        lambda v: v.ended(7, 0),
        lambda v: v.appended(7),
    ]
    for end in ends:
        verifications = Verifications()
        guard = _begin(verifications)
        end(verifications)
        assert _refuses(verifications, guard)
        assert _begin(verifications) is not guard
        assert _refuses(verifications, guard)


def test_in_version_2_a_marker_leaves_the_next_transactions_verification() -> None:
    """Its epoch is that of the next transaction, which may begin before the marker comes."""
    verifications = Verifications()
    guard = _begin(verifications, epoch=6, version_2=True)
    verifications.ended(7, 6)
    assert not _refuses(verifications, guard)
    verifications.ended(7, 7)
    assert _refuses(verifications, guard)


@pytest.mark.parametrize(("sequence", "passes"), [(3, True), (2, True), (4, False), (9, False)])
def test_trap_11_a_later_batch_does_not_come_before_the_lowest(sequence: int, passes: bool) -> None:
    """The first batch was refused for now, and will be sent again."""
    verifications = Verifications()
    _begin(verifications, 5)
    _begin(verifications, 3)
    _begin(verifications, 8)
    if passes:
        verifications.check_sequence(_header(sequence))
        return
    with pytest.raises(ApiError) as refused:
        verifications.check_sequence(_header(sequence))
    assert refused.value.code is ErrorCode.out_of_order_sequence_number


def test_trap_11_version_2_without_state_demands_sequence_0() -> None:
    verifications = Verifications()
    _begin(verifications, 4, version_2=True)
    with pytest.raises(ApiError) as refused:
        verifications.check_sequence(_header(4))
    assert refused.value.code is ErrorCode.out_of_order_sequence_number


def test_a_new_epoch_begins_the_sequences_again() -> None:
    verifications = Verifications()
    _begin(verifications, 0, epoch=1)
    _begin(verifications, 5, epoch=2)
    verifications.check_sequence(_header(5))
    _begin(verifications, 0, epoch=1)
    verifications.check_sequence(_header(5))


def test_those_without_an_append_expire() -> None:
    verifications = Verifications()
    guard = _begin(verifications)
    verifications.remove_expired(1_999, 1_000)
    assert not _refuses(verifications, guard)
    verifications.remove_expired(2_000, 1_000)
    assert _refuses(verifications, guard)


def test_their_number_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verification, "MAX_VERIFICATIONS", 3)
    verifications = Verifications()
    guards = [verifications.begin(n, 0, 0, version_2=False, now_ms=0) for n in range(4)]
    assert len(verifications.by_producer) == 3
    verifications.check_guard(3, guards[3])
    with pytest.raises(ApiError):
        verifications.check_guard(0, guards[0])
