"""FindCoordinator of transactional ids."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.protocol.errors import ErrorCode


async def test_the_first_one_creates_the_state_topic(node_call: Any) -> None:
    build = node_call.request(10, 6)
    request = build.FindCoordinatorRequest(key_type=1, coordinator_keys=("x", "y"))
    answer = await node_call.ask(request)
    assert [each.error_code for each in answer.coordinators] == [ErrorCode.none] * 2
    assert [each.node_id for each in answer.coordinators] == [node_call.node.config.id] * 2
    assert len(node_call.node.image.topic("__transaction_state").partitions) == 50


@pytest.mark.parametrize("version", [1, 3])
async def test_one_key(api: Any, version: int) -> None:
    answer = await api.ask("find_coordinator", version, key="x", key_type=1)
    assert (answer.error_code, answer.node_id) == (ErrorCode.none, api.node.config.id)


async def test_a_state_topic_that_cannot_be_created(start_node: Any) -> None:
    call = await start_node(transaction_state_log_replication_factor="3")
    build = call.request(10, 3)
    answer = await call.ask(build.FindCoordinatorRequest(key="x", key_type=1))
    assert answer.error_code is ErrorCode.coordinator_not_available
    assert "transaction.state.log.replication.factor" in answer.error_message


async def test_the_coordinator_is_the_leader_of_the_ids_partition(api: Any) -> None:
    await api.move()
    for version in (1, 2, 3):
        answer = await api.ask("find_coordinator", version, key="x", key_type=1)
        found = (answer.error_code, answer.node_id, answer.host, answer.port)
        assert found == (ErrorCode.none, 2, "broker-2.invalid", 9092)


async def test_each_key_has_its_own_error(api: Any) -> None:
    assert api.node.transactions.partition_for("x") != api.node.transactions.partition_for("y")
    await api.move(leader=-1)
    answer = await api.ask("find_coordinator", 6, key_type=1, coordinator_keys=("x", "y"))
    lost, found = answer.coordinators
    assert (lost.key, lost.error_code) == ("x", ErrorCode.coordinator_not_available)
    assert (lost.node_id, lost.host, lost.port) == (-1, "", -1)
    assert (found.key, found.error_code) == ("y", ErrorCode.none)
