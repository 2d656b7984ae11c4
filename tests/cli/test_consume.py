"""`ottla consume`: options that contradict each other, and where each partition begins."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from tests.client.answers import offsets
from tests.client.fake_cluster import FakeCluster

from ottla.cli.consume import check_ending, check_one_form, check_together, choose
from ottla.cli.failures import Failed, UsageFailed
from ottla.client.admin.offsets import LIST_OFFSETS
from ottla.client.topic_partition import TopicPartition
from ottla.messaging.rendering import Shown
from ottla.messaging.start import Start

NO_ENDING = {"--until": None, "--until-offset": None, "--last": None}


@pytest.mark.parametrize(
    ("topics", "group", "from_", "partition", "offset", "message"),
    [
        (["t"], "g", None, [0], None, "--group cannot be combined"),
        (["t"], "g", None, [], 5, "--group cannot be combined"),
        (["t"], "", None, [], None, "--group is empty"),
        (["t"], None, "end", [0], 5, "--offset and --from exclude"),
        (["t"], None, None, [], 5, "--offset needs --partition"),
        (["t"], None, None, [0, 1], 5, "--offset needs --partition"),
        (["t", "u"], None, None, [0], 5, "--offset needs --partition"),
    ],
)
def test_where_to_start_is_said_once(
    topics: list[str],
    group: str | None,
    from_: str | None,
    partition: list[int],
    offset: int | None,
    message: str,
) -> None:
    with pytest.raises(UsageFailed, match=message):
        check_together(topics, group, from_, partition, offset)


def test_starts_that_are_allowed() -> None:
    check_together(["t", "u"], "g", "end", [], None)
    check_together(["t"], None, None, [3], -5)
    check_together(["t", "u"], None, "1h", [0, 1], None)


@pytest.mark.parametrize(
    ("ending", "others", "message"),
    [
        ({"--until": "1h", "--last": 3}, {}, "--until and --last exclude"),
        ({"--until": "1h"}, {"group": "g"}, "--until and --group exclude"),
        ({"--until-offset": 3}, {"follow": True}, "--until-offset and --follow exclude"),
        ({"--last": 3}, {"from_": "end"}, "--last and --from exclude"),
        ({"--last": 3}, {"offset": 3, "partition": [0]}, "--last and --offset exclude"),
        ({"--until-offset": 3}, {}, "--until-offset needs --partition"),
        ({"--until-offset": 3}, {"partition": [0, 1]}, "--until-offset needs --partition"),
    ],
)
def test_ends_that_contradict(
    ending: dict[str, object], others: dict[str, Any], message: str
) -> None:
    rest: dict[str, Any] = {
        "group": None,
        "from_": None,
        "partition": [],
        "offset": None,
        "follow": False,
    }
    with pytest.raises(UsageFailed, match=message):
        check_ending(NO_ENDING | ending, **(rest | others))


def test_ends_that_are_allowed() -> None:
    check_ending(NO_ENDING, "g", "end", [], None, True)
    check_ending(NO_ENDING | {"--until": "1h"}, None, "2h", [], None, False)
    check_ending(NO_ENDING | {"--until-offset": 9}, None, None, [0], 3, False)


def test_one_form_of_output() -> None:
    check_one_form(Shown(keys=True), None, True)
    check_one_form(Shown(), "%s", False)
    with pytest.raises(UsageFailed, match="--format replaces --json"):
        check_one_form(Shown(), "%s", True)
    with pytest.raises(UsageFailed, match="--format replaces --keys"):
        check_one_form(Shown(times=True), "%s", False)


def chosen(
    wanted: Iterable[int] | None, offset: int | None
) -> tuple[dict[TopicPartition, int], dict[TopicPartition, int]]:
    """Each partition of t has offsets 10 to 19."""
    places = [("t", 0), ("t", 1)]
    fake = FakeCluster({LIST_OFFSETS: [offsets(*(dict.fromkeys(places, at) for at in (10, 20)))]})
    fake.leaders = dict.fromkeys(places, 1)
    client = fake.client()
    topics = client.metadata(["t"]).topics
    return choose(client, topics, list(wanted or ()), offset, Start("beginning"))


def test_all_partitions_or_those_that_are_named() -> None:
    begins, ends = chosen(None, None)
    assert begins == {("t", 0): 10, ("t", 1): 10}
    assert ends == {("t", 0): 20, ("t", 1): 20}
    assert chosen([1], None) == ({("t", 1): 10}, {("t", 1): 20})
    with pytest.raises(Failed, match="topic 't' has partitions 0 to 1, not 2"):
        chosen([2], None)


@pytest.mark.parametrize(("offset", "begin"), [(10, 10), (20, 20), (-3, 17), (-99, 10)])
def test_offsets_from_the_start_and_from_the_end(offset: int, begin: int) -> None:
    assert chosen([0], offset)[0] == {("t", 0): begin}


@pytest.mark.parametrize("offset", [9, 21])
def test_an_offset_that_does_not_exist(offset: int) -> None:
    with pytest.raises(Failed, match=f"no offset {offset}: allowed are 10 to 20"):
        chosen([0], offset)
