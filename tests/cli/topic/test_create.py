"""What `ottla topic create --assign` takes and refuses."""

import pytest

from ottla.cli.failures import UsageFailed
from ottla.cli.topic.create import assignment_of


def test_an_assignment_is_read() -> None:
    assert assignment_of(None, 3, 2) == []
    assert assignment_of("1:2,2:3", None, None) == [[1, 2], [2, 3]]


@pytest.mark.parametrize(("partitions", "replicas"), [(1, None), (None, 2)])
def test_an_assignment_excludes_numbers(partitions: int | None, replicas: int | None) -> None:
    with pytest.raises(UsageFailed, match="leave out"):
        assignment_of("1:2", partitions, replicas)
