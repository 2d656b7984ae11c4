"""Target offsets of which only some are reported."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ottla.mirroring.offset_map import Run, runs_of
from ottla.mirroring.written_records import Piece, joined


def piece(sources: list[int], reported: list[int]) -> Piece:
    made = Piece(sources)
    made.reported += reported
    return made


def test_the_first_and_the_last_say_it_if_nothing_is_between() -> None:
    assert piece([5, 6, 9], [20, 22]).runs() == [Run(5, 20, 2), Run(9, 22, 1)]
    assert piece([5], [20]).runs() == [Run(5, 20, 1)]
    assert piece([5, 6], [20, 21]).runs() == [Run(5, 20, 2)]


def test_what_another_program_wrote_between_is_seen() -> None:
    assert piece([5, 6, 7], [20, 23]).runs() is None
    assert piece([5, 6, 7], [20, 22, 23]).runs() == [Run(5, 20, 1), Run(6, 22, 2)]


def test_pieces_that_follow_each_other_are_one_run() -> None:
    assert joined([Run(5, 20, 2), Run(7, 22, 3), Run(10, 26, 1), Run(12, 27, 1)]) == [
        Run(5, 20, 5),
        Run(10, 26, 1),
        Run(12, 27, 1),
    ]
    assert joined([]) == []


@given(
    st.lists(st.tuples(st.integers(1, 3), st.sampled_from([1, 1, 1, 1, 2])), max_size=40),
    st.integers(1, 9),
)
def test_it_is_exact_or_not_known(steps: list[tuple[int, int]], size: int) -> None:
    sources, targets = [], []
    source = target = 0
    for more_source, more_target in steps:
        source, target = source + more_source, target + more_target
        sources.append(source)
        targets.append(target)
    runs: list[Run] = []
    for first in range(0, len(sources), size):
        some, there = sources[first : first + size], targets[first : first + size]
        found = piece(some, [there[0], there[-1]] if len(there) > 1 else there).runs()
        has_gap = there[-1] - there[0] != len(there) - 1
        assert (found is None) == (has_gap and len(there) > 2)
        runs += runs_of(some, there) if found is None else found
    assert joined(runs) == runs_of(sources, targets)
