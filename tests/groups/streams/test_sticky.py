"""The sticky assignor: who gets which task. Kafka's StickyTaskAssignorTest has more of the kind."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ottla.groups.streams.configured import ConfiguredSubtopology
from ottla.groups.streams.sticky import MemberSpec, assign
from ottla.groups.streams.tasks import Tasks, each
from ottla.groups.streams.topology import TopicInfo

CHANGELOG = (TopicInfo("c", 1, 0, ()),)


def configured(count: int, *, stateful: bool = False) -> ConfiguredSubtopology:
    return ConfiguredSubtopology(
        count, frozenset("t"), frozenset(), (), CHANGELOG if stateful else ()
    )


def numbers(tasks: Tasks) -> tuple[list[int], list[int]]:
    """Active and standby, of subtopology 0."""
    return sorted(tasks.active.get("0", ())), sorted(tasks.standby.get("0", ()))


def test_ranges_first() -> None:
    """Where two processes are equally loaded, the one that Java's hash table has first is served,
    which is the second of these.
    """
    members = {name: MemberSpec(name, Tasks()) for name in "ab"}
    found = assign(members, {"0": configured(3), "1": configured(3)}, 0)
    assert {name: dict(tasks.active) for name, tasks in found.items()} == {
        "a": {"0": {1}, "1": {0, 2}},
        "b": {"0": {0, 2}, "1": {1}},
    }


def test_tasks_stay_within_the_share() -> None:
    had = Tasks({"0": frozenset(range(4))})
    found = assign(
        {"a": MemberSpec("p", had), "b": MemberSpec("q", Tasks())}, {"0": configured(4)}, 0
    )
    assert (numbers(found["a"]), numbers(found["b"])) == (([0, 1], []), ([2, 3], []))


def test_an_active_task_goes_where_its_copy_was() -> None:
    gone = {
        "b": MemberSpec("q", Tasks({"0": frozenset((1,))}, {"0": frozenset((0,))})),
        "c": MemberSpec("r", Tasks({"0": frozenset((2,))})),
    }
    found = assign(gone, {"0": configured(3, stateful=True)}, 1)
    assert 0 in found["b"].active["0"]
    assert 0 not in found["b"].standby.get("0", ())


def test_copies_are_on_other_processes() -> None:
    members = {
        name: MemberSpec(process, Tasks()) for name, process in zip("abc", "ppq", strict=True)
    }
    found = assign(members, {"0": configured(2, stateful=True), "1": configured(5)}, 2)
    for process in "pq":
        held = [
            t
            for name in found
            if members[name].process_id == process
            for kind in found[name]
            for t in each(kind)
        ]
        assert len(held) == len(set(held))
    copies = [t for tasks in found.values() for t in each(tasks.standby)]
    assert sorted(copies) == [("0", 0), ("0", 1)], "one process is left for a copy of each"


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 7)), min_size=1, max_size=8),
    st.lists(st.tuples(st.integers(1, 6), st.booleans()), min_size=1, max_size=3),
    st.integers(0, 2),
)
def test_all_tasks_are_assigned_once_and_stay(
    places: list[tuple[int, int]], sizes: list[tuple[int, bool]], standbys: int
) -> None:
    members = {f"m{n}": MemberSpec(f"p{place}", Tasks()) for n, (place, _) in enumerate(places)}
    subtopologies = {
        str(n): configured(count, stateful=stateful) for n, (count, stateful) in enumerate(sizes)
    }
    first = assign(members, subtopologies, standbys)
    active = [t for tasks in first.values() for t in each(tasks.active)]
    wanted = [(name, n) for name, its in subtopologies.items() for n in range(its.task_count)]
    assert sorted(active) == sorted(wanted)
    again = {name: MemberSpec(members[name].process_id, first[name]) for name in members}
    second = assign(again, subtopologies, standbys)
    for name in members:
        # With copies the share counts them, too, so an active task may move to where a copy is.
        if not standbys:
            assert second[name] == first[name]
    gone = {name: spec for name, spec in again.items() if name != "m0"}
    if gone and not standbys:
        third = assign(gone, subtopologies, standbys)
        for name in gone:
            assert all(
                numbers <= third[name].active.get(sub, frozenset())
                for sub, numbers in first[name].active.items()
            )
