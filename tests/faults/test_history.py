from pathlib import Path

import pytest
from faults.history import (
    KINDS,
    Fault,
    HistoryError,
    Recorder,
    from_line,
    parts_of,
    read,
    to_line,
    value_of,
)
from hypothesis import given
from hypothesis import strategies as st


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
@given(data=st.data())
def test_every_event_round_trips_through_its_line(kind: type, data: st.DataObject) -> None:
    event = data.draw(st.from_type(kind))
    line = to_line(event)
    assert "\n" not in line
    assert from_line(line) == event


@pytest.mark.parametrize("line", ["", "[]", "{}", '{"event":"Sent"}', '{"event":"Nothing"}', "3"])
def test_the_error_quotes_an_invalid_line(line: str) -> None:
    with pytest.raises(HistoryError, match="no event of a history"):
        from_line(line)


def test_an_incomplete_last_line_is_ignored(tmp_path: Path) -> None:
    path = tmp_path / "history"
    path.write_text(to_line(Fault(1, "kill 0")) + "\n" + to_line(Fault(2, "kill 1"))[:9])
    assert list(read(path)) == [Fault(1, "kill 0")]


def test_recorded_events_are_in_memory_and_on_disk(tmp_path: Path) -> None:
    path = tmp_path / "history"
    recorder = Recorder(path, lambda: 0)
    recorder.record_all([Fault(1, "kill 0"), Fault(2, "start 0")])
    recorder.close()
    assert list(read(path)) == list(recorder.events) == [Fault(1, "kill 0"), Fault(2, "start 0")]


@given(st.integers(0), st.integers(0))
def test_a_value_names_producer_and_sequence(producer: int, sequence: int) -> None:
    assert parts_of(value_of(producer, sequence)) == (producer, sequence)
