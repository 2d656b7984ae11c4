"""A share partition does what the model says, whatever happens to it."""

import pytest
from hypothesis import HealthCheck, settings
from tests.share.model import Machine

from ottla.share.acquisition import AcquireMode
from ottla.share.share_partition import SharePartition, StoredState

Machine.TestCase.settings = settings(
    max_examples=150,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
TestSharePartition = Machine.TestCase


def test_the_model_sees_a_record_that_is_delivered_again() -> None:
    """The model itself is tested: a partition that forgets what was written is found."""
    machine = Machine()
    machine.begin([3, 3, 3], 1_000)
    machine.acquire("a", 3, 8, AcquireMode.RECORD_LIMIT, 1)
    machine.acknowledge("a", 0, 3, [1] * 8, True)
    machine.begin_write()
    machine.end_write(True, True)
    machine.partition = SharePartition(StoredState(0, 0, ()))
    with pytest.raises(AssertionError):
        machine.acquire("b", 3, 8, AcquireMode.RECORD_LIMIT, 1)
