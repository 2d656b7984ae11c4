"""Joining what several steps have in common."""

from __future__ import annotations

from ottla.timelines.step import (
    MAX_CLIENTS_IN_STEP,
    OTHERS,
    Clients,
    Kind,
    Step,
    Versions,
    joined_clients,
    joined_versions,
)


def clients(*numbers: int) -> Clients:
    return tuple((number, f"c{number}") for number in numbers)


def test_clients_keep_their_order_and_appear_once() -> None:
    assert joined_clients(clients(1, 2), clients(2, 3)) == clients(1, 2, 3)
    assert joined_clients((), clients(1)) == clients(1)


def test_clients_above_the_limit_become_others() -> None:
    most = MAX_CLIENTS_IN_STEP
    assert joined_clients(clients(*range(most)), ()) == clients(*range(most))
    joined = joined_clients(clients(*range(most)), clients(most))
    assert joined == (*clients(*range(most - 1)), OTHERS)
    # Once there are others, there always are.
    again = joined_clients(joined, clients(0))
    assert again == joined
    assert joined_clients(clients(100), joined)[-1] == OTHERS


def test_versions_are_joined_to_the_range_that_covers_both() -> None:
    one, other = Versions(3, 4, 7, 9), Versions(2, 3, 8, 11)
    assert joined_versions(None, one) == one
    assert joined_versions(one, other) == joined_versions(other, one) == Versions(2, 4, 7, 11)


def test_a_step_is_exact_if_it_took_no_time() -> None:
    assert Step(Kind.END, clients(1), 5, 5, 0, 3, 3).is_exact
    assert not Step(Kind.END, clients(1), 5, 6, 0, 3, 9).is_exact
