from typing import Any

import pytest

from ottla.protocol.errors import ErrorCode

KEY = 57
FEATURE = "transaction.version"
OTHERS = {"group.version": 1, "share.version": 2, "streams.version": 1}


async def ask(cluster: Any, version: int, *levels: tuple[str, int, int], **fields: Any) -> Any:
    """Each level: feature, level, type of upgrade (0: the default)."""
    build = cluster.request(KEY, version)
    updates = tuple(
        build.FeatureUpdateKey(
            feature=name, max_version_level=level, **({"upgrade_type": kind} if kind else {})
        )
        for name, level, kind in levels
    )
    return await cluster.ask(build.UpdateFeaturesRequest(feature_updates=updates, **fields))


@pytest.mark.parametrize("version", range(3))
async def test_a_change_is_made(cluster: Any, version: int) -> None:
    await ask(cluster, 1, (FEATURE, 1, 2))
    assert cluster.image.features == {FEATURE: 1, **OTHERS}
    answer = await ask(cluster, version, (FEATURE, 2, 0))
    assert (answer.error_code, answer.error_message) == (ErrorCode.none, None)
    results = [(each.feature, each.error_code) for each in getattr(answer, "results", ())]
    assert results == ([] if version == 2 else [(FEATURE, ErrorCode.none)])
    assert (cluster.image.features, cluster.image.features_version) == ({FEATURE: 2, **OTHERS}, 2)


@pytest.mark.parametrize("version", range(3))
async def test_there_is_one_error_for_all(cluster: Any, version: int) -> None:
    answer = await ask(cluster, version, (FEATURE, 2, 0), ("unknown", 1, 0))
    assert answer.error_code is ErrorCode.invalid_update_version
    assert "feature unknown. Local controller" in answer.error_message
    assert getattr(answer, "results", ()) == ()


async def test_a_downgrade_has_to_be_asked_for(cluster: Any) -> None:
    """As in Apache Kafka 4.3.1, allow_downgrade of version 0 is not looked at."""
    refused = await ask(cluster, 1, (FEATURE, 1, 1))
    assert refused.error_code is ErrorCode.invalid_update_version
    build = cluster.request(KEY, 0)
    update = build.FeatureUpdateKey(feature=FEATURE, max_version_level=1, allow_downgrade=True)
    refused = await cluster.ask(build.UpdateFeaturesRequest(feature_updates=(update,)))
    assert refused.error_code is ErrorCode.invalid_update_version
    assert cluster.image.features == {FEATURE: 2, **OTHERS}


async def test_validation_only(cluster: Any) -> None:
    answer = await ask(cluster, 2, (FEATURE, 1, 2), validate_only=True)
    assert answer.error_code is ErrorCode.none
    assert (cluster.image.features, cluster.image.features_version) == ({FEATURE: 2, **OTHERS}, 0)


async def test_a_broker_that_is_not_the_controller(cluster: Any) -> None:
    cluster.controller.resign("a test")
    answer = await ask(cluster, 2, (FEATURE, 1, 2))
    assert answer.error_code is ErrorCode.not_controller
