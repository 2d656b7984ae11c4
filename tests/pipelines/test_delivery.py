"""Delivery by name."""

import pytest

from ottla.pipelines.delivery import Delivery, read_delivery
from ottla.pipelines.errors import PipelineError


def test_a_delivery_is_read_by_its_name() -> None:
    assert read_delivery("at-most-once", "Delta", list(Delivery)) is Delivery.AT_MOST_ONCE
    assert read_delivery(Delivery.EXACTLY_ONCE, "Delta", list(Delivery)) is Delivery.EXACTLY_ONCE


def test_what_a_sink_cannot_promise_is_refused() -> None:
    offered = [Delivery.AT_LEAST_ONCE]
    with pytest.raises(PipelineError) as caught:
        read_delivery("exactly-once", "A topic", offered)
    assert str(caught.value) == "A topic cannot promise exactly-once: write 'at-least-once'"
    with pytest.raises(PipelineError) as caught:
        read_delivery("once", "Delta", list(Delivery))
    assert str(caught.value) == (
        "delivery='once' is unknown: write 'at-most-once', 'at-least-once' or 'exactly-once'"
    )
