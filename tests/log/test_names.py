from uuid import uuid4

import pytest

from ottla.log import names


def test_files_are_named_by_twenty_digits() -> None:
    assert names.file_name(42, names.TIME_INDEX) == "00000000000000000042.timeindex"
    assert names.offset_of("00000000000000000042.log.swap") == 42
    for other in (
        "leader-epoch-checkpoint",
        "00042.log",
        "00000000000000000042",
        "x" * 20 + ".log",
    ):
        assert names.offset_of(other) is None


@pytest.mark.parametrize(
    ("folder", "partition"),
    [
        ("flights-0", ("flights", 0)),
        ("a-b-12", ("a-b", 12)),
        ("flights", None),
        ("flights-", None),
        ("-3", None),
        ("flights-x", None),
    ],
)
def test_partitions_are_named_by_topic_and_number(
    folder: str, partition: tuple[str, int] | None
) -> None:
    assert names.partition_of(folder) == partition


def test_a_deleted_folder_has_a_name_of_its_own_that_fits() -> None:
    name = names.deleted_folder_name("t" * 249, 7, uuid4())
    assert len(name) <= 255
    assert name.endswith("-delete")
    assert names.partition_of(name) is None
    assert name != names.deleted_folder_name("t" * 249, 7, uuid4())


@pytest.mark.parametrize("topic", ["flights", "a-b.c", "t" * 249])
def test_a_stray_folder_says_what_it_was(topic: str) -> None:
    name = names.stray_folder_name(topic, 7, uuid4())
    assert len(name) <= 255
    assert names.partition_of(name) is None
    found = names.stray_partition_of(name)
    assert found is not None
    assert topic.startswith(found[0])
    assert found[1] == 7
    assert names.stray_partition_of(names.deleted_folder_name(topic, 7, uuid4())) is None
    assert names.stray_partition_of("x-stray") is None
