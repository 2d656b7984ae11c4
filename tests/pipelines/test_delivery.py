"""Delivery by name."""

import pytest

from ottla.pipelines.delivery import DeliveryGuarantee, read_guarantee
from ottla.pipelines.errors import PipelineError


def test_a_delivery_is_read_by_its_name() -> None:
    assert (
        read_guarantee("at-most-once", "Delta", list(DeliveryGuarantee))
        is DeliveryGuarantee.AT_MOST_ONCE
    )
    assert (
        read_guarantee(DeliveryGuarantee.EXACTLY_ONCE, "Delta", list(DeliveryGuarantee))
        is DeliveryGuarantee.EXACTLY_ONCE
    )


def test_what_a_sink_cannot_promise_is_refused() -> None:
    offered = [DeliveryGuarantee.AT_LEAST_ONCE]
    with pytest.raises(PipelineError) as caught:
        read_guarantee("exactly-once", "A topic", offered)
    assert str(caught.value) == "A topic cannot promise exactly-once: write 'at-least-once'"
    with pytest.raises(PipelineError) as caught:
        read_guarantee("once", "Delta", list(DeliveryGuarantee))
    assert str(caught.value) == (
        "delivery='once' is unknown: write 'at-most-once', 'at-least-once' or 'exactly-once'"
    )
