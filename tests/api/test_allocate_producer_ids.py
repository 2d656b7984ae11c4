from typing import Any

from ottla.protocol.errors import ErrorCode

KEY = 67


async def ask(cluster: Any, broker_id: int = 1) -> Any:
    build = cluster.request(KEY, 0)
    return await cluster.ask(build.AllocateProducerIdsRequest(broker_id=broker_id, broker_epoch=1))


async def test_blocks_follow_each_other(cluster: Any) -> None:
    answers = [await ask(cluster, broker_id) for broker_id in (1, 2, 1)]
    assert [(each.producer_id_start, each.producer_id_len) for each in answers] == [
        (0, 1000),
        (1000, 1000),
        (2000, 1000),
    ]
    assert {each.error_code for each in answers} == {ErrorCode.none}


async def test_only_the_controller_allocates_ids(cluster: Any) -> None:
    cluster.controller.resign("for the test")
    assert (await ask(cluster)).error_code is ErrorCode.not_controller
