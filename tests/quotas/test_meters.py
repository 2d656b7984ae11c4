"""What clients with quotas have used, and how long they wait."""

import pytest

from ottla.quotas.entity import DEFAULT, Entity, Kind
from ottla.quotas.meters import MAX_KEPT_CHARACTERS, MAX_METERS, Meters
from ottla.quotas.rate import Windows

WINDOWS = Windows(11, 1_000)


@pytest.fixture
def meters() -> Meters:
    return Meters(WINDOWS, WINDOWS)


def test_nobody_is_measured_without_quotas(meters: Meters) -> None:
    assert not meters.is_on
    assert meters.use(Kind.PRODUCE, "u", "c", 1e9, 0) == 0
    assert len(meters) == 0


def test_who_is_faster_than_the_quota_waits_until_the_rate_is_right(meters: Meters) -> None:
    meters.set(Entity("u"), {Kind.PRODUCE: 100})
    assert meters.use(Kind.PRODUCE, "u", "a", 1_000, 0) == 0
    # 1,500 bytes in ten seconds are 150 a second: 100 if they were fifteen.
    assert meters.use(Kind.PRODUCE, "u", "b", 500, 0) == 5_000
    assert meters.use(Kind.PRODUCE, "other", "b", 5_000, 0) == 0
    assert len(meters) == 1


def test_a_changed_quota_counts_what_was_used(meters: Meters) -> None:
    meters.set(Entity("u"), {Kind.PRODUCE: 100})
    assert meters.use(Kind.PRODUCE, "u", "", 1_000, 0) == 0
    meters.set(Entity("u"), {Kind.PRODUCE: 50})
    assert meters.use(Kind.PRODUCE, "u", "", 0, 0) == 10_000
    meters.set(Entity("u"), {})
    assert meters.use(Kind.PRODUCE, "u", "", 1_000, 0) == 0
    assert not meters.is_on


def test_for_its_time_a_client_waits_a_window_at_most(meters: Meters) -> None:
    meters.set(Entity(DEFAULT), {Kind.REQUEST: 1})
    assert meters.use(Kind.REQUEST, "u", "", 50, 0) == 1_000


def test_a_consumer_gets_nothing_while_it_waits(meters: Meters) -> None:
    meters.set(Entity("u"), {Kind.FETCH: 100})
    assert meters.most_bytes("u", "") == 1_000
    assert meters.most_bytes("other", "") is None
    assert meters.fetch("u", "", 900, 0) == (0, True)
    assert meters.fetch("u", "", 500, 0) == (4_000, False)
    # What it did not get does not count.
    assert meters.fetch("u", "", 100, 0) == (0, True)


def test_a_batch_beyond_the_quota_is_sent_to_a_consumer_that_has_had_nothing(
    meters: Meters,
) -> None:
    meters.set(Entity("u"), {Kind.FETCH: 1})
    assert meters.fetch("u", "", 200, 0) == (190_000, True)
    assert meters.fetch("u", "", 200, 5_000) == (390_000, False)
    assert meters.fetch("u", "", 200, 11_000) == (190_000, True)


@pytest.mark.parametrize("strict", [True, False])
def test_mutations_are_let_through_until_tokens_are_owed(meters: Meters, strict: bool) -> None:
    meters.set(Entity("u"), {Kind.MUTATION: 2})
    first = meters.mutate("u", "", 32, 0, strict=strict)
    assert first == ((0, True) if strict else (5_000, True))
    second = meters.mutate("u", "", 1, 1_000, strict=strict)
    assert second == ((4_000, False) if strict else (4_500, True))
    later = meters.mutate("u", "", 1, 6_000, strict=strict)
    assert later == (0, True)


def test_the_number_of_clients_kept_is_bounded(meters: Meters) -> None:
    meters.set(Entity(None, DEFAULT), {Kind.PRODUCE: 1})
    for number in range(3 * MAX_METERS):
        meters.use(Kind.PRODUCE, "u", f"c{number}", 1, number)
        assert len(meters) <= MAX_METERS
    # Those that have paused for all windows are forgotten first, and lose nothing.
    meters.use(Kind.PRODUCE, "u", "new", 1, 10**6)
    for number in range(MAX_METERS):
        meters.use(Kind.PRODUCE, "u", f"d{number}", 1, 10**6)
    assert len(meters) <= MAX_METERS


def test_long_client_ids_are_kept_as_hashes(meters: Meters) -> None:
    meters.set(Entity(None, DEFAULT), {Kind.PRODUCE: 100})
    long = "x" * 32_000
    assert meters.use(Kind.PRODUCE, "u", f"{long}a", 1_000, 0) == 0
    assert meters.use(Kind.PRODUCE, "u", f"{long}b", 1_000, 0) == 0
    assert meters.use(Kind.PRODUCE, "u", f"{long}a", 1_000, 0) == 10_000
    exact = "y" * (MAX_KEPT_CHARACTERS + 1)
    meters.set(Entity(None, exact), {Kind.PRODUCE: 1})
    assert meters.use(Kind.PRODUCE, "u", exact, 20, 0) == 10_000
