from typing import Any

import pytest

from ottla.protocol.errors import ErrorCode

KEY = 67


async def ask(cluster: Any, broker_id: int = 1, later: int = 0) -> Any:
    """`later` is added to the epoch of the broker's registration."""
    build = cluster.request(KEY, 0)
    epoch = cluster.image.brokers[broker_id].epoch + later
    request = build.AllocateProducerIdsRequest(broker_id=broker_id, broker_epoch=epoch)
    return await cluster.ask(request)


async def test_blocks_follow_each_other(cluster: Any) -> None:
    await cluster.others_are(2)
    answers = [await ask(cluster, broker_id) for broker_id in (1, 2, 1)]
    assert [(each.producer_id_start, each.producer_id_len) for each in answers] == [
        (0, 1000),
        (1000, 1000),
        (2000, 1000),
    ]
    assert {each.error_code for each in answers} == {ErrorCode.none}


@pytest.mark.parametrize("later", [-1, 1])
async def test_a_broker_names_the_epoch_of_its_registration(cluster: Any, later: int) -> None:
    refused = await ask(cluster, later=later)
    assert refused.error_code is ErrorCode.stale_broker_epoch
    assert (await ask(cluster)).producer_id_start == 0


async def test_only_the_controller_allocates_ids(cluster: Any) -> None:
    cluster.controller.resign("for the test")
    assert (await ask(cluster)).error_code is ErrorCode.not_controller
