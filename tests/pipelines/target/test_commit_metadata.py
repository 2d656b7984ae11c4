"""What each commit says about itself."""

from dataclasses import replace

from ottla.pipelines.target.commit_metadata import (
    CommitMetadata,
    latest_of_topics,
    read_metadata,
    side_by_side,
)


def commit(batch: int, **offsets: int) -> CommitMetadata:
    ids = {name: f"id-{name}" for name in offsets}
    return CommitMetadata("q", "id", batch, "c", ids, {n: {0: o} for n, o in offsets.items()})


def test_it_is_one_line_of_json_and_read_as_it_was_written() -> None:
    metadata = commit(7, flights=4711)
    assert metadata.text() == (
        '{"ottla.pipeline":1,"query":"q","id":"id","batch":7,"cluster":"c",'
        '"topics":{"flights":{"id":"id-flights","offsets":{"0":4711}}}}'
    )
    assert read_metadata(metadata.text()) == metadata


def test_what_others_write_is_passed_over() -> None:
    for text in ("", "a note", "[]", "{}", '{"ottla.pipeline":2}', '{"ottla.pipeline":1}'):
        assert read_metadata(text) is None


def test_the_newest_commit_of_each_topic_is_found() -> None:
    commits = [commit(9, a=90).text(), "a note", commit(8, a=80, b=8).text(), commit(7, b=7).text()]
    found = latest_of_topics(commits, ["a", "b", "c"])

    assert {name: metadata.batch for name, metadata in found.items()} == {"a": 9, "b": 8}
    assert found["b"].topic_ids["b"] == "id-b"


def test_a_commit_under_way_when_its_query_was_continued_does_not_count() -> None:
    former, late = commit(3, a=3), commit(4, a=5)
    other = replace(commit(0, a=4), query_id="other", after=("id",))

    in_time = latest_of_topics([other.text(), former.text()], ["a"])
    assert in_time["a"].query_id == "other"
    found = latest_of_topics([late.text(), other.text(), former.text()], ["a"])
    assert (found["a"].query_id, found["a"].offsets) == ("other", {"a": {0: 4}})
    assert latest_of_topics([late.text(), former.text(), other.text()], ["a"])["a"] == late


def test_queries_that_wrote_a_topic_at_the_same_time() -> None:
    def of(query_id: str, batch: int, offset: int, *after: str) -> CommitMetadata:
        return replace(commit(batch, a=offset), query_id=query_id, after=after)

    def found(*commits: CommitMetadata) -> CommitMetadata | None:
        return side_by_side(["a note", *(one.text() for one in commits)], "a", commits[0])

    newest, other = of("one", 3, 50), of("two", 1, 30)
    assert found(newest, other, of("one", 2, 40)) == other
    assert found(newest, of("one", 2, 40), other, of("two", 0, 20), of("one", 0, 9)) == other
    assert found(newest, of("one", 2, 40), other) is None, "one wrote after the other"
    assert found(newest, of("one", 0, 40), other, newest) is None, "its first batch is the last"
    assert found(newest, of("two", 1, 50), of("one", 2, 40)) is None, "both end alike"
    continues = of("one", 1, 50, "two")
    assert found(continues, other, of("one", 0, 40, "two")) is None, "one continues the other"
