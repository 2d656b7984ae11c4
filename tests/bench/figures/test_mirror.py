"""What the figure of mirrors tells; the bench itself runs the mirrors."""

from __future__ import annotations

import pytest
from bench.figures.mirror import EXACT, OTTLA, PLAIN, Mirror, Taken, values_of

from bench.figures import mirror
from ottla.testing import Broker


def test_every_measure_has_a_value_and_the_shares_are_over_the_default() -> None:
    found = {
        PLAIN: Taken(10.0, 1000.0, 30.0, 2.0, 3.0, [1.0, 2.0, 3.0]),
        EXACT: Taken(5.0, 2000.0, 40.0, 2.0, 3.0, [1.0, 2.0, 3.0]),
        OTTLA: Taken(30.0, 100.0, 6.0, 2.0, 3.0, [4.0, 5.0, 6.0]),
    }
    told = values_of(found)
    assert told.keys() == {each.name for each in Mirror.measures}
    assert told["mirror, share"] == pytest.approx(3.0)
    assert told["mirror, memory share"] == pytest.approx(0.1)
    assert told["ottla mirror, lag p50"] == 5.0


def test_a_filled_topic_and_its_ends() -> None:
    with Broker() as broker:
        broker.create_topic(mirror.TOPIC, partitions=mirror.PARTITIONS)
        ends = mirror.Ends(broker.bootstrap, mirror.TOPIC)
        assert ends.total() == 0
        mirror.fill(broker.bootstrap, 40)
        assert ends.total() == 40
        ends.close()
    assert {len(each) for each in mirror.values()} == {mirror.RECORD_BYTES}
