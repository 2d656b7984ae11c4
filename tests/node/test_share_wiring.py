"""What a node makes of its settings for share groups."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from ottla.config.broker import BrokerConfig
from ottla.config.group import group_config
from ottla.config.offset_reset import OffsetReset
from ottla.controller.plan import DONE, Outcome
from ottla.node.share_wiring import ShareCoordinators, group_terms
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.replica.shared_partition import GroupTerms
from ottla.share.share_partition import ShareSettings
from ottla.share.stored import ShareKey

KEY = ShareKey("g", UUID(int=7), 0)


def test_the_terms_of_a_group_are_its_own_settings() -> None:
    broker = BrokerConfig({"group.share.delivery.count.limit": "3"})
    terms = group_terms(group_config(broker))
    records = ShareSettings(2_000, 3, 30_000, True)
    assert terms == GroupTerms(records, committed_only=False, reset=OffsetReset("latest"))
    own = {
        "share.record.lock.duration.ms": "20000",
        "share.partition.max.record.locks": "500",
        "share.isolation.level": "read_committed",
        "share.auto.offset.reset": "by_duration:PT1H",
        "share.renew.acknowledge.enable": "false",
    }
    terms = group_terms(group_config(broker, own))
    assert terms.records == ShareSettings(500, 3, 20_000, False)
    assert (terms.committed_only, terms.reset) == (True, OffsetReset("by_duration", 3_600_000))


def test_a_group_with_a_topic_of_dead_letters() -> None:
    """They are written where share.version allows it."""
    group = group_config(BrokerConfig(), {"errors.deadletterqueue.topic.name": "dlq.t"})
    terms = group_terms(group, has_dead_letters=True)
    assert (terms.records.has_dead_letters, terms.dead_letters) == (True, "dlq.t")
    terms = group_terms(group)
    assert (terms.records.has_dead_letters, terms.dead_letters) == (False, "")
    assert not group_terms(group_config(BrokerConfig()), has_dead_letters=True).dead_letters


async def test_the_leader_of_the_partition_coordinates() -> None:
    leader = 2
    outcome = DONE

    async def create() -> Outcome:
        return outcome

    image: Any = SimpleNamespace(
        partition=lambda topic, index: None if leader is None else SimpleNamespace(leader=leader),
        brokers={2: None},
    )
    where = ShareCoordinators(lambda: image, lambda name: 0, create)
    assert where.broker(KEY) == 2
    leader = 1  # which is away
    assert where.broker(KEY) is None
    await where.create()
    outcome = Outcome(ErrorCode.invalid_replication_factor, "three brokers are needed")
    with pytest.raises(ApiError) as caught:
        await where.create()
    assert caught.value.code is ErrorCode.coordinator_not_available
    assert str(caught.value) == "three brokers are needed"
