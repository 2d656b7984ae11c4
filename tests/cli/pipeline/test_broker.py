"""The brokers of a pipeline file."""

import pytest

from ottla.cli.failures import Failed
from ottla.cli.pipeline.broker import check_reachable


def test_a_wrong_address_is_found_at_once() -> None:
    with pytest.raises(Failed, match=r"cannot reach a broker at 127\.0\.0\.1:1: ") as raised:
        check_reachable("127.0.0.1:1")
    assert raised.value.hint is not None
    assert "source.bootstrap_servers" in raised.value.hint
