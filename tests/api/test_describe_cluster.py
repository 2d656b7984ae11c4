from typing import Any

import pytest

from ottla.api.metadata import CLUSTER_OPERATIONS, OPERATIONS_NOT_REQUESTED
from ottla.protocol.errors import ErrorCode

KEY = 60


@pytest.mark.parametrize("version", range(3))
async def test_every_version_lists_brokers_and_controller(start_cluster: Any, version: int) -> None:
    cluster = await start_cluster(broker_rack="north")
    build = cluster.request(KEY, version)
    answer = await cluster.ask(build.DescribeClusterRequest())
    assert answer.error_code is ErrorCode.none
    assert (answer.cluster_id, answer.controller_id) == (cluster.image.cluster_id, 1)
    (broker,) = answer.brokers
    assert (broker.broker_id, broker.host, broker.port) == (1, "reached.example.org", 19092)
    assert broker.rack == "north"
    assert answer.cluster_authorized_operations == OPERATIONS_NOT_REQUESTED
    if version >= 2:
        assert not broker.is_fenced


async def test_operations_are_returned_on_request(cluster: Any) -> None:
    build = cluster.request(KEY, 1)
    answer = await cluster.ask(
        build.DescribeClusterRequest(include_cluster_authorized_operations=True)
    )
    assert answer.cluster_authorized_operations == CLUSTER_OPERATIONS


@pytest.mark.parametrize(
    ("endpoint_type", "code"),
    [(2, ErrorCode.mismatched_endpoint_type), (9, ErrorCode.unsupported_endpoint_type)],
)
async def test_other_endpoint_types_are_refused(
    cluster: Any, endpoint_type: int, code: ErrorCode
) -> None:
    build = cluster.request(KEY, 2)
    answer = await cluster.ask(build.DescribeClusterRequest(endpoint_type=endpoint_type))
    assert answer.error_code is code
    assert answer.error_message
    assert answer.brokers == ()
