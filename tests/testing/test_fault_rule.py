"""Kafka's names, as tests write them."""

from __future__ import annotations

import pytest

from ottla.protocol.errors import ErrorCode
from ottla.testing.errors import KitError
from ottla.testing.fault_rule import API_NAMES, api_key, api_name, error_code


def test_names_are_kafkas_in_any_case() -> None:
    assert api_key("Produce") == api_key("produce") == 0
    assert api_name(api_key("OffsetForLeaderEpoch")) == "OffsetForLeaderEpoch"
    assert error_code("not_leader_or_follower") is ErrorCode.not_leader_or_follower
    assert error_code(ErrorCode.none) is ErrorCode.none
    assert "AlterPartition" not in API_NAMES  # only brokers send it


def test_a_wrong_name_names_the_nearest() -> None:
    with pytest.raises(KitError, match=r"no request type 'Prodce'.*do you mean Produce"):
        api_key("Prodce")
    with pytest.raises(KitError, match="no error 'NOT_LEADER'"):
        error_code("NOT_LEADER")
    with pytest.raises(KitError, match="for example Produce"):
        api_key("")
