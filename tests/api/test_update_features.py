from typing import Any

import pytest

from ottla.protocol.errors import ErrorCode

KEY = 57


async def ask(cluster: Any, version: int, **levels: int) -> Any:
    build = cluster.request(KEY, version)
    updates = tuple(
        build.FeatureUpdateKey(feature=name, max_version_level=level)
        for name, level in levels.items()
    )
    return await cluster.ask(build.UpdateFeaturesRequest(feature_updates=updates))


@pytest.mark.parametrize("version", [0, 1])
async def test_a_level_of_an_unknown_feature_is_refused(cluster: Any, version: int) -> None:
    answer = await ask(cluster, version, kraft=3, gone=0)
    assert answer.error_code is ErrorCode.none
    found = {each.feature: each.error_code for each in answer.results}
    assert found == {"kraft": ErrorCode.invalid_update_version, "gone": ErrorCode.none}
    assert "kraft" in answer.results[0].error_message


async def test_since_version_2_there_is_one_error_for_all(cluster: Any) -> None:
    answer = await ask(cluster, 2, kraft=3, gone=0)
    assert answer.error_code is ErrorCode.invalid_update_version
    assert "kraft" in answer.error_message


async def test_an_unknown_feature_can_be_removed(cluster: Any) -> None:
    answer = await ask(cluster, 2, gone=0)
    assert (answer.error_code, answer.error_message) == (ErrorCode.none, None)
