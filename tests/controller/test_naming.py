from collections.abc import Callable

import pytest

from ottla.controller.image import ClusterImage
from ottla.controller.naming import check_new_topic_name, check_topic_name
from ottla.controller.topics import NewTopic
from ottla.protocol.errors import ApiError, ErrorCode


@pytest.mark.parametrize("name", ["a", "A.b_c-9", "...", "x" * 249])
def test_valid_topic_names(name: str, image: ClusterImage) -> None:
    check_topic_name(name)
    check_new_topic_name(name, image)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("", "the empty string is not allowed"),
        (".", "'.' is not allowed"),
        ("..", "'..' is not allowed"),
        ("x" * 250, "is longer than the max allowed length 249"),
        ("a b", "contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"),
        ("a\n", "contains one or more characters"),
        ("ä", "contains one or more characters"),
        ("a/b", "contains one or more characters"),
    ],
)
def test_invalid_topic_names(name: str, reason: str) -> None:
    with pytest.raises(ApiError) as caught:
        check_topic_name(name)
    assert caught.value.code is ErrorCode.invalid_topic_exception
    assert reason in str(caught.value)


def test_taken_names(image: ClusterImage, add_topic: Callable[[NewTopic], None]) -> None:
    add_topic(NewTopic("a_b", 1, 1))
    with pytest.raises(ApiError, match="already exists"):
        check_new_topic_name("a_b", image)
    with pytest.raises(ApiError, match="collides with existing topic: a_b"):
        check_new_topic_name("a.b", image)
    check_new_topic_name("ab", image)
