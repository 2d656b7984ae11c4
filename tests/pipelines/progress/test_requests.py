"""A request to stop, from any machine that reaches the broker."""

from collections.abc import Callable

import pytest

from ottla.pipelines.progress.group import Group
from ottla.pipelines.progress.requests import StopRequest, find_request, put_request, read_request


def test_what_is_written_is_read_again() -> None:
    request = StopRequest("9f2c41d0", "anna@laptop", 17)
    assert read_request(request.metadata()) == request


@pytest.mark.parametrize(
    "metadata", ["", "{", "[]", '{"ottla.stop": 2}', '{"ottla.stop": 1, "run": 7}']
)
def test_other_metadata_is_no_request(metadata: str) -> None:
    assert read_request(metadata) is None


def test_a_run_finds_the_latest_request_on_any_of_its_partitions(
    new_topic: Callable[..., str], new_group: Callable[[], Group]
) -> None:
    topic, group = new_topic(), new_group()
    companion = group.companion("stop")
    assert find_request(companion, (topic, 0)) is None

    for request in (StopRequest("one", "anna", 17), StopRequest("two", "ben", 18)):
        put_request(group, [(topic, 0), (topic, 1)], request)

    for partition in (0, 1):
        assert find_request(companion, (topic, partition)) == StopRequest("two", "ben", 18)
    assert group.read_all() == {}
