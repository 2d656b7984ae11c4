"""Which groups have read a message: for certain, within bounds, or not known, and why."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ottla.journey.facts import Position
from ottla.journey.group_reads import Back, Doubt, Gone, GroupRead, group_reads
from ottla.journey.offset_history import When, Written
from ottla.timelines.group_timeline import GroupTimeline
from ottla.timelines.step import Before, By, Kind, Step


def group(since_ms: int, before: int, last: int, by: By = By.MEMBER, **more: Any) -> Step:
    return Step(Kind.GROUP, "g", since_ms, since_ms, before, last, last, by=by, **more)


def first(since_ms: int, last: int, by: By = By.MEMBER) -> Step:
    return group(since_ms, last, last, by, unknown_before=True, is_first=True)


def back(since_ms: int, to: int, last: int) -> Step:
    return Step(Kind.SET_BACK, "g", since_ms, since_ms, to, to, last, by=By.OUTSIDE)


def gone(since_ms: int, last: int) -> Step:
    return Step(Kind.FORGOTTEN, ("g", "DeleteGroups"), since_ms, since_ms, 0, 0, last)


def at(offset: int, committed_ms: int | None = None) -> dict[str, Position]:
    return {"g": Position(offset, "", committed_ms=committed_ms)}


def one(steps: list[Step], offset: int, positions: Any = None, **more: Any) -> GroupRead:
    (read,) = group_reads(steps, offset, at(100) if positions is None else positions, **more)
    return read


def exact(ms: int) -> When:
    return When(ms, ms)


def test_a_member_that_commits_past_it_has_read_it() -> None:
    steps = [first(100, 5), group(200, 5, 20)]
    assert one(steps, 15) == GroupRead("g", exact(200))
    assert group_reads(steps, 25, at(20)) == []


def test_a_first_commit_does_not_say_where_the_group_began() -> None:
    steps = [first(100, 10), group(200, 10, 20)]
    assert one(steps, 5) == GroupRead("g", exact(100), Doubt.FIRST_COMMIT)
    # Recorded by an earlier version.
    assert one([group(100, 10, 10, unknown_before=True)], 5).doubt is Doubt.FIRST_COMMIT
    again = [group(50, 0, 3), group(100, 10, 10, unknown_before=True)]
    assert one(again, 5) == GroupRead("g", When(50, 100), Doubt.NOT_RECORDED)


def test_a_reset_forward_is_not_a_read() -> None:
    assert one([group(100, 0, 20, By.OUTSIDE)], 15) == GroupRead("g", exact(100), Doubt.OUTSIDE)
    assert one([group(100, 0, 20, By.SIMPLE)], 15).doubt is Doubt.NO_MEMBER
    assert one([group(100, 0, 20, By.UNKNOWN)], 15).doubt is Doubt.NOT_RECORDED
    # Set back and read by a member, it is read after all.
    steps = [group(100, 0, 20, By.OUTSIDE), back(200, 0, 20), group(300, 0, 30)]
    assert one(steps, 15) == GroupRead("g", exact(300))


def test_a_group_reads_and_is_set_back_and_reads_again() -> None:
    steps = [group(100, 0, 10), group(200, 10, 20), back(300, 0, 20)]
    assert one(steps, 15, at(0)) == GroupRead("g", exact(200), back=Back(300, 0))
    assert one([*steps, group(400, 0, 30)], 15, at(30)) == GroupRead("g", exact(200))
    # The step of the second reading is lost, but the group is known to stand beyond.
    assert one(steps, 15, at(16)) == GroupRead("g", exact(200))


def test_a_way_back_that_is_lost_is_seen_from_the_position() -> None:
    assert one([group(100, 0, 20)], 15, at(3)).back == Back(None, 3)


def test_a_group_that_is_deleted_and_made_again_was_not_set_back() -> None:
    steps = [group(100, 0, 20), gone(300, 20), first(400, 8)]
    assert one(steps, 15, at(8)) == GroupRead("g", exact(100), gone=Gone(300, "DeleteGroups"))
    assert one(steps[:2], 15, {}).gone == Gone(300, "DeleteGroups")
    assert one(steps[:1], 15, {}).gone == Gone(None, None)
    assert one(steps[:1], 15, {}, all_known=False).gone is None
    # Its new life begins past the message: that is no second reading.
    late = [*steps[:2], first(400, 30), group(500, 30, 40)]
    assert one(late, 15, at(40)) == GroupRead("g", exact(100), gone=Gone(300, "DeleteGroups"))
    # It had not come so far before.
    later = [group(100, 0, 10), gone(300, 10), first(400, 30)]
    assert one(later, 15, at(30)) == GroupRead("g", exact(400), Doubt.FIRST_COMMIT)
    # And it has read it once more.
    again = [*steps, group(500, 8, 30)]
    assert one(again, 15, at(30)) == GroupRead("g", exact(100))


def test_without_steps_the_last_commit_is_a_bound() -> None:
    assert one([], 15, at(30, 900)) == GroupRead("g", When(None, 900), Doubt.NOT_RECORDED)
    assert one([group(100, 0, 10)], 15, at(30, 900)).when == When(100, 900)
    assert one([], 15, at(30)).when == When(None, None)


def test_steps_that_are_lost_make_it_a_bound() -> None:
    steps = [group(100, 0, 10), group(300, 20, 30)]
    assert one(steps, 15) == GroupRead("g", When(100, 300), Doubt.NOT_RECORDED)
    # Before the message was passed for certain, it may have been passed, too.
    assert one(steps, 25) == GroupRead("g", When(100, 300))


def test_a_commit_beyond_the_end_is_not_a_read() -> None:
    own = Written(When(5000, 5000), is_own=True)
    assert one([], 15, at(10**6, 500), written=own).doubt is Doubt.AHEAD
    far = [group(500, 10**6, 10**6, unknown_before=True, broker=3)]
    assert one(far, 15, at(10**6, 500), written=own) == GroupRead(
        "g", When(None, 500), Doubt.AHEAD, recorded_by=3
    )
    # Clocks of two brokers differ by more than that.
    near = [group(4900, 0, 10**6, broker=3)]
    assert one(near, 15, at(10**6, 4900), written=own).doubt is None


def test_where_a_clock_was_set_back_a_commit_may_have_come_before_the_record() -> None:
    own = Written(When(None, None), is_own=True, twice=(100, 5000))
    assert one([group(500, 0, 20)], 15, written=own).doubt is Doubt.UNORDERED
    assert one([], 15, at(20, 500), written=own).doubt is Doubt.UNORDERED
    # Who has always led lets nobody pass what is not written.
    leads = own._replace(always_led=True)
    assert one([group(500, 0, 20)], 15, written=leads).doubt is None
    assert one([group(500, 0, 20, broker=3)], 15, written=leads).doubt is Doubt.UNORDERED
    # Later than all times that there were twice, also by a clock that differs.
    assert one([group(6001, 0, 20, broker=3)], 15, written=own).doubt is None
    exact = own._replace(when=When(5500, 5500))
    assert one([group(500, 0, 20)], 15, written=exact).doubt is Doubt.AHEAD


def test_a_commit_is_ahead_only_if_the_record_is_known_to_be_later() -> None:
    lost = Written(When(None, 5000), is_own=True)
    assert one([group(500, 0, 20)], 15, written=lost).doubt is Doubt.UNORDERED
    assert one([group(500, 0, 20)], 15, written=lost._replace(always_led=True)).doubt is None
    assert one([], 15, at(20, 500), written=lost).doubt is Doubt.UNORDERED
    assert one([group(5000, 0, 20)], 15, written=lost).doubt is None
    # Its leader may have had it before this broker copied it.
    copied = Written(When(5000, 5000), is_own=False)
    assert one([group(500, 0, 20)], 15, written=copied).doubt is Doubt.UNORDERED


def test_who_passed_by_a_lost_step_may_have_passed_before_the_record() -> None:
    own = Written(When(1000, 1000), is_own=True, always_led=True)
    gone = Step(Kind.FORGOTTEN, ("g", "OffsetDelete"), 2000, 2000, 0, 0, 20)
    read = one([gone], 15, None, written=own)
    assert (read.when, read.doubt) == (When(None, 2000), Doubt.UNORDERED)
    read = one([group(500, 0, 10), back(2000, 5, 20)], 15, at(5), written=own)
    assert (read.when, read.doubt) == (When(500, 2000), Doubt.UNORDERED)
    read = one([group(500, 0, 10), group(2000, 18, 20)], 15, written=own)
    assert (read.when, read.doubt) == (When(500, 2000), Doubt.UNORDERED)
    # It was not past the offset yet when the record was there.
    read = one([group(1200, 0, 10), back(2000, 5, 20)], 15, at(5), written=own)
    assert (read.when, read.doubt) == (When(1200, 2000), Doubt.NOT_RECORDED)


def test_another_record_may_have_been_read() -> None:
    own = Written(When(1000, 1000), is_own=True, rewritten_ms=700)
    cut = Step(Kind.CUT, (2, 1, (1, 2), 0), 700, 700, 10, 10, 20)
    read = one([group(500, 0, 20), cut], 15, at(20, 500), written=own)
    assert read == GroupRead("g", When(None, 500), Doubt.REWRITTEN)
    assert one([group(500, 0, 20), cut, group(1200, 10, 30)], 15, written=own).doubt is None
    back_again = [group(500, 0, 20), cut, back(1100, 5, 20)]
    assert group_reads(back_again, 15, at(5), written=own) == []


def test_who_recorded_it_is_told() -> None:
    assert one([group(100, 0, 20, broker=3)], 15).recorded_by == 3


EVENTS = st.lists(
    st.tuples(
        st.sampled_from(["read", "read", "skip", "back", "delete", "move"]),
        st.integers(0, 12),
        st.integers(1, 300),
    ),
    max_size=30,
)


class Life:
    """A group of which everything is known, and what its coordinators record."""

    def __init__(self, offset: int) -> None:
        self.offset = offset
        self.timeline = GroupTimeline({})
        self.now_ms = 0
        self.position = -1
        self.is_recorded = True
        self.read_ms: list[int] = []
        self.passed_ms: list[int] = []

    def read(self, count: int) -> None:
        start = self.position if self.position >= 0 else count
        to = min(start + count, 20)
        if start <= self.offset < to:
            self.read_ms.append(self.now_ms)
        self._commit(to, By.MEMBER)

    def skip(self, count: int) -> None:
        if self.position >= 0:
            self._commit(min(self.position + count, 20), By.OUTSIDE)

    def back(self, count: int) -> None:
        if self.position >= 0:
            self._commit(max(self.position - count, 0), By.OUTSIDE)

    def _commit(self, to: int, by: By) -> None:
        before, self.position = self.position, to
        if before <= self.offset < to:
            self.passed_ms.append(self.now_ms)
        if self.is_recorded:
            self.timeline.committed("g", to, None, self.now_ms, Before(before, ""), by)

    def delete(self, _: int) -> None:
        before, self.position = self.position, -1
        if before >= 0 and self.is_recorded:
            self.timeline.forgotten("g", self.now_ms, "DeleteGroups", Before(before, ""))

    def move(self, _: int) -> None:
        """Another broker coordinates the group, whose disk is lost later."""
        self.is_recorded = not self.is_recorded


@given(EVENTS, st.integers(0, 19))
def test_a_group_is_never_said_to_have_read_what_it_has_not(
    events: list[tuple[str, int, int]], offset: int
) -> None:
    life = Life(offset)
    for name, number, pause_ms in events:
        life.now_ms += pause_ms
        getattr(life, name)(number)
    steps = life.timeline.take(life.now_ms, all_of_them=True)
    positions = {} if life.position < 0 else at(life.position, life.now_ms)
    found = group_reads(steps, offset, positions)
    assert len(found) <= 1
    assert found or life.position <= offset
    for read in found:
        truth = life.read_ms if read.doubt is None else life.passed_ms
        assert any(holds(read.when, ms) for ms in truth)
        if read.back is not None:
            assert 0 <= life.position <= offset
        if read.gone is not None and read.gone.at_ms is None:
            assert life.position < 0


def holds(when: When, ms: int) -> bool:
    since_ms, until_ms = when
    return (since_ms is None or since_ms <= ms) and (until_ms is None or ms <= until_ms)
