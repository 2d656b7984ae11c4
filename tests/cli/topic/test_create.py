"""What `ottla topic create --assign` takes and refuses."""

import pytest

from ottla.cli.failures import UsageFailed
from ottla.cli.topic.create import assignment_of, new_topic


def test_an_assignment_is_read() -> None:
    assert assignment_of(None, 3, 2) == []
    assert assignment_of("1:2,2:3", None, None) == [[1, 2], [2, 3]]


@pytest.mark.parametrize(("partitions", "replicas"), [(1, None), (None, 2)])
def test_an_assignment_excludes_numbers(partitions: int | None, replicas: int | None) -> None:
    with pytest.raises(UsageFailed, match="leave out"):
        assignment_of("1:2", partitions, replicas)


def test_a_new_topic_has_either_numbers_or_an_assignment() -> None:
    assert new_topic("t", None, None, [], {}).num_partitions == -1
    assigned = new_topic("t", None, None, [[1, 2], [2, 1]], {})
    assert (assigned.num_partitions, assigned.replica_assignment) == (2, [[1, 2], [2, 1]])
