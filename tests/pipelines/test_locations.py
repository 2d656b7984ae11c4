"""A location is shown as people write it."""

import pytest

from ottla.pipelines.locations import shown_location


@pytest.mark.parametrize(
    ("location", "shown"),
    [
        ("file:/lake/flights", "/lake/flights"),
        ("file:///lake/flights", "/lake/flights"),
        ("/lake/flights", "/lake/flights"),
        ("file:flights", "flights"),
        ("s3a://lake/flights", "s3a://lake/flights"),
        ("hdfs://host:9000/lake/file:1", "hdfs://host:9000/lake/file:1"),
    ],
)
def test_a_local_location_is_shown_as_a_path(location: str, shown: str) -> None:
    assert shown_location(location) == shown
