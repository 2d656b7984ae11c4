"""`NAME=VALUE` words."""

from ottla.cli.name_values import pairs


def test_pairs_of_name_and_value() -> None:
    assert pairs("--config", ["a=1", " b = x=y "]) == {"a": "1", "b": "x=y"}
    assert pairs("--config", None) == {}
