"""What is noted of a replay that has begun."""

from ottla.pipelines.replay.note import NOTE, Begun


def test_a_note_is_read_as_it_was_written() -> None:
    begun = Begun("id", 3, 40, 41, 1_700)
    assert NOTE.value(NOTE.text(begun), "") == begun
