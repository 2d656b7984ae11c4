"""Quotas in the tree: what is written, and what is refused."""

from collections.abc import Iterator, Sequence

import pytest

from ottla.controller import layout
from ottla.controller.image import ClusterImage, ConfigImage, UserConfigChanged
from ottla.controller.plan import Plan, decided
from ottla.controller.quotas import (
    NameFilter,
    QuotaChange,
    QuotaOutcome,
    all_quotas,
    alter_quotas,
    check_filter,
    entity_of,
    matches,
    path_of,
    read_quotas,
)
from ottla.coordination.tree import Create, Delete, SetData
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.quotas.entity import DEFAULT, Entity, Kind
from ottla.quotas.limits import MAX_NAME_CHARACTERS

USER = (("user", "a"),)
BOTH = (("user", "a"), ("client-id", "c/1"))
ADDRESS = (("ip", "10.0.0.7"),)


def alter(
    image: ClusterImage, *changes: QuotaChange, validate_only: bool = False
) -> Plan[tuple[QuotaOutcome, ...]]:
    plan = decided(alter_quotas(changes, image, validate_only=validate_only))
    for delta in plan.deltas:
        image.apply(delta)
    return plan


def rate(entity: Sequence[tuple[str, str | None]], value: float | None = 5) -> QuotaChange:
    key = "connection_creation_rate" if entity[0][0] == "ip" else "producer_byte_rate"
    return QuotaChange(tuple(entity), ((key, value),))


def codes(plan: Plan[tuple[QuotaOutcome, ...]]) -> list[ErrorCode]:
    return [each.outcome.code for each in plan.reply]


def known(image: ClusterImage) -> dict[Entity, dict[Kind, float]]:
    return dict(each for each in all_quotas(image) if each is not None)


def test_nodes_are_written_as_by_kafka(image: ClusterImage) -> None:
    plan = alter(
        image,
        rate(BOTH),
        QuotaChange(
            (("client-id", None),), (("request_percentage", 12.5), ("consumer_byte_rate", 1e6))
        ),
        rate((("ip", "::ffff:10.0.0.7"),)),
    )
    assert plan.writes == (
        Create("/config/users/a", layout.write_config({})),
        Create("/config/users/a/clients", layout.write_config({})),
        Create(
            "/config/users/a/clients/c%2F1", b'{"version":1,"config":{"producer_byte_rate":"5"}}'
        ),
        Create(
            "/config/clients/<default>",
            layout.write_config({"request_percentage": "12.5", "consumer_byte_rate": "1000000"}),
        ),
        Create("/config/ips/10.0.0.7", layout.write_config({"connection_creation_rate": "5"})),
    )
    assert known(image) == {
        Entity("a", "c/1"): {Kind.PRODUCE: 5},
        Entity(None, DEFAULT): {Kind.REQUEST: 12.5, Kind.FETCH: 1e6},
        Entity(ip="10.0.0.7"): {Kind.CONNECTION: 5},
    }


def test_the_quotas_of_a_user_stay_beside_the_password(image: ClusterImage) -> None:
    image.apply(UserConfigChanged("a", ConfigImage({"SCRAM-SHA-256": "salt=x"}, 4)))
    assert alter(image, rate(USER)).writes == (
        SetData(
            "/config/users/a",
            layout.write_config({"SCRAM-SHA-256": "salt=x", "producer_byte_rate": "5"}),
            4,
        ),
    )
    plan = alter(image, rate(USER, None))
    assert plan.writes == (
        SetData("/config/users/a", layout.write_config({"SCRAM-SHA-256": "salt=x"}), 5),
    )
    assert image.users["a"] == ConfigImage({"SCRAM-SHA-256": "salt=x"}, 6)


def test_a_node_without_quotas_is_deleted(image: ClusterImage) -> None:
    alter(image, rate(BOTH), rate(ADDRESS))
    plan = alter(image, rate(BOTH, None), rate(ADDRESS, None))
    assert plan.writes == (
        Delete("/config/users/a/clients/c%2F1", 0),
        Delete("/config/ips/10.0.0.7", 0),
    )
    assert known(image) == {}
    # The parents are there still.
    assert [type(each) for each in alter(image, rate(BOTH)).writes] == [Create]


def test_what_does_not_change_is_not_written(image: ClusterImage) -> None:
    assert alter(image, rate(USER, None)).writes == ()
    alter(image, rate(USER))
    plan = alter(image, rate(USER))
    assert (plan.writes, codes(plan)) == ((), [ErrorCode.none])


class Looked(list[QuotaChange]):
    """Counts how often one is taken from it."""

    taken = 0

    def __iter__(self) -> Iterator[QuotaChange]:
        for each in super().__iter__():
            self.taken += 1
            yield each


def test_many_changes_are_looked_at_in_steps(image: ClusterImage) -> None:
    changes = Looked(rate((("user", str(number)),)) for number in range(20_000))
    steps = alter_quotas(changes, image)
    before = 0
    for _ in steps:
        assert changes.taken - before <= 10_000
        before = changes.taken
    assert changes.taken == 40_000


def test_validation_alone_changes_nothing(image: ClusterImage) -> None:
    plan = alter(image, rate(USER), validate_only=True)
    assert (codes(plan), plan.writes, plan.deltas) == ([ErrorCode.none], (), ())


def test_several_levels_of_a_user_at_once(image: ClusterImage) -> None:
    plan = alter(image, rate(BOTH), rate(USER), rate((("user", "a"), ("client-id", "d"))))
    assert [type(each) for each in plan.writes] == [Create, Create, Create, SetData, Create]
    assert image.users["a"] == ConfigImage({"producer_byte_rate": "5"}, 1)


@pytest.mark.parametrize(
    "change",
    [
        QuotaChange((), ()),
        rate((("user", ""),)),
        rate((("group", "g"),)),
        rate((("user", "a"), ("user", "b"))),
        rate((("user", "u" * (MAX_NAME_CHARACTERS + 1)),)),
        rate((("ip", "10.0.0.7"), ("user", "a"))),
        rate((("ip", "example.org"),)),
        rate(USER, 0),
        rate(USER, -1),
        rate(USER, 1.5),
        rate(USER, float("nan")),
        rate(USER, float("inf")),
        rate(USER, 2.0**64),
        rate(ADDRESS, 2.0**32),
        QuotaChange(USER, (("connection_creation_rate", 1.0),)),
        QuotaChange(ADDRESS, (("producer_byte_rate", 1.0),)),
        QuotaChange(USER, (("producer_byte_rate", 1.0), ("producer_byte_rate", 2.0))),
    ],
)
def test_changes_that_are_refused(image: ClusterImage, change: QuotaChange) -> None:
    plan = alter(image, change)
    assert codes(plan) == [ErrorCode.invalid_request]
    assert (plan.writes, plan.deltas) == ((), ())


def test_an_entity_may_be_named_once(image: ClusterImage) -> None:
    plan = alter(image, rate(BOTH), rate(BOTH[::-1], 7), rate(ADDRESS))
    assert codes(plan) == [ErrorCode.invalid_request, ErrorCode.none]


@pytest.mark.parametrize(
    "entity",
    [
        Entity("a"),
        Entity(DEFAULT),
        Entity("a/clients", "c"),
        Entity(DEFAULT, DEFAULT),
        Entity(None, "<default>"),
        Entity(ip="::1"),
        Entity(ip=DEFAULT),
    ],
)
def test_places_of_entities(entity: Entity) -> None:
    assert entity_of(path_of(entity)) == entity


def test_what_is_no_path_of_an_entity() -> None:
    assert entity_of("users/a/clients") is None
    assert entity_of("topics/t") is None


def test_values_that_say_nothing() -> None:
    values = {"producer_byte_rate": "x", "consumer_byte_rate": "0", "request_percentage": "1.0E9"}
    assert read_quotas({**values, "SCRAM-SHA-256": "salt"}) == {Kind.REQUEST: 1e9}


EVERY = (Entity("a"), Entity("a", "c"), Entity("a", DEFAULT), Entity(DEFAULT), Entity(None, "c"))


@pytest.mark.parametrize(
    ("wanted", "strict", "found"),
    [
        ([], False, EVERY),
        ([], True, ()),
        ([("user", 0, "a")], False, EVERY[:3]),
        ([("user", 0, "a")], True, EVERY[:1]),
        ([("user", 1, None)], False, EVERY[3:4]),
        ([("user", 2, None)], False, EVERY[:4]),
        ([("client-id", 0, "c")], False, (EVERY[1], EVERY[4])),
        ([("user", 2, None), ("client-id", 1, None)], True, EVERY[2:3]),
    ],
)
def test_filters(
    wanted: list[tuple[str, int, str | None]], strict: bool, found: tuple[Entity, ...]
) -> None:
    filters = [NameFilter(*each) for each in wanted]
    check_filter(filters)
    assert tuple(each for each in EVERY if matches(each, filters, strict=strict)) == found


@pytest.mark.parametrize(
    ("wanted", "code"),
    [
        ([("", 0, "a")], ErrorCode.invalid_request),
        ([("user", 0, "a"), ("user", 1, None)], ErrorCode.invalid_request),
        ([("group", 0, "a")], ErrorCode.unsupported_version),
        ([("user", 3, None)], ErrorCode.invalid_request),
        ([("user", 0, None)], ErrorCode.invalid_request),
        ([("user", 1, "a")], ErrorCode.invalid_request),
        ([("user", 2, "a")], ErrorCode.invalid_request),
        ([("ip", 2, None), ("user", 2, None)], ErrorCode.invalid_request),
    ],
)
def test_filters_that_are_refused(
    wanted: list[tuple[str, int, str | None]], code: ErrorCode
) -> None:
    with pytest.raises(ApiError) as refused:
        check_filter([NameFilter(*each) for each in wanted])
    assert refused.value.code is code
