"""Whether a mirror of several instances has come to its end."""

from __future__ import annotations

from ottla.client.topic_partition import TopicPartition
from ottla.mirroring.position import Origin, Position
from ottla.mirroring.reach import Reach, reach

T, U = TopicPartition("t", 0), TopicPartition("u", 0)
UNTIL = {T: 5, U: 7}
AT_FIVE = Position(5, Origin("id", "there", ("cluster",)))


def test_the_end_is_reached() -> None:
    there = {T: AT_FIVE, U: AT_FIVE._replace(offset=9)}
    assert reach(UNTIL, there, {"t", "u"}) == Reach([], [], [])
    assert reach(UNTIL, there, ()) == Reach([], [], []), "whatever became of the topics since"


def test_what_is_behind() -> None:
    assert reach(UNTIL, {U: AT_FIVE}, {"t", "u"}) == Reach([T, U], [], [])


def test_what_nobody_mirrors_on_is_not_waited_for() -> None:
    there = {U: AT_FIVE._replace(is_left_out=True)}
    assert reach(UNTIL, there, {"u"}) == Reach([], ["u"], ["t"])
