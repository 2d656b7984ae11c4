from typing import Any

import pytest

from ottla.protocol.errors import ErrorCode


@pytest.mark.parametrize("version", range(2))
async def test_the_consumer_protocol_is_refused(
    api: Any, caplog: pytest.LogCaptureFixture, version: int
) -> None:
    answer = await api.ask(
        "consumer_group_heartbeat",
        version,
        group_id="g",
        member_id="m",
        member_epoch=0,
        rebalance_timeout=60_000,
        subscribed_topic_names=("t",),
        topic_partitions=(),
    )
    assert answer.error_code is ErrorCode.unsupported_version
    assert "group.protocol=classic" in answer.error_message
    assert "group g" in caplog.text


async def test_a_line_has_no_room_for_a_long_name(
    api: Any, caplog: pytest.LogCaptureFixture
) -> None:
    await api.ask("consumer_group_heartbeat", 1, group_id="g" * 32_000)
    assert len(caplog.text) < 1_000
