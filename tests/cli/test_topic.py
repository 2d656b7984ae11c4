"""What `ottla topic create --assign` takes and refuses."""

import pytest

from ottla.cli.failures import UsageFailed
from ottla.cli.topic import new_topic, read_assignment


def test_an_assignment_is_read():
    assert read_assignment(None, 3, 2) == []
    assert read_assignment("1:2,2:3", None, None) == [[1, 2], [2, 3]]
    assert read_assignment("7", None, None) == [[7]]


@pytest.mark.parametrize(
    ("text", "partitions", "replicas", "named"),
    [
        ("1:2", 1, None, "leave out"),
        ("1:2", None, 2, "leave out"),
        ("1:", None, None, "broker ids"),
        ("", None, None, "broker ids"),
        ("a,b", None, None, "broker ids"),
        ("-1", None, None, "broker ids"),
        ("1:2,1", None, None, "same number of replicas"),
        ("1:1", None, None, "twice"),
    ],
)
def test_an_invalid_assignment_is_rejected(text, partitions, replicas, named):
    with pytest.raises(UsageFailed, match=named):
        read_assignment(text, partitions, replicas)


def test_a_new_topic_has_either_numbers_or_an_assignment():
    assert new_topic("t", None, None, [], {}).num_partitions == -1
    assigned = new_topic("t", None, None, [[1, 2], [2, 1]], {})
    assert (assigned.num_partitions, assigned.replica_assignment) == (2, [[1, 2], [2, 1]])
