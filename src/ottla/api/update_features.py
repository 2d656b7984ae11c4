"""UpdateFeatures (key 57): changes the levels of the cluster's features (KIP-584).

v1 (KIP-778): the type of upgrade, and validation only. v2: the response has no results of single
features. As in Kafka, all updates are made or none, in every version, and v0 makes upgrades only.
"""

from __future__ import annotations

from typing import Any, Final

from ottla.api.context import Context
from ottla.controller.features import FeatureUpdate, UpgradeType
from ottla.controller.plan import Outcome, refused
from ottla.protocol.access import Access, Operation, Resource
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.versioned_field import VersionedField
from ottla.runtime.slices import Slices

KEY: Final = 57
ACCESS: Final = (Access(Operation.ALTER, Resource.CLUSTER),)

_UPGRADE_TYPE: Final = VersionedField[int](
    KEY, "FeatureUpdateKey", "upgrade_type", UpgradeType.UPGRADE
)
_VALIDATE_ONLY: Final = VersionedField(KEY, "UpdateFeaturesRequest", "validate_only", False)
_LAST_WITH_RESULTS: Final = 1


async def handle(request: Any, context: Context) -> Any:
    build = context.messages
    slices = Slices()
    updates: list[FeatureUpdate] = []
    for each in request.feature_updates:
        await slices.count()
        updates.append(FeatureUpdate(each.feature, each.max_version_level, _UPGRADE_TYPE(each)))
    outcome = await _updated(updates, _VALIDATE_ONLY(request), context)
    results: list[Any] = []
    if context.version <= _LAST_WITH_RESULTS and not outcome.failed:
        for update in updates:
            await slices.count()
            results.append(
                build.UpdatableFeatureResult(
                    feature=update.feature, error_code=ErrorCode.none, error_message=None
                )
            )
    return build.UpdateFeaturesResponse(
        error_code=outcome.code, error_message=outcome.message, results=tuple(results)
    )


async def _updated(updates: list[FeatureUpdate], validate_only: bool, context: Context) -> Outcome:
    try:
        return await context.broker.controller.update_features(updates, validate_only=validate_only)
    except ApiError as error:
        return refused(error)
