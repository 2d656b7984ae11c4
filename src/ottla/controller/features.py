"""The features of the cluster: which levels this software supports, and UpdateFeatures (KIP-584).

A *supported* range is what one broker's software can do; brokers register theirs. A *finalized*
level is what all brokers of the cluster do now; an administrator changes it once every broker
supports the new one. Level 0 is the absence of the feature. The epoch of the finalized levels is
the version of their node in the coordination tree, so it grows with each change, and clients take
over only levels with a higher epoch than those they know.

The rules and texts are those of Kafka's FeatureControlManager.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from ottla.controller import layout
from ottla.controller.image import ClusterImage, FeatureRange, FeaturesChanged
from ottla.controller.plan import DONE, Outcome, Plan, PlanBuilder, Step, Steps
from ottla.coordination.tree import Create, SetData
from ottla.protocol.errors import ErrorCode

TRANSACTION_VERSION: Final = "transaction.version"
"""0 and 1: clients add partitions to their transactions; 1 allows tagged fields in the records of
`__transaction_state`. 2: brokers add them, and each transaction has an epoch of its own (KIP-890).
"""

GROUP_VERSION: Final = "group.version"
"""1: consumer groups of the newer protocol (KIP-848). At 0 their requests are refused."""

SHARE_VERSION: Final = "share.version"
"""1: share groups (KIP-932). At 0 their requests are refused. 2: with dead letters (KIP-1191)."""
WITH_DEAD_LETTERS: Final = 2

STREAMS_VERSION: Final = "streams.version"
"""1: streams groups (KIP-1071). At 0 their requests are refused."""

SUPPORTED: Final = (
    FeatureRange(GROUP_VERSION, 0, 1),
    FeatureRange(SHARE_VERSION, 0, 2),
    FeatureRange(STREAMS_VERSION, 0, 1),
    FeatureRange(TRANSACTION_VERSION, 0, 2),
)
"""By this broker's software."""
DEFAULT_LEVELS: Final[Mapping[str, int]] = {
    GROUP_VERSION: 1,
    SHARE_VERSION: 2,
    STREAMS_VERSION: 1,
    TRANSACTION_VERSION: 2,
}
"""The finalized levels of a new cluster."""


class UpgradeType(enum.IntEnum):
    """What an update may do, as numbered in the protocol."""

    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    """A downgrade that loses no metadata; those of our features never do."""
    UNSAFE_DOWNGRADE = 3


class FeatureUpdate(NamedTuple):
    """One requested level; `upgrade_type` may be an unknown number."""

    feature: str
    level: int
    upgrade_type: int = UpgradeType.UPGRADE


def update_features(
    updates: Sequence[FeatureUpdate],
    image: ClusterImage,
    broker_id: int,
    *,
    validate_only: bool = False,
) -> Steps[Outcome]:
    """Makes all updates, or none: INVALID_UPDATE_VERSION. `broker_id` is the controller's."""
    levels, step = dict(image.features), Step()
    # Of several updates of one feature the last one counts, as in Kafka.
    last: dict[str, FeatureUpdate] = {}
    for update in updates:
        if step.is_full(1):
            yield
        last[update.feature] = update
    for update in last.values():
        if step.is_full(10):
            yield
        reason = _refusal(update, image, broker_id)
        if reason is not None:
            return Plan(
                Outcome(
                    ErrorCode.invalid_update_version,
                    "The update failed for all features since the following feature had an error:"
                    f" Invalid update version {update.level} for feature {update.feature}."
                    f" {reason}",
                )
            )
        levels[update.feature] = update.level
    levels = {feature: level for feature, level in levels.items() if level > 0}
    builder = PlanBuilder()
    if levels != image.features:
        data = layout.write_features(levels)
        version = image.features_version
        if version is None:
            builder.writes.append(Create(layout.FEATURES, data))
            version = 0
        else:
            builder.writes.append(SetData(layout.FEATURES, data, version))
            version += 1
        builder.deltas.append(FeaturesChanged(levels, version))
    return builder.plan(DONE, validate_only=validate_only)


def _refusal(update: FeatureUpdate, image: ClusterImage, broker_id: int) -> str | None:
    if update.upgrade_type not in tuple(UpgradeType):
        return "The controller does not support the given upgrade type."
    if update.level < 0:
        return "A feature version cannot be less than 0."
    reason = _not_supported(update, f"Local controller {broker_id}", SUPPORTED)
    for number, broker in sorted(image.brokers.items()):
        reason = reason or _not_supported(update, f"Broker {number}", broker.features)
    if reason is not None:
        return reason
    if update.feature not in (each.feature for each in SUPPORTED):
        return f"Feature {update.feature} not found."
    level = image.features.get(update.feature, 0)
    is_upgrade = update.upgrade_type == UpgradeType.UPGRADE
    if update.level < level and is_upgrade:
        return (
            "Can't downgrade the version of this feature without setting the upgrade type to"
            " either safe or unsafe downgrade."
        )
    if update.level > level and not is_upgrade:
        return "Can't downgrade to a newer version."
    return None


def _not_supported(
    update: FeatureUpdate, who: str, supported: Sequence[FeatureRange]
) -> str | None:
    for feature, first, last in supported:
        if feature == update.feature:
            if first <= update.level <= last:
                return None
            return f"{who} only supports versions {first}-{last}"
    return None if update.level == 0 else f"{who} does not support this feature."


def incompatibility(finalized: Mapping[str, int]) -> str | None:
    """Why this software cannot run in a cluster with these finalized levels; None if it can."""
    supported = {feature: (first, last) for feature, first, last in SUPPORTED}
    for feature, level in sorted(finalized.items()):
        first, last = supported.get(feature, (0, 0))
        if not first <= level <= last:
            return (
                f"the cluster's feature {feature} is at level {level}, but this version of ottla"
                f" supports {first} to {last}: start a newer version, or lower the level first"
                " (kafka-features.sh downgrade)"
            )
    return None
