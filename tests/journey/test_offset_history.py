"""What steps tell: a model that knows the truth never hears anything else from the files."""

import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ottla.journey.facts import Position
from ottla.journey.group_reads import group_reads
from ottla.journey.offset_history import (
    When,
    appended,
    client_of,
    deliveries,
    high_watermark_passed,
    removed,
)
from ottla.timelines.folder import TimelineFolder
from ottla.timelines.partition_timeline import PartitionTimeline
from ottla.timelines.pending_steps import WINDOW_MS
from ottla.timelines.step import OTHERS, Before, Kind, Opening, Step, Versions

GROUPS = ("g", "h")
PIPELINE = ("pipes", "flights", "/t")


@dataclass
class Partition:
    """A log that remembers everything, beside timelines that go through files, crashes and caps."""

    folder: Path
    cap_bytes: int = 2000
    now_ms: int = 1_000_000
    bases: list[int] = field(default_factory=lambda: [0])
    end: int = 0
    high: int = 0
    batch: int = 0
    committed: dict[str, int] = field(default_factory=dict)
    delivered: int = 0
    appended_ms: dict[int, int] = field(default_factory=dict)
    clients: dict[int, tuple[int, str]] = field(default_factory=dict)
    high_ms: dict[int, int] = field(default_factory=dict)
    read_ms: dict[tuple[str, int], int] = field(default_factory=dict)
    version: dict[int, tuple[int, int]] = field(default_factory=dict)
    removed_ms: dict[int, int] = field(default_factory=dict)
    kept_bytes: dict[Path, int] = field(default_factory=dict)

    def open(self) -> None:
        self.files = TimelineFolder(self.folder, cap_bytes=self.cap_bytes)
        self.opening = Opening(self.now_ms, self.end, self.high)
        self.timeline = PartitionTimeline(
            start_offset=self.bases[0],
            end_offset=self.end,
            high_watermark=self.high,
            now_ms=self.now_ms,
            dirty={},
        )

    def append(self, count: int, client: str, producer_id: int) -> None:
        for offset in range(self.end, self.end + count):
            self.appended_ms[offset] = self.now_ms
            self.clients[offset] = (producer_id, client)
        self.timeline.appended(self.end, self.end + count - 1, self.now_ms, client, producer_id)
        self.end += count

    def raise_high(self, lag: int) -> None:
        for offset in range(self.high, self.end - lag):
            self.high_ms[offset] = self.now_ms
            self.high = offset + 1
        self.timeline.high_watermark(self.high, self.now_ms)

    def commit(self, group: str, count: int) -> None:
        offset = min(self.committed.get(group, self.bases[0]) + count, self.high)
        for passed in range(offset):
            self.read_ms.setdefault((group, passed), self.now_ms)
        before = Before(self.committed.get(group, -1), "")
        self.committed[group] = offset
        self.timeline.committed(group, offset, None, self.now_ms, before)

    def set_back(self, group: str) -> None:
        if group in self.committed:
            before = Before(self.committed[group], "")
            self.committed[group] = self.bases[0]
            self.timeline.committed(group, self.bases[0], None, self.now_ms, before)
            self.flush(True)
            # Where a way back is lost with what led to it, the second reading looks like the
            # first; so here it reached the disk.
            self.sync()

    def deliver(self, with_begin: bool) -> None:
        begin = f'"from":{self.delivered},' if with_begin else ""
        if self.delivered < self.high:
            self.batch += 1
            for offset in range(self.delivered, self.high):
                self.version[offset] = (self.batch, self.now_ms)
            self.delivered = self.high
            delta = f'"delta":{{"table":"/t","version":{self.batch}}}'
            told = f'{{"ottla.pipeline":1,"query":"flights",{begin}"batch":{self.batch},{delta}}}'
            self.timeline.committed("pipes", self.high, told, self.now_ms)

    def flush(self, all_of_them: bool) -> None:
        self.files.write(self.timeline.take(self.now_ms, all_of_them=all_of_them), self.bases)

    def roll(self) -> None:
        if self.end > self.bases[-1]:
            self.bases.append(self.end)

    def remove(self) -> None:
        if len(self.bases) > 1 and self.bases[1] <= self.high:
            for offset in range(self.bases[0], self.bases[1]):
                self.removed_ms[offset] = self.now_ms
            del self.bases[0]
            self.timeline.started_at(self.bases[0], self.now_ms, "retention.ms")
            self.flush(True)

    def crash(self, torn_bytes: int, lost_records: int) -> None:
        files = sorted(self.folder.glob("*.timeline"))
        if files:
            data = files[-1].read_bytes()
            cut = max(len(data) - torn_bytes, self.kept_bytes.get(files[-1], 0))
            files[-1].write_bytes(data[:cut])
        keep = max(self.high, self.bases[-1], *self.committed.values(), self.delivered, 0)
        cut = self.end > max(self.end - lost_records, keep)
        self.end = max(self.end - lost_records, keep)
        for offset in [offset for offset in self.appended_ms if offset >= self.end]:
            del self.appended_ms[offset], self.clients[offset]
        self.now_ms += 50
        self.open()
        if cut:
            self.files.record_truncation(self.now_ms, self.end, self.bases)
            self.sync()

    def sync(self) -> None:
        """What the files hold now, no crash takes."""
        self.kept_bytes = {file: file.stat().st_size for file in self.folder.glob("*.timeline")}

    def check(self) -> None:
        self.flush(True)
        for offset in range(self.end):
            steps = self.files.read(offset)
            if offset < self.bases[0]:
                when, reason = removed(steps, offset)
                assert_holds(when, self.removed_ms[offset])
                assert reason in ("", "retention.ms")
            else:
                self.check_present(steps, offset)

    def positions(self) -> dict[str, Position]:
        return {group: Position(offset, "") for group, offset in self.committed.items()}

    def check_present(self, steps: list[Step], offset: int) -> None:
        was = appended(steps, offset, self.opening)
        assert_holds(was.when, self.appended_ms[offset])
        producer_id, client = self.clients[offset]
        possible = client_of(was.clients, producer_id)
        assert not possible or client in possible
        if offset in self.high_ms:
            passed = high_watermark_passed(steps, offset, self.opening, was.when)
            assert_holds(passed, self.high_ms[offset])
        for read in group_reads(steps, offset, self.positions()):
            if read.group in GROUPS:
                assert_holds(read.when, self.read_ms[read.group, offset])
                back = self.committed[read.group] <= offset
                assert back == (read.back is not None)
        for one in deliveries(steps, offset):
            version, at_ms = self.version[offset]
            assert one.pipeline == PIPELINE
            assert one.first_version <= version <= one.last_version
            assert one.first_batch <= version <= one.last_batch
            assert_holds(one.when, at_ms)


def assert_holds(when: When, truth_ms: int) -> None:
    assert when.since_ms is None or when.since_ms <= truth_ms
    assert when.until_ms is None or truth_ms <= when.until_ms


Event = tuple[Any, ...]
EVENTS: st.SearchStrategy[Event] = st.one_of(
    st.tuples(st.just("tick"), st.integers(0, 250)),
    st.tuples(
        st.just("append"), st.integers(1, 9), st.sampled_from("abc"), st.sampled_from([-1, 7, 8])
    ),
    st.tuples(st.just("raise_high"), st.integers(0, 5)),
    st.tuples(st.just("commit"), st.sampled_from(GROUPS), st.integers(0, 20)),
    st.tuples(st.just("set_back"), st.sampled_from(GROUPS)),
    st.tuples(st.just("deliver"), st.booleans()),
    st.tuples(st.just("flush"), st.booleans()),
    st.tuples(st.just("roll")),
    st.tuples(st.just("remove")),
    st.tuples(st.just("crash"), st.integers(0, 200), st.integers(0, 9)),
)


def run(partition: Partition, events: list[Event]) -> None:
    partition.open()
    for name, *arguments in events:
        if name == "tick":
            partition.now_ms += arguments[0]
        else:
            getattr(partition, name)(*arguments)
    partition.check()


# A crash takes the step of the first delivery; the second one does not say where it began.
FIRST_DELIVERY_LOST: list[Event] = [
    ("append", 1, "a", -1),
    ("raise_high", 0),
    ("append", 1, "a", -1),
    ("deliver", False),
    ("raise_high", 0),
    ("crash", 0, 0),
    ("deliver", False),
]


@given(st.lists(EVENTS, max_size=80))
@example(FIRST_DELIVERY_LOST)
def test_answers_are_right_or_bounded_never_wrong(events: list[Event]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        run(Partition(Path(folder)), events)


@given(st.lists(EVENTS.filter(lambda event: event[0] != "crash"), max_size=40))
def test_without_a_crash_all_is_known_to_a_tenth_of_a_second(events: list[Event]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        partition = Partition(Path(folder), cap_bytes=1_000_000)
        run(partition, events)
        for offset in range(partition.bases[0], partition.high):
            steps = partition.files.read(offset)
            was = appended(steps, offset, partition.opening)
            read = group_reads(steps, offset, partition.positions())
            moments = [was.when, *(one.when for one in read)]
            moments.append(high_watermark_passed(steps, offset, partition.opening, was.when))
            for since_ms, until_ms in moments:
                assert since_ms is not None
                assert until_ms is not None
                assert until_ms - since_ms < WINDOW_MS
            assert len(deliveries(steps, offset)) == (offset in partition.version)


def end(
    since_ms: int, until_ms: int, before: int, first: int, last: int, client: str = "a"
) -> Step:
    return Step(Kind.END, ((-1, client),), since_ms, until_ms, before, first, last)


def opened(at_ms: int, offset: int) -> Step:
    return Step(Kind.OPENED, None, at_ms, at_ms, offset, offset, offset)


def test_within_a_step_the_first_are_exact_and_the_others_bounded() -> None:
    steps = [end(100, 180, 0, 10, 50)]
    assert appended(steps, 9, None)[:2] == ((100, 100), ((-1, "a"),))
    assert appended(steps, 10, None)[:2] == ((100, 180), ((-1, "a"),))


def test_steps_lost_in_a_crash_are_bounded_by_the_next_start() -> None:
    steps = [end(100, 100, 0, 10, 10), opened(900, 30), end(2000, 2000, 30, 31, 31)]
    assert appended(steps, 20, None)[:2] == ((100, 900), ())
    assert appended(steps[:1], 20, Opening(900, 30, 30))[:2] == ((100, 900), ())
    assert appended([], 20, Opening(900, 30, 30))[:2] == ((None, 900), ())


def test_a_rewritten_record_has_its_second_time() -> None:
    steps = [end(100, 100, 0, 50, 50), opened(900, 30), end(2000, 2000, 30, 60, 60, "b")]
    assert appended(steps, 40, None)[:2] == ((2000, 2000), ((-1, "b"),))
    assert appended(steps, 20, None)[:2] == ((100, 100), ((-1, "a"),))


def delivery(since_ms: int, before: int, last: int, version: int, *, unknown: bool = False) -> Step:
    versions = Versions(version, version, version, version)
    return Step(Kind.DELIVERED, PIPELINE, since_ms, since_ms, before, last, last, unknown, versions)


def test_a_delivery_names_its_version_or_bounds_it() -> None:
    steps = [delivery(100, 0, 10, 1), delivery(200, 10, 20, 2), delivery(900, 40, 50, 5)]
    assert [one[2:4] for one in deliveries(steps, 15)] == [(2, 2)]
    # Versions 3 and 4 are lost, and one of them, or 5, holds it.
    assert [one[1:4] for one in deliveries(steps, 25)] == [((200, 900), 3, 5)]


def test_a_delivery_without_its_begin_may_not_be_the_first() -> None:
    (one,) = deliveries([delivery(900, 50, 50, 5, unknown=True)], 25)
    assert one[1:7] == ((None, 900), 0, 5, 0, 5, True)


def test_the_first_batch_is_surely_the_first_although_its_begin_is_not_known() -> None:
    versions = Versions(0, 0, 1, 1)  # version 0 of the table is its creation
    step = Step(Kind.DELIVERED, PIPELINE, 900, 900, 3, 3, 3, True, versions)
    (one,) = deliveries([step], 0)
    assert one[1:7] == ((None, 900), 1, 1, 0, 0, True)


def test_records_that_a_pipeline_skipped_are_not_delivered() -> None:
    steps = [delivery(100, 0, 10, 1), delivery(200, 30, 40, 2)]
    assert deliveries(steps, 20) == []
    assert deliveries([delivery(200, 30, 40, 2)], 20) == []


def test_a_removal_names_its_time_and_reason() -> None:
    steps = [Step(Kind.START, "DeleteRecords", 500, 500, 10, 20, 20)]
    assert removed(steps, 15) == ((500, 500), "DeleteRecords")
    assert removed(steps, 5) == ((None, 500), "")
    assert removed([], 5) == ((None, None), "")


def test_a_client_is_identified_by_its_producer_id() -> None:
    clients = ((-1, "a"), (7, "b"), (8, "c"))
    assert client_of(clients, 7) == ("b",)
    assert client_of(clients, -1) == ("a",)
    assert client_of(((-1, "a"), (-1, "b")), -1) == ("a", "b")
    assert client_of((*clients, OTHERS), -1) == ()
    assert client_of((*clients, OTHERS), 8) == ("c",)
    assert client_of((), 8) == ()


def test_what_was_removed_before_a_truncation_was_another_record() -> None:
    steps = [
        Step(Kind.START, "DeleteRecords", 500, 500, 0, 20, 20),
        Step(Kind.CUT, (2, 1, (2,), 1), 600, 600, 5, 20, 30),
        Step(Kind.OPENED, None, 600, 600, 5, 5, 5),
    ]
    assert removed(steps, 15) == ((None, None), "")
    assert removed(steps, 3) == ((500, 500), "DeleteRecords")


def test_a_gap_between_deliveries_has_nothing_of_before_the_first_one() -> None:
    steps = [delivery(100, 10, 20, 1), delivery(900, 30, 40, 5)]
    assert [one[2:4] for one in deliveries(steps, 25)] == [(2, 5)]
    assert deliveries(steps, 5) == []


def test_a_pipeline_whose_group_was_deleted_begins_again() -> None:
    gone = Step(Kind.FORGOTTEN, ("pipes", "DeleteGroups"), 500, 500, 0, 0, 20)
    again = delivery(900, 5, 40, 90)
    steps = [delivery(100, 0, 20, 1), gone, again]
    assert [one[2:4] for one in deliveries(steps, 10)] == [(1, 1)]
    # Versions 2 to 89 are not those that are lost: the batches began again.
    assert [one[2:4] for one in deliveries(steps, 25)] == [(90, 90)]
    # It had passed the offset, in a version that is lost.
    assert deliveries(steps[1:], 10) == []


@pytest.mark.parametrize(
    ("checkpoints", "batches", "in_doubt"),
    [((1, 1), (5, 9), False), ((1, 2), (5, 9), True), ((0, 0), (5, 3), True)],
)
def test_a_lost_delivery_of_one_of_two_checkpoints_is_bounded_by_nothing(
    checkpoints: tuple[int, int], batches: tuple[int, int], in_doubt: bool
) -> None:
    pipeline = ("g", "q", "/t")
    steps = [
        Step(
            *(Kind.DELIVERED, pipeline, at, at, before, last, last, False),
            Versions(batch, batch, batch, batch),
            checkpoint=checkpoint,
        )
        for at, before, last, batch, checkpoint in (
            (1000, 0, 50, batches[0], checkpoints[0]),
            (2000, 80, 90, batches[1], checkpoints[1]),
        )
    ]
    (found,) = deliveries(steps, 60)
    assert found.is_before is in_doubt
    (known,) = deliveries(steps, 85)
    assert (known.first_batch, known.last_batch, known.is_before) == (batches[1], batches[1], False)
