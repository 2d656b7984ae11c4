import json
from collections.abc import Sequence
from dataclasses import replace

import pytest

from ottla.controller import layout
from ottla.controller.features import (
    DEFAULT_LEVELS,
    SUPPORTED,
    TRANSACTION_VERSION,
    FeatureUpdate,
    UpgradeType,
    incompatibility,
    update_features,
)
from ottla.controller.image import BrokerAppeared, ClusterImage, FeatureRange, FeaturesChanged
from ottla.controller.plan import DONE, Outcome, Plan, decided
from ottla.coordination.tree import Create, SetData
from ottla.protocol.errors import ErrorCode

UPGRADE, SAFE, UNSAFE = UpgradeType


@pytest.fixture
def image(image: ClusterImage) -> ClusterImage:
    """Three brokers that support this software's features."""
    for broker in list(image.brokers.values()):
        image.apply(BrokerAppeared(replace(broker, features=SUPPORTED)))
    image.apply(FeaturesChanged({TRANSACTION_VERSION: 2}, 4))
    return image


def updated(image: ClusterImage, *updates: FeatureUpdate) -> Plan[Outcome]:
    return decided(update_features(updates, image, 1))


def carry_out(image: ClusterImage, *updates: FeatureUpdate) -> Sequence[object]:
    plan = updated(image, *updates)
    assert plan.reply == DONE
    for delta in plan.deltas:
        image.apply(delta)
    return plan.writes


def refusal(image: ClusterImage, update: FeatureUpdate) -> str:
    plan = updated(image, update)
    assert plan.reply.code is ErrorCode.invalid_update_version
    assert (plan.writes, plan.deltas) == ((), ())
    assert plan.reply.message is not None
    start = (
        "The update failed for all features since the following feature had an error:"
        f" Invalid update version {update.level} for feature {update.feature}. "
    )
    assert plan.reply.message.startswith(start)
    return plan.reply.message.removeprefix(start)


def test_the_level_goes_down_and_up_and_the_epoch_up(image: ClusterImage) -> None:
    (write,) = carry_out(image, FeatureUpdate(TRANSACTION_VERSION, 1, SAFE))
    assert isinstance(write, SetData)
    assert (write.path, write.version) == ("/feature", 4)
    assert json.loads(write.data) == {
        "version": 2,
        "status": 1,
        "features": {"transaction.version": {"max_version_level": 1}},
    }
    assert (image.features, image.features_version) == ({TRANSACTION_VERSION: 1}, 5)
    carry_out(image, FeatureUpdate(TRANSACTION_VERSION, 0, UNSAFE))
    assert (image.features, image.features_version) == ({}, 6)
    carry_out(image, FeatureUpdate(TRANSACTION_VERSION, 2))
    assert (image.features, image.features_version) == ({TRANSACTION_VERSION: 2}, 7)


def test_a_cluster_without_the_node(image: ClusterImage) -> None:
    image.apply(FeaturesChanged({}, None))
    (write,) = carry_out(image, FeatureUpdate(TRANSACTION_VERSION, 2))
    assert isinstance(write, Create)
    assert (image.features, image.features_version) == ({TRANSACTION_VERSION: 2}, 0)


@pytest.mark.parametrize("kind", UpgradeType)
def test_the_same_level_is_no_change(image: ClusterImage, kind: UpgradeType) -> None:
    assert carry_out(image, FeatureUpdate(TRANSACTION_VERSION, 2, kind)) == ()
    assert image.features_version == 4


def test_validation_only(image: ClusterImage) -> None:
    down = FeatureUpdate(TRANSACTION_VERSION, 1, SAFE)
    plan = decided(update_features([down], image, 1, validate_only=True))
    assert (plan.reply, plan.writes, plan.deltas) == (DONE, (), ())
    refused = decided(
        update_features([down._replace(upgrade_type=UPGRADE)], image, 1, validate_only=True)
    )
    assert refused.reply.code is ErrorCode.invalid_update_version


@pytest.mark.parametrize(
    ("update", "reason"),
    [
        ((TRANSACTION_VERSION, 1, UPGRADE), "Can't downgrade the version of this feature without"),
        ((TRANSACTION_VERSION, 3, UPGRADE), "Local controller 1 only supports versions 0-2"),
        ((TRANSACTION_VERSION, -1, SAFE), "A feature version cannot be less than 0."),
        ((TRANSACTION_VERSION, 1, 0), "The controller does not support the given upgrade type."),
        ((TRANSACTION_VERSION, 1, 4), "The controller does not support the given upgrade type."),
        (("unknown", 1, UPGRADE), "Local controller 1 does not support this feature."),
        (("unknown", 0, UPGRADE), "Feature unknown not found."),
        (("", 1, UPGRADE), "Local controller 1 does not support this feature."),
    ],
)
def test_refusals(image: ClusterImage, update: tuple[str, int, int], reason: str) -> None:
    """The order of the checks and the texts are those of Apache Kafka 4.3.1."""
    assert refusal(image, FeatureUpdate(*update)).startswith(reason)


def test_a_downgrade_must_not_raise_the_level(image: ClusterImage) -> None:
    carry_out(image, FeatureUpdate(TRANSACTION_VERSION, 1, SAFE))
    update = FeatureUpdate(TRANSACTION_VERSION, 2, SAFE)
    assert refusal(image, update) == "Can't downgrade to a newer version."


def test_every_broker_has_to_support_the_level(image: ClusterImage) -> None:
    carry_out(image, FeatureUpdate(TRANSACTION_VERSION, 0, SAFE))
    old = replace(image.brokers[3], features=(FeatureRange(TRANSACTION_VERSION, 0, 1),))
    image.apply(BrokerAppeared(old))
    assert refusal(image, FeatureUpdate(TRANSACTION_VERSION, 2)) == (
        "Broker 3 only supports versions 0-1"
    )
    carry_out(image, FeatureUpdate(TRANSACTION_VERSION, 1))
    image.apply(BrokerAppeared(replace(old, features=())))
    assert refusal(image, FeatureUpdate(TRANSACTION_VERSION, 2)) == (
        "Broker 3 does not support this feature."
    )


def test_all_updates_or_none(image: ClusterImage) -> None:
    down = FeatureUpdate(TRANSACTION_VERSION, 1, SAFE)
    plan = updated(image, down, FeatureUpdate("unknown", 1))
    assert plan.reply.code is ErrorCode.invalid_update_version
    assert plan.writes == ()


def test_the_last_update_of_a_feature_counts(image: ClusterImage) -> None:
    down = FeatureUpdate(TRANSACTION_VERSION, 1, SAFE)
    carry_out(image, FeatureUpdate(TRANSACTION_VERSION, 9), down)
    assert image.features == {TRANSACTION_VERSION: 1}


def test_the_defaults_are_supported() -> None:
    assert incompatibility(DEFAULT_LEVELS) is None
    assert incompatibility({}) is None


def test_a_cluster_of_newer_software_is_refused_with_what_to_do() -> None:
    reason = incompatibility({TRANSACTION_VERSION: 3})
    assert reason is not None
    assert "transaction.version is at level 3" in reason
    assert "supports 0 to 2: start a newer version" in reason
    assert "group.version is at level 2" in (incompatibility({"group.version": 2}) or "")


def test_the_node_that_apache_kafka_wrote() -> None:
    """Version 1 has ranges of levels; status 0 turns all features off (KIP-584)."""
    text = (
        '{"version":1,"status":%d,"features":{"a":{"min_version_level":1,"max_version_level":3}}}'
    )
    assert layout.read_features((text % 1).encode()) == {"a": 3}
    assert layout.read_features((text % 0).encode()) == {}
