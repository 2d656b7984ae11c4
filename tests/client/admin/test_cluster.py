"""The cluster as any broker describes it."""

from __future__ import annotations

from typing import Any

import pytest
from tests.client.fake_cluster import FakeCluster

from ottla.client.admin.cluster import (
    DESCRIBE_CLUSTER,
    DESCRIBE_QUORUM,
    METADATA_TOPIC,
    any_brokers_view,
    controller_epoch,
)
from ottla.client.errors import RefusedError
from ottla.client.metadata import Broker
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages import messages_of


def describing(code: ErrorCode, controller: int) -> FakeCluster:
    def answer(address: str, request: Any) -> Any:
        assert request.include_cluster_authorized_operations is False
        build = messages_of(DESCRIBE_CLUSTER, request.__version__)
        node = build.DescribeClusterBroker(broker_id=3, host="h", port=1, rack="east")
        return build.DescribeClusterResponse(
            error_code=code,
            error_message=None,
            cluster_id="x",
            controller_id=controller,
            brokers=(node,),
        )

    return FakeCluster({DESCRIBE_CLUSTER: [answer]})


@pytest.mark.parametrize(("named", "controller"), [(3, 3), (-1, None), (9, None)])
def test_any_broker_can_describe_the_cluster(named: int, controller: int | None) -> None:
    view = any_brokers_view(describing(ErrorCode.none, named).client())
    assert view == ("x", controller, {3: Broker(3, "h", 1, "east")})


def test_a_refusal_to_describe_the_cluster() -> None:
    refusing = describing(ErrorCode.cluster_authorization_failed, 3)
    with pytest.raises(RefusedError, match="cannot describe the cluster: cluster authorization"):
        any_brokers_view(refusing.client())


@pytest.mark.parametrize(
    ("code", "epoch"), [(ErrorCode.none, 17), (ErrorCode.unknown_topic_or_partition, None)]
)
def test_the_controllers_epoch_is_returned_if_known(code: ErrorCode, epoch: int | None) -> None:
    def quorum(address: str, request: Any) -> Any:
        build = messages_of(DESCRIBE_QUORUM, request.__version__)
        assert request.topics[0].topic_name == METADATA_TOPIC
        told = build.PartitionData(
            partition_index=0, error_code=code, leader_id=1, leader_epoch=17, high_watermark=0
        )
        topic = build.TopicData(topic_name=METADATA_TOPIC, partitions=(told,))
        return build.DescribeQuorumResponse(error_code=ErrorCode.none, topics=(topic,))

    assert controller_epoch(FakeCluster({DESCRIBE_QUORUM: [quorum]}).client()) == epoch
