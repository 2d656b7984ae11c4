"""Timeline files beside the segments: which steps go where, what bounds them, and when they go."""

from itertools import pairwise
from pathlib import Path

import pytest

from ottla.journey.group_reads import group_reads
from ottla.journey.offset_history import appended
from ottla.timelines.file_format import HEAD, STEP_BYTES, decode, sound_bytes
from ottla.timelines.folder import REMOVED_CAP_BYTES, TimelineFolder
from ottla.timelines.step import Kind, Step, Versions


@pytest.fixture
def folder(tmp_path: Path) -> TimelineFolder:
    return TimelineFolder(tmp_path)


def end(before: int, last: int, at_ms: int = 1000) -> Step:
    return Step(Kind.END, ((-1, "a"),), at_ms, at_ms, before, last, last)


def group(before: int, last: int, at_ms: int = 1000) -> Step:
    return Step(Kind.GROUP, "g", at_ms, at_ms, before, last, last)


def files(folder: TimelineFolder) -> dict[int, list[Step]]:
    """The steps by base offset; -1 for removed offsets."""
    return {
        -1 if file.stem == "removed" else int(file.stem): decode(file.read_bytes())
        for file in folder.path.glob("*.timeline")
    }


def test_without_steps_nothing_is_written(folder: TimelineFolder) -> None:
    folder.write([], [0])
    assert list(folder.path.iterdir()) == []


def test_a_step_is_stored_with_its_last_offset(folder: TimelineFolder) -> None:
    steps = [end(0, 90), end(90, 110), group(0, 100), group(100, 101)]
    folder.write(steps, [0, 100])
    assert files(folder) == {0: [steps[0], steps[2]], 100: [steps[1], steps[3]]}
    assert folder.path.joinpath("00000000000000000100.timeline").is_file()
    assert folder.read(95) == [steps[0], steps[2], steps[1], steps[3]]


def test_later_steps_are_appended(folder: TimelineFolder) -> None:
    folder.write([end(0, 5)], [0])
    folder.write([end(5, 9)], [0])
    assert folder.read(0) == [end(0, 5), end(5, 9)]
    assert folder.size_bytes() == 8 + 2 * (8 + 19 + 12 + STEP_BYTES)


def test_a_commit_that_comes_after_the_removal_explains_removed_offsets(
    folder: TimelineFolder,
) -> None:
    copied = Step(Kind.REPLICA, "2", 5, 5, 0, 50, 50)
    folder.write([group(0, 50), copied, end(90, 110)], [100])
    assert files(folder) == {-1: [group(0, 50)], 100: [end(90, 110)]}
    assert folder.read(20) == [group(0, 50), end(90, 110)]
    assert folder.read(105) == [end(90, 110)]


def test_a_removed_segments_steps_move_and_the_log_starts_steps_are_carried_on(
    folder: TimelineFolder,
) -> None:
    started = Step(Kind.START, "DeleteRecords", 5, 5, 0, 10, 10)
    folder.write([end(0, 90), started, group(0, 80), end(90, 120)], [0, 100])
    assert files(folder)[0] == [end(0, 90), started, group(0, 80)]
    removal = Step(Kind.START, "retention.ms", 9, 9, 10, 100, 100)
    folder.write([removal], [100])
    kept = [end(0, 90), group(0, 80)]
    assert files(folder) == {-1: kept, 100: [end(90, 120), started, removal]}
    assert folder.read(7) == [*kept, end(90, 120), started, removal]


def test_removed_offsets_cost_bounded_space_and_recent_ones_stay_exact(
    folder: TimelineFolder,
) -> None:
    segments, steps = 40, 200
    for number in range(segments):
        base, at_ms = number * steps, number * 1000 * steps
        some = [end(base + at, base + at + 1, at_ms + at * 1000) for at in range(steps)]
        folder.write(some, [base])
    folder.write([end(segments * steps, segments * steps + 1, 10**9)], [segments * steps])
    removed = folder.path / "removed.timeline"
    assert removed.stat().st_size <= REMOVED_CAP_BYTES
    assert folder.size_bytes() < REMOVED_CAP_BYTES + 200
    kept = files(folder)[-1]
    assert (kept[0].before, kept[-1].last) == (0, segments * steps)
    assert all(one.last == other.before for one, other in pairwise(kept))
    assert kept[-1].is_exact
    assert not kept[0].is_exact


def test_a_crash_while_a_segments_steps_move_changes_no_answer(folder: TimelineFolder) -> None:
    folder.write([end(0, 90), group(0, 80)], [0])
    file = folder.path / "00000000000000000000.timeline"
    before = file.read_bytes()
    folder.write([end(90, 120)], [100])
    file.write_bytes(before)  # it had not been deleted yet
    after_crash = TimelineFolder(folder.path)
    after_crash.write([end(120, 130)], [100])
    steps = after_crash.read(50)
    assert appended(steps, 50, None).when == (1000, 1000)
    (read,) = group_reads(steps, 50, {})
    assert (read.group, read.when) == ("g", (1000, 1000))


def test_a_compacted_away_segments_file_joins_the_one_before(folder: TimelineFolder) -> None:
    folder.write([end(0, 90), end(100, 120), end(200, 220)], [0, 100, 200])
    folder.write([group(0, 220)], [0, 200])
    assert files(folder) == {0: [end(0, 90), end(100, 120)], 200: [end(200, 220), group(0, 220)]}


def test_a_torn_end_is_truncated_before_the_next_write(folder: TimelineFolder) -> None:
    folder.write([end(0, 5)], [0])
    folder.write([end(5, 9)], [0])
    file = folder.path / "00000000000000000000.timeline"
    file.write_bytes(file.read_bytes()[:-3])
    after_crash = TimelineFolder(folder.path)
    assert after_crash.read(0) == [end(0, 5)]
    after_crash.write([end(9, 12)], [0])
    assert after_crash.read(0) == [end(0, 5), end(9, 12)]
    data = file.read_bytes()
    assert sound_bytes(data) == len(data)


@pytest.mark.parametrize("data", [b"", HEAD[:3], b"\0" * 50])
def test_a_file_with_a_damaged_head_is_rewritten(folder: TimelineFolder, data: bytes) -> None:
    (folder.path / "00000000000000000000.timeline").write_bytes(data)
    folder.write([end(0, 5)], [0])
    assert folder.read(0) == [end(0, 5)]


def test_a_file_stays_within_its_cap_and_keeps_recent_steps(tmp_path: Path) -> None:
    folder = TimelineFolder(tmp_path, cap_bytes=4000)
    for at in range(1000):
        folder.write([end(at, at + 1, at * 100)], [0])
        assert folder.size_bytes() <= 4000
    assert folder.read(0)[-1] == end(999, 1000, 99_900)
    assert folder.read(0)[0].before == 0
    assert not list(tmp_path.glob("*.new"))


def test_leftovers_of_a_rewrite_are_removed(folder: TimelineFolder) -> None:
    left = folder.path / "00000000000000000000.timeline.new"
    left.write_bytes(b"half")
    folder.write([end(0, 5)], [0])
    assert not left.exists()


def test_a_crash_that_truncated_the_log_is_recorded_first(folder: TimelineFolder) -> None:
    folder.write([end(0, 50)], [0])
    folder.record_truncation(2000, 50, [0])
    assert folder.read(0) == [end(0, 50)]
    folder.record_truncation(2000, 30, [0])
    assert folder.read(0) == [end(0, 50), Step(Kind.OPENED, None, 2000, 2000, 30, 30, 30)]


@pytest.mark.parametrize(
    ("kind", "name"), [(Kind.GROUP, "g"), (Kind.DELIVERED, ("g", "q", "/t")), (Kind.HIGH, None)]
)
def test_a_truncated_log_is_recorded_if_only_something_else_passed_its_end(
    folder: TimelineFolder, kind: Kind, name: str | tuple[str, str, str] | None
) -> None:
    folder.write([Step(kind, name, 1000, 1000, 0, 50, 50, versions=Versions(0, 0, 1, 1))], [0])
    folder.record_truncation(2000, 30, [0])
    assert folder.read(0)[1:] == [Step(Kind.OPENED, None, 2000, 2000, 30, 30, 30)]


def test_a_deleted_topics_folder_is_not_an_error(tmp_path: Path) -> None:
    folder = TimelineFolder(tmp_path / "gone")
    folder.write([end(0, 5)], [0])
    assert folder.read(0) == []
    assert not folder.path.exists()


def test_a_failed_write_is_reported(folder: TimelineFolder) -> None:
    (folder.path / "00000000000000000000.timeline").mkdir()
    with pytest.raises(OSError, match="timeline"):
        folder.write([end(0, 5)], [0])


def test_a_file_that_was_deleted_meanwhile_is_begun_again(folder: TimelineFolder) -> None:
    folder.write([end(0, 5)], [0])
    next(folder.path.glob("*.timeline")).unlink()
    folder.write([end(5, 9)], [0])
    folder.write([end(9, 12)], [0])
    assert folder.read(0) == [end(5, 9), end(9, 12)]


def test_a_clock_that_was_set_back_is_noted_also_if_the_active_segment_is_new(
    folder: TimelineFolder,
) -> None:
    folder.write([end(0, 5)], [0])
    again = TimelineFolder(folder.path)
    latest_ms = folder.read(0)[-1].until_ms
    again.write([], [0, 5])
    again.write([end(5, 6)._replace(since_ms=latest_ms - 10, until_ms=latest_ms - 10)], [0, 5])
    assert Step(Kind.CLOCK, None, latest_ms - 10, latest_ms, 0, 0, 0) in again.read(5)
