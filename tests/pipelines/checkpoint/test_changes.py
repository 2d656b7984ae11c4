"""What changed around a checkpoint since its last run."""

from dataclasses import replace

from ottla.pipelines.checkpoint.changes import (
    Partitions,
    losses,
    more_partitions,
    wrong_keys,
    wrong_order,
    wrong_source,
    wrong_table,
)
from ottla.pipelines.checkpoint.identity import Identity

IDENTITY = Identity("cluster-a", {"flights": "id-1"}, "table-1", "file:/lake/flights", "x")


def now(topic_id: str, earliest: dict[int, int], latest: dict[int, int]) -> Partitions:
    return Partitions(topic_id, earliest, latest)


def test_nothing_changed() -> None:
    next_offsets = {"flights": {0: 5, 1: 7}}
    assert wrong_source(IDENTITY, "cp", "cluster-a", ["flights"], next_offsets) is None
    assert wrong_source(None, "cp", "cluster-a", ["flights"], next_offsets) is None
    assert wrong_table(IDENTITY, "cp", "flights", "table-1", "file:/lake/flights") is None
    assert wrong_table(None, "cp", "flights", "table-2", "file:/lake/flights") is None
    topics = {"flights": now("id-1", {0: 5, 1: 0}, {0: 9, 1: 7})}
    assert losses(IDENTITY, next_offsets, topics) == []


def test_another_cluster_or_topic_is_named() -> None:
    said = wrong_source(IDENTITY, "./cp", "cluster-b", ["flights"], {})
    assert said is not None
    assert "belongs to the cluster cluster-a" in said
    assert "leads to cluster-b" in said

    for identity in (IDENTITY, None):
        said = wrong_source(identity, "./cp", "cluster-a", ["trains"], {"flights": {0: 1}})
        assert said is not None
        assert said.startswith("The checkpoint ./cp belongs to topic 'flights', and the frame")
        assert "reads topic 'trains'" in said


def test_a_topic_that_another_source_of_the_frame_reads_is_no_change() -> None:
    next_offsets = {"flights": {0: 1}, "raw": {0: 3}}
    assert wrong_source(IDENTITY, "cp", "cluster-a", ["flights"], next_offsets) is None
    assert wrong_source(None, "cp", "cluster-a", ["flights"], next_offsets) is None


def test_topics_are_read_in_the_order_of_the_checkpoint() -> None:
    kept: list[list[str]] = [["flights"], [], ["trains"]]
    assert wrong_order("cp", kept, [(0, "flights"), (2, "trains")]) is None
    assert wrong_order("cp", [], [(0, "flights")]) is None
    assert wrong_order("cp", kept, [(1, "trains"), (3, "flights")]) is None, "nothing is known"
    said = wrong_order("./cp", kept, [(0, "trains"), (2, "flights")])
    assert said is not None
    assert "./cp has topic 'flights' as source 1 of its query, and the frame reads" in said
    assert "reads topic 'trains' there: Spark keeps offsets by this order" in said


def test_a_table_created_again_differs_from_another_table() -> None:
    again = wrong_table(IDENTITY, "cp", "flights", "table-2", "file:/lake/flights")
    other = wrong_table(IDENTITY, "cp", "trains", "table-2", "file:/lake/trains")
    assert again is not None
    assert "was deleted and created again" in again
    assert other is not None
    assert "belongs to the table file:/lake/flights, not to trains" in other


def test_other_keys_are_refused_by_name() -> None:
    keyed = replace(IDENTITY, keys=("id", "Day"))
    assert wrong_keys(None, "cp", "flights", ("id",)) is None
    assert wrong_keys(IDENTITY, "cp", "flights", ("id",)) is None
    assert wrong_keys(keyed, "cp", "flights", ("day", "id")) is None
    assert wrong_keys(keyed, "./cp", "flights", ("id",)) == (
        "The checkpoint ./cp has written the table flights with keys=['id', 'Day'], and this query "
        "has keys=['id']. Write keys=['id', 'Day'], or use a new checkpoint and a new table"
    )
    appended = replace(IDENTITY, keys=())
    assert wrong_keys(appended, "cp", "flights", ()) is None
    said = wrong_keys(appended, "./cp", "flights", ("id",))
    assert said is not None
    assert "the table flights with no keys=, and this query has keys=['id']" in said


def test_a_topic_created_again_starts_at_its_beginning() -> None:
    topics = {"flights": now("id-2", {0: 0, 1: 0}, {0: 100, 1: 50})}
    (loss,) = losses(IDENTITY, {"flights": {0: 60, 1: 40}}, topics)

    assert loss.sentence == (
        "Topic 'flights' was deleted and created again: the checkpoint stands at offset 60 in "
        "partition 0, offset 40 in partition 1 of the former topic, and the new one has 150 "
        "records (some may be in the target, if it was created while the last batch was read)"
    )
    assert loss.continue_at == {0: 0, 1: 0}


def test_records_that_retention_removed_are_counted_and_passed_over() -> None:
    topics = {"flights": now("id-1", {0: 100, 1: 0}, {0: 150, 1: 50})}
    (loss,) = losses(IDENTITY, {"flights": {0: 60, 1: 40}}, topics)

    assert loss.sentence.startswith("40 records of topic 'flights' that were not delivered yet")
    assert loss.continue_at == {0: 100, 1: 40}


def test_a_topic_that_ends_before_the_checkpoint_lost_its_end() -> None:
    topics = {"flights": now("id-1", {0: 0}, {0: 50})}
    (loss,) = losses(None, {"flights": {0: 60}}, topics)

    assert loss.sentence.startswith("Topic 'flights' ends 10 records before")
    assert loss.continue_at == {0: 50}


def test_a_batch_that_was_cut_off_ends_after_the_topic_does() -> None:
    """Spark would ask for its records again and again, and never get them."""
    topics = {"flights": now("id-1", {0: 0, 1: 0}, {0: 50, 1: 9})}
    at, planned = {"flights": {0: 40, 1: 9}}, {"flights": {0: 60, 1: 9}}
    assert losses(IDENTITY, at, topics, {"flights": {0: 50, 1: 9}}) == []
    (loss,) = losses(IDENTITY, at, topics, planned)

    assert loss.sentence.startswith("Topic 'flights' ends 10 records before the end of the batch")
    assert loss.continue_at == {0: 40, 1: 9}


def test_the_first_records_of_a_partition_that_was_added_are_counted() -> None:
    """Spark reads it from offset 0, and refuses a first offset after that at each start."""
    topics = {"flights": now("id-1", {0: 0, 1: 3}, {0: 60, 1: 9})}
    (loss,) = losses(IDENTITY, {"flights": {0: 60}}, topics)

    assert loss.sentence.startswith("3 records of topic 'flights' that were not delivered yet")
    assert loss.continue_at == {0: 60, 1: 3}


def test_a_topic_that_lacks_its_beginning_and_its_end_continues_within_it() -> None:
    topics = {"flights": now("id-1", {0: 50, 1: 0}, {0: 90, 1: 5})}
    (loss,) = losses(IDENTITY, {"flights": {0: 40, 1: 8}}, topics)

    assert loss.continue_at == {0: 50, 1: 5}


def test_new_partitions_are_named() -> None:
    assert more_partitions("flights", [0, 1], [1, 0]) is None
    assert more_partitions("flights", [0, 1], [0]) is None
    one, several = (more_partitions("flights", [0], range(stop)) for stop in (2, 6))
    assert one is not None
    assert several is not None
    assert one.startswith("Topic 'flights' has got the partition 1 since the last batch: a key")
    assert "order_by='timestamp'; or, where each key has stayed in its partition, use a new" in one
    assert "has got the partitions 1, 2, 3 ... since the last batch" in several
