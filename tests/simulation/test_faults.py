"""Faults are drawn from the seed, in order of time."""

from __future__ import annotations

from random import Random

from simulation.faults import FIRST_MS, KINDS, LAST_MS, draw_faults


def test_the_same_seed_draws_the_same_faults_in_order() -> None:
    faults = draw_faults(Random(7), 3)
    assert faults == draw_faults(Random(7), 3)
    assert list(faults) == sorted(faults)
    assert all(FIRST_MS <= each.at_ms < LAST_MS for each in faults)
    assert all(each.one != each.other and each.one in (1, 2, 3) for each in faults)


def test_every_kind_is_drawn_and_has_a_description() -> None:
    drawn = {each.kind: str(each) for seed in range(200) for each in draw_faults(Random(seed), 4)}
    assert drawn.keys() == {kind for kind, _ in KINDS}
    assert all(drawn.values())
    assert {each.kind for each in draw_faults(Random(1), 3, ("crash",))} == {"crash"}
