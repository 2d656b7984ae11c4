"""Where to begin with partitions."""

from __future__ import annotations

from ottla.client.topic_partition import TopicPartition
from ottla.mirroring.beginnings import Beginnings, beginnings
from ottla.mirroring.position import LastRecord, Origin, Position
from ottla.mirroring.topic_plan import SourceTopic

ONE = TopicPartition("t", 0)
MIRRORED = {"t": SourceTopic("t", "id", 1)}
OURS = Position(5, Origin("id", "there", ("cluster",)), LastRecord(4, 1))
LEFT_OUT = OURS._replace(is_left_out=True)


def begun(position: Position | None, *, is_out: bool = False, there: str = "there") -> Beginnings:
    positions = {} if position is None else {ONE: position}
    return beginnings({ONE: there}, positions, MIRRORED, {ONE} if is_out else ())


def test_a_position_is_taken_in_its_topic_only() -> None:
    assert begun(OURS) == Beginnings({ONE: OURS}, {}, [])
    assert begun(OURS, there="new") == Beginnings({}, {}, [ONE])
    assert begun(None) == Beginnings({}, {}, [ONE])
    other = OURS._replace(origin=Origin("before", "there", ("cluster",)))
    assert begun(other) == Beginnings({}, {}, [])


def test_what_is_left_out_is_marked_for_the_other_instances() -> None:
    assert begun(OURS, is_out=True) == Beginnings({}, {ONE: LEFT_OUT}, [])
    assert begun(LEFT_OUT, is_out=True) == Beginnings({}, {}, [])
    assert begun(None, is_out=True) == Beginnings({}, {}, [])


def test_what_an_earlier_process_has_left_out_is_looked_at_again() -> None:
    assert begun(LEFT_OUT) == Beginnings({ONE: OURS}, {ONE: OURS}, [])
