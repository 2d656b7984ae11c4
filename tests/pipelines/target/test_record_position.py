"""The position of a record is found by where the columns come from, not by their names."""

from __future__ import annotations

from pyspark.sql.types import StructType

from ottla.pipelines.target.record_position import (
    EXPLODED,
    JOINED,
    JOINED_STREAMS,
    Constant,
    Origin,
    Origins,
    RecordPosition,
    Stream,
    position_by_name,
    position_by_origin,
)

A, B, A_AGAIN = Stream(0, "a"), Stream(1, "b"), Stream(2, "a")
KINDS = {"partition": "integer", "offset": "long", "topic": "string", "timestamp": "timestamp"}


def position(**columns: Origins) -> RecordPosition:
    """The position of a frame with these columns, each of the type that its name ends with."""
    schema = StructType()
    for name in columns:
        schema.add(name, KINDS[name.rpartition("_")[2]])
    return position_by_origin(schema, columns.__getitem__)


def read(*streams: Stream, passes: str = "") -> dict[str, Origins]:
    """Partition and offset as the streams have them."""
    passed = frozenset({passes} if passes else ())
    return {
        name: tuple(Origin(stream, name, passed) for stream in streams)
        for name in ("partition", "offset")
    }


def test_the_columns_of_one_topic_are_the_position_under_any_name() -> None:
    assert position(**read(A)) == RecordPosition(("partition", "offset"))
    own = (None,)
    found = position(offset=own, partition=own, at_partition=read(A)["partition"],
                  at_offset=read(A)["offset"])  # fmt: skip
    assert found == RecordPosition(("at_partition", "at_offset"))


def test_columns_of_these_names_that_are_others_are_no_position() -> None:
    found = position(partition=read(A)["partition"], offset=(None,))
    assert found.columns == ()
    assert found.missing == (
        "the column offset is not the topic's, but a field of the value or computed: select the "
        "topic's too, under another name, such as 'offset AS record_offset'"
    )
    assert position(topic=(None,)) == RecordPosition()
    mixed = position(partition=read(A)["partition"], offset=read(B)["offset"])
    assert mixed.missing == "partition and offset are of different streams"


def test_a_time_that_is_not_the_records_is_known() -> None:
    time = (Origin(A, "timestamp"),)
    assert not position(**read(A), timestamp=time).has_own_time
    assert position(**read(A), timestamp=(None,)).has_own_time
    assert not position(**read(A)).has_own_time


def test_two_topics_need_a_column_that_tells_them_apart() -> None:
    both = read(A, B)
    for topic in ((None, None), (Constant("x"), Constant("x")), (Constant("a"), None)):
        found = position(**both, topic=topic)
        assert found.columns == ()
        assert found.missing.startswith("the frame unites the topics 'a', 'b', which have the same")
    told = position(**both, topic=(Constant("x"), Constant("y")))
    assert told == RecordPosition(("topic", "partition", "offset"))
    # A text of another name may be anything.
    assert position(**both, kind_topic=(Constant("x"), Constant("y"))).columns == ()


def test_a_stream_of_several_topics_needs_their_names() -> None:
    several = Stream(0, has_several=True)
    assert "select Kafka's column topic" in position(**read(several)).missing
    assert position(**read(several), topic=(Constant("x"),)).columns == ()
    named = position(**read(several), of_topic=(Origin(several, "topic"),))
    assert named.columns == ("of_topic", "partition", "offset")


def test_rows_that_share_a_record_are_known() -> None:
    assert position(**read(A, passes=JOINED)) == RecordPosition(
        ("partition", "offset"), is_shared=True
    )
    assert position(**read(A, A)) == RecordPosition(("partition", "offset"), is_shared=True)
    for origins, words in (
        (read(A, passes=EXPLODED), "explode makes several rows of one record"),
        (read(A, passes=JOINED_STREAMS), "a join of two streams gives its rows in another order"),
        (read(A, A_AGAIN), "the frame reads a topic twice"),
    ):
        found = position(**origins)
        assert found.columns == ("partition", "offset")
        assert found.unordered.startswith(words)
        assert found.is_shared


def test_a_batch_frame_is_taken_by_its_names() -> None:
    schema = StructType().add("partition", "integer").add("offset", "long")
    assert position_by_name(schema) == RecordPosition(("partition", "offset"))
    assert position_by_name(schema.add("topic", "string")).columns[0] == "topic"
    assert (
        position_by_name(StructType().add("partition", "long").add("offset", "long")).columns == ()
    )
