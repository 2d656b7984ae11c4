"""Which producers of a transactional id are known to be fenced."""

from simulation.instances import ANSWERED_WITHIN_MS, Instances


def test_a_later_producer_fences() -> None:
    instances = Instances()
    first = instances.initialized(instances.asking(0))
    assert instances.is_last(first)
    assert not instances.may_be_fenced(first, 0)
    second = instances.initialized(instances.asking(10))
    assert instances.is_fenced(first)
    assert not instances.is_last(first)
    assert instances.is_last(second)
    assert not instances.is_fenced(second)


def test_overlapping_requests_have_no_known_order() -> None:
    instances = Instances()
    one, other = instances.asking(0), instances.asking(0)
    first, second = instances.initialized(one), instances.initialized(other)
    for token in (first, second):
        assert not instances.is_fenced(token)
        assert not instances.is_last(token)
        assert instances.may_be_fenced(token, 0)
    instances.initialized(instances.asking(1))
    assert instances.is_fenced(first)
    assert instances.is_fenced(second)


def test_a_request_without_an_answer_may_fence_for_a_while() -> None:
    instances = Instances()
    instances.asking(0)
    token = instances.initialized(instances.asking(5))
    assert instances.may_be_fenced(token, 5)
    assert not instances.may_be_fenced(token, ANSWERED_WITHIN_MS)
    refused = instances.asking(ANSWERED_WITHIN_MS)
    instances.refused(refused)
    assert instances.may_be_fenced(token, ANSWERED_WITHIN_MS)


def test_an_attempt_that_is_refused_may_have_aborted_the_newer_ones_transaction() -> None:
    """Kafka aborts it before it compares the epochs."""
    instances = Instances()
    instances.initialized(instances.asking(0))
    newer = instances.asking(10)
    older = instances.asking(20)
    token = instances.initialized(newer)
    instances.refused(older)
    assert instances.may_be_fenced(token, 30)
    following = instances.initialized(instances.asking(40))
    assert not instances.may_be_fenced(following, 50)
