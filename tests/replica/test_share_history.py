"""What is kept of the records of share groups, within limits."""

from uuid import UUID

from ottla.replica import share_history
from ottla.replica.share_history import Known, ShareHistory, Timed
from ottla.share.note import Note, What
from ottla.share.stored import ShareKey

KEY = ShareKey("g", UUID(int=1), 0)


def note(first: int, last: int) -> Note:
    return Note(What.ACQUIRED, first, last, "m", 1)


def test_the_notes_of_one_record() -> None:
    history = ShareHistory()
    history.add(KEY, [note(0, 4), note(5, 9)], 10)
    history.add(KEY, [note(4, 5)], 20)
    assert history.of(KEY, 4) == Known([Timed(10, note(0, 4)), Timed(20, note(4, 5))], None)
    assert history.of(KEY, 10) == Known([], None)
    assert history.of(KEY._replace(partition=1), 4) == Known([], None)
    history.add(KEY._replace(group_id="h"), [note(0, 0)], 30)
    assert history.groups_of(KEY.topic_id, 0) == ["g", "h"]
    assert history.groups_of(KEY.topic_id, 1) == []


def test_the_oldest_notes_are_forgotten() -> None:
    history = ShareHistory()
    for at_ms in range(share_history.MAX_NOTES + 1):
        history.add(KEY, [note(at_ms, at_ms)], at_ms)
    assert history.of(KEY, 0) == Known([], 1)
    assert history.of(KEY, 1).notes == [Timed(1, note(1, 1))]


def test_the_partition_of_which_nothing_was_noted_longest_is_forgotten() -> None:
    history = ShareHistory()
    keys = [KEY._replace(partition=index) for index in range(share_history.MAX_KEYS + 1)]
    for key in keys[:-1]:
        history.add(key, [note(0, 0)], 1)
    history.add(keys[0], [note(0, 0)], 2)
    history.add(keys[-1], [note(0, 0)], 3)
    assert history.of(keys[1], 0) == Known([], None)
    assert all(history.of(key, 0).notes for key in (keys[0], keys[2], keys[-1]))
