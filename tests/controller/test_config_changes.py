from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from ottla.config.broker import BrokerConfig
from ottla.controller.config_changes import (
    MAX_GROUPS,
    VALUE_LENGTH_MAX,
    ChangeKind,
    ConfigChange,
    ResourceChange,
    ResourceResult,
    ResourceType,
    alter_configs,
)
from ottla.controller.image import (
    EVERY_BROKER,
    BrokerConfigChanged,
    ClusterImage,
    ConfigImage,
    TopicConfigChanged,
)
from ottla.controller.plan import Outcome, Plan, decided
from ottla.controller.topics import NewTopic
from ottla.coordination.tree import Create, Delete, SetData
from ottla.protocol.errors import ErrorCode

Alter = Callable[..., Outcome]
SET, DELETE, APPEND, SUBTRACT = ChangeKind


def topic(*changes: ConfigChange, name: str = "t") -> ResourceChange:
    return ResourceChange(ResourceType.TOPIC, name, changes)


def broker(*changes: ConfigChange, name: str = "1") -> ResourceChange:
    return ResourceChange(ResourceType.BROKER, name, changes)


def group(*changes: ConfigChange, name: str = "g/1") -> ResourceChange:
    return ResourceChange(ResourceType.GROUP, name, changes)


@pytest.fixture
def alter(
    image: ClusterImage, config: BrokerConfig, add_topic: Callable[[NewTopic], None]
) -> Alter:
    """Alters one resource, applies the deltas and returns the outcome."""
    add_topic(NewTopic("t", 1, 1, configs=(("retention.ms", "5"), ("cleanup.policy", "compact"))))

    def work(resource: ResourceChange, *, incremental: bool = True, **more: Any) -> Outcome:
        plan = decided(alter_configs([resource], image, config, incremental=incremental, **more))
        for delta in plan.deltas:
            image.apply(delta)
        return plan.reply[0].outcome

    return work


def overrides(image: ClusterImage) -> dict[str, str]:
    return dict(image.topics["t"].overrides)


def test_set_and_delete_change_only_the_named_settings(alter: Alter, image: ClusterImage) -> None:
    done = alter(topic(ConfigChange("segment.ms", "7"), ConfigChange("retention.ms", None, DELETE)))
    assert not done.failed
    assert overrides(image) == {"segment.ms": "7", "cleanup.policy": "compact"}
    assert image.topics["t"].config_version == 1


def test_append_and_subtract_work_on_lists(alter: Alter, image: ClusterImage) -> None:
    alter(topic(ConfigChange("cleanup.policy", "delete,compact", APPEND)))
    assert overrides(image)["cleanup.policy"] == "compact,delete"
    alter(topic(ConfigChange("cleanup.policy", "compact", SUBTRACT)))
    assert overrides(image)["cleanup.policy"] == "delete"
    alter(topic(ConfigChange("cleanup.policy", None, DELETE)))
    # Without a value of its own, the list begins as the default.
    alter(topic(ConfigChange("cleanup.policy", "compact", APPEND)))
    assert overrides(image)["cleanup.policy"] == "delete,compact"


def test_the_old_request_replaces_everything(alter: Alter, image: ClusterImage) -> None:
    assert not alter(topic(ConfigChange("segment.ms", "9")), incremental=False).failed
    assert overrides(image) == {"segment.ms": "9"}


def test_validate_only_changes_nothing(alter: Alter, image: ClusterImage) -> None:
    change = ConfigChange("segment.ms", "9")
    assert not alter(topic(change), validate_only=True).failed
    assert alter(topic(ConfigChange("segment.ms", "x")), validate_only=True).failed
    assert "segment.ms" not in overrides(image)


def test_no_write_if_nothing_changes(
    alter: Alter, image: ClusterImage, config: BrokerConfig
) -> None:
    plan = decided(
        alter_configs([topic(ConfigChange("retention.ms", "5"))], image, config, incremental=True)
    )
    assert (plan.writes, plan.deltas) == ((), ())
    assert not plan.reply[0].outcome.failed


@pytest.mark.parametrize(
    ("resource", "code", "message"),
    [
        (
            topic(ConfigChange("segment.bytes", "12")),
            ErrorCode.invalid_config,
            "Invalid value 12 for configuration segment.bytes: Value must be at least 1048576",
        ),
        (
            topic(ConfigChange("nonsense", "1")),
            ErrorCode.invalid_config,
            "Unknown topic config name: nonsense",
        ),
        (
            topic(ConfigChange("retention.ms", "1", APPEND)),
            ErrorCode.invalid_config,
            "Can't APPEND to key retention.ms because its type is not LIST.",
        ),
        (
            topic(ConfigChange("retention.ms", "1" * (VALUE_LENGTH_MAX + 1))),
            ErrorCode.invalid_config,
            "exceeds the maximum value size",
        ),
        (
            topic(ConfigChange("retention.ms", None)),
            ErrorCode.invalid_request,
            "Null value not supported for : retention.ms",
        ),
        (
            topic(ConfigChange("retention.ms", "1"), ConfigChange("retention.ms", "2")),
            ErrorCode.invalid_request,
            "Error due to duplicate config keys",
        ),
        (
            topic(ConfigChange("retention.ms", "1", 9)),
            ErrorCode.invalid_request,
            "Unknown operations type 9",
        ),
        (
            topic(ConfigChange("retention.ms", "1"), name="none"),
            ErrorCode.unknown_topic_or_partition,
            "The topic 'none' does not exist.",
        ),
        (
            topic(name=""),
            ErrorCode.invalid_request,
            "Default topic resources are not allowed.",
        ),
        (topic(name="a b"), ErrorCode.invalid_topic_exception, "Topic name is invalid"),
        (
            broker(ConfigChange("num.partitions", "1")),
            ErrorCode.invalid_request,
            "Cannot update these configs dynamically: [num.partitions]",
        ),
        (
            broker(ConfigChange("log.segment.bytes", "1")),
            ErrorCode.invalid_request,
            "Value must be at least 1048576",
        ),
        (broker(name="x"), ErrorCode.invalid_request, "Node id must be an integer"),
        (
            broker(name="9"),
            ErrorCode.broker_id_not_registered,
            "No node with id 9 found.",
        ),
        (
            ResourceChange(ResourceType.CLIENT_METRICS, "m", ()),
            ErrorCode.invalid_request,
            "Unknown resource type 16",
        ),
        (ResourceChange(99, "m", ()), ErrorCode.invalid_request, "Unknown resource type 99"),
    ],
)
def test_refusals_have_kafkas_messages(
    alter: Alter, image: ClusterImage, resource: ResourceChange, code: ErrorCode, message: str
) -> None:
    before = (overrides(image), dict(image.configs))
    outcome = alter(resource)
    assert outcome.code is code
    assert message in (outcome.message or "")
    assert (overrides(image), dict(image.configs)) == before


@pytest.mark.parametrize("name", ["1", EVERY_BROKER])
def test_settings_do_not_grow_without_limit(
    alter: Alter, image: ClusterImage, config: BrokerConfig, name: str
) -> None:
    """Unknown names are accepted: they may belong to a plugin."""
    for number in range(7):
        assert not alter(broker(ConfigChange(f"x{number}", "y" * 32_000), name=name)).failed
    before = dict(image.configs)
    outcome = alter(broker(ConfigChange("x7", "y" * 32_000), name=name))
    assert outcome.code is ErrorCode.invalid_config
    assert "at most 250000" in (outcome.message or "")
    assert image.configs == before
    assert not alter(broker(ConfigChange("x6", None, ChangeKind.DELETE), name=name)).failed


def test_a_topic_with_settings_of_kafka_3_can_be_changed(
    alter: Alter, image: ClusterImage, config: BrokerConfig
) -> None:
    old = {"segment.bytes": "3000", "message.format.version": "2.8"}
    image.apply(TopicConfigChanged(replace(image.topics["t"], overrides=old)))
    assert not alter(topic(ConfigChange("retention.ms", "9"))).failed
    assert overrides(image) == {**old, "retention.ms": "9"}
    assert alter(topic(ConfigChange("segment.bytes", "3001"))).code is ErrorCode.invalid_config
    for name in old:
        assert not alter(topic(ConfigChange(name, None, DELETE))).failed
    assert alter(topic(ConfigChange("message.format.version", "2.8"))).failed


def test_a_resource_given_twice_is_refused_but_others_change(
    alter: Alter, image: ClusterImage, config: BrokerConfig
) -> None:
    once, twice = topic(ConfigChange("segment.ms", "3")), broker(name="1")
    plan = decided(alter_configs([twice, once, twice], image, config, incremental=True))
    assert [result.outcome.code for result in plan.reply] == [
        ErrorCode.invalid_request,
        ErrorCode.none,
        ErrorCode.invalid_request,
    ]
    assert len(plan.writes) == 1


def test_dynamic_settings_of_one_broker_and_of_all(
    alter: Alter, image: ClusterImage, config: BrokerConfig
) -> None:
    change = ConfigChange("log.retention.ms", "5")
    plan = decided(
        alter_configs(
            [broker(change, name=EVERY_BROKER), broker(change)], image, config, incremental=True
        )
    )
    assert plan.writes == (
        Create("/config/brokers/<default>", b'{"version":1,"config":{"log.retention.ms":"5"}}'),
        Create("/config/brokers/1", b'{"version":1,"config":{"log.retention.ms":"5"}}'),
    )
    for delta in plan.deltas:
        assert isinstance(delta, BrokerConfigChanged)
        image.apply(delta)
    plan = decided(
        alter_configs(
            [broker(ConfigChange("log.retention.ms", None, DELETE))],
            image,
            config,
            incremental=True,
        )
    )
    (write,) = plan.writes
    assert isinstance(write, SetData)
    assert write.version == 0
    image.apply(plan.deltas[0])
    assert image.config("1").values == {}
    assert image.config(EVERY_BROKER).values == {"log.retention.ms": "5"}


def test_settings_that_contradict_each_other_are_refused(alter: Alter, image: ClusterImage) -> None:
    shorter = ConfigChange("log.cleaner.max.compaction.lag.ms", "8")
    assert not alter(broker(shorter, name=EVERY_BROKER)).failed
    outcome = alter(broker(ConfigChange("log.cleaner.min.compaction.lag.ms", "9")))
    assert outcome.code is ErrorCode.invalid_request
    assert "must not be above" in (outcome.message or "")


@pytest.mark.parametrize(("value", "after"), [("true", "2@6 1,2 | 2"), ("false", "-@5 1,2 | 1")])
def test_allowing_unclean_elections_elects_a_leader(world: Any, value: str, after: str) -> None:
    world.topic("t", "1@4 1,2 | 1", "2@4 2,3 | 2")
    world.topic("u", "1@4 1,2 | 1")
    world.down(1)
    change = ConfigChange("unclean.leader.election.enable", value)
    resource = ResourceChange(ResourceType.TOPIC, "t", (change,))
    world.do(decided(alter_configs([resource], world.image, world.config, incremental=True)))
    assert world.show() == [after, "2@4 2,3 | 2"]
    assert world.show("u") == ["-@5 1,2 | 1"]


def test_allowing_unclean_elections_for_all_brokers_respects_the_topic(world: Any) -> None:
    name = "unclean.leader.election.enable"
    world.topic("t", "1@4 1,2 | 1")
    world.topic("u", "1@4 1,2 | 1", unclean_leader_election_enable="false")
    world.topic("v", "1@4 1,2 | 1")
    world.down(1)
    resources = [
        ResourceChange(ResourceType.BROKER, EVERY_BROKER, (ConfigChange(name, "true"),)),
        ResourceChange(ResourceType.TOPIC, "v", (ConfigChange(name, "true"),)),
    ]
    world.do(decided(alter_configs(resources, world.image, world.config, incremental=True)))
    shown = [world.show(each) for each in "tuv"]
    assert shown == [["2@6 1,2 | 2"], ["-@5 1,2 | 1"], ["2@6 1,2 | 2"]]


def test_settings_of_any_known_broker_can_be_altered(world: Any) -> None:
    world.down(2)
    change = ConfigChange("log.retention.ms", "5")
    for name in ("2", "3"):
        resource = ResourceChange(ResourceType.BROKER, name, (change,))
        plan = decided(alter_configs([resource], world.image, world.config, incremental=True))
        assert not world.do(plan)[0].outcome.failed
        assert world.image.config(name).values == {"log.retention.ms": "5"}


def test_an_unknown_setting_of_a_broker_is_kept(alter: Alter, image: ClusterImage) -> None:
    """It may belong to a plugin, in Kafka."""
    assert alter(broker(ConfigChange("a.plugin.setting", "1"))).code is ErrorCode.none
    assert "a.plugin.setting" in str(image.configs)


def test_an_invalid_setting_is_reported_before_an_unknown_topic(alter: Alter) -> None:
    def code(name: str, value: str) -> ErrorCode:
        change = ConfigChange(name, value)
        return alter(ResourceChange(ResourceType.TOPIC, "no-such-topic", (change,))).code

    assert code("retention.ms", "soon") is ErrorCode.invalid_config
    assert code("no.such.setting", "1") is ErrorCode.invalid_config
    assert code("retention.ms", "1") is ErrorCode.unknown_topic_or_partition


@pytest.mark.parametrize("name", ["1", "2", EVERY_BROKER])
def test_replica_fetchers_change_by_half_or_double_at_most(
    alter: Alter, image: ClusterImage, name: str
) -> None:
    """As Apache Kafka 4.3.1 answers; the default is 1."""

    def ask(value: str | None) -> Outcome:
        kind = SET if value is not None else DELETE
        return alter(broker(ConfigChange("num.replica.fetchers", value, kind), name=name))

    refused = (
        "Invalid value org.apache.kafka.common.config.ConfigException: Dynamic thread count update "
        "validation failed for num.replica.fetchers={}, value should {} the current value {} for "
        "configuration Invalid dynamic configuration"
    )
    for value in ("3", "20"):
        message = refused.format(value, "not be greater than double", 1)
        assert ask(value) == Outcome(ErrorCode.invalid_request, message)
    for value in ("2", "4", "8", "16", "9"):
        assert not ask(value).failed
    assert ask("3").message == refused.format(3, "be at least half", 9)
    assert ask("19").message == refused.format(19, "not be greater than double", 9)
    assert ask(None).message == refused.format(1, "be at least half", 9)
    assert image.config(name).values == {"num.replica.fetchers": "9"}
    for value in ("4", "2"):
        assert not ask(value).failed
    assert not ask(None).failed


LONGER = ConfigChange("consumer.session.timeout.ms", "50000")
EARLIEST = ConfigChange("share.auto.offset.reset", "earliest")


def test_a_group_has_a_node_as_long_as_it_has_settings(
    image: ClusterImage, config: BrokerConfig
) -> None:
    def changed(*changes: ConfigChange) -> Plan[tuple[ResourceResult, ...]]:
        plan = decided(alter_configs([group(*changes)], image, config, incremental=True))
        assert not plan.reply[0].outcome.failed
        for delta in plan.deltas:
            image.apply(delta)
        return plan

    path = "/config/groups/g%2F1"
    plan = changed(LONGER)
    values = b'{"consumer.session.timeout.ms":"50000"}'
    assert plan.writes == (Create(path, b'{"version":1,"config":%s}' % values),)
    assert changed(LONGER).writes == ()
    (write,) = changed(EARLIEST).writes
    assert isinstance(write, SetData)
    assert (write.path, write.version) == (path, 0)
    assert len(image.groups["g/1"].values) == 2
    gone = [ConfigChange(each.name, None, DELETE) for each in (LONGER, EARLIEST)]
    assert changed(*gone).writes == (Delete(path, 1),)
    assert image.groups == {}
    assert changed(*gone).writes == ()


@pytest.mark.parametrize(
    ("resource", "code", "message"),
    [
        (group(LONGER, name=""), ErrorCode.invalid_request, "Default group resources are not"),
        (group(LONGER, name="g" * 1_001), ErrorCode.invalid_group_id, "must not have more"),
        (group(ConfigChange("share.x", "1")), ErrorCode.invalid_config, "Unknown group config"),
        (
            group(ConfigChange("consumer.session.timeout.ms", "1")),
            ErrorCode.invalid_config,
            "must be greater than or equal to group.consumer.min.session.timeout.ms",
        ),
        (
            group(ConfigChange("share.isolation.level", "x", APPEND)),
            ErrorCode.invalid_config,
            "its type is not LIST",
        ),
    ],
)
def test_settings_that_no_group_can_have(
    alter: Alter, resource: ResourceChange, code: ErrorCode, message: str
) -> None:
    outcome = alter(resource)
    assert outcome.code is code
    assert message in str(outcome.message)


def test_so_many_groups_have_settings(alter: Alter, image: ClusterImage) -> None:
    for number in range(MAX_GROUPS):
        image.groups[str(number)] = ConfigImage({EARLIEST.name: "latest"}, 0)
    assert alter(group(EARLIEST)).code is ErrorCode.policy_violation
    assert not alter(group(EARLIEST, name="7")).failed
